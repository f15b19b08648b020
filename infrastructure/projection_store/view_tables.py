"""The tables of the read models: their columns, the folds that fill them, and their creation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, cast

from refold.application.ports.read_models import (
    CompactionRow,
    ConversationRow,
    MessageRow,
    NoteRow,
    RequestSizesRow,
    SummaryRow,
    TopicRow,
)
from refold.application.projections import compaction_list as compactions
from refold.application.projections import conversation_list as conversations
from refold.application.projections import message_list as messages
from refold.application.projections import note_list as notes
from refold.application.projections import request_sizes
from refold.application.projections import summary_list as summaries
from refold.application.projections import topic_list as topics
from refold.application.projections.row_changes import Cell, Changes, RunChanges
from refold.domain.lazy_pattern import lazy_property
from refold.domain.value import Value, fields_of

from .row_checksums import CHECKSUM
from .tables import Tables

_TYPES: Mapping[Any, type] = {str: str, str | None: str, int: int, int | None: int, bool: int}

IS_THERE = "thread_id != ''"
"""Condition of a message row that was not erased. An erased row keeps only its number, and what is left of
the message is in a new row. If a row grew or were deleted, SQLite would move others and leave bytes of
them behind.
"""

_OPTIONAL: frozenset[Any] = frozenset({str | None, int | None})


@dataclass(frozen=True)
class Table:
    """A table that a projection fills. Its columns are the fields of ``row`` and a checksum."""

    name: str
    version: int
    """Version of the projection. Rows of another version are deleted and replayed."""
    row: type[Value]
    key: tuple[str, ...]
    changes: RunChanges
    erased: Changes | None = None
    """Function that returns the changes for what an erasure left of an event, or None if the table does
    not store its content.
    """
    where: str = "true"
    """Condition of valid rows. Other rows are placeholders for erased content."""
    reads_messages: bool = False
    """True if appended messages change the table."""
    active: str = ""
    """Condition that the active rows of a conversation meet as well, by which they are found without reading
    the others. Its parameter is the conversation.
    """

    @lazy_property
    def columns(self) -> tuple[str, ...]:
        """Columns without the checksum, in order."""
        return tuple(fields_of(self.row).types)

    @lazy_property
    def selected(self) -> str:
        """All columns of a row with its checksum, as a query names them."""
        return ", ".join(self.types)

    @lazy_property
    def flags(self) -> frozenset[str]:
        """Columns with truth values."""
        types = fields_of(self.row).types
        return frozenset(name for name, kind in types.items() if kind is bool)

    @lazy_property
    def values(self) -> Callable[[Mapping[str, Cell]], tuple[Cell, ...]]:
        """Function that returns the values of a row in the order of the columns."""
        return cast("Callable[[Mapping[str, Cell]], tuple[Cell, ...]]", itemgetter(*self.columns))

    @lazy_property
    def thread(self) -> int:
        """Index of the thread id in the columns."""
        return self.columns.index("thread_id")

    @lazy_property
    def types(self) -> dict[str, type]:
        """Columns with their types."""
        types = fields_of(self.row).types
        return {name: _TYPES[kind] for name, kind in types.items()} | {CHECKSUM: int}

    @lazy_property
    def required(self) -> frozenset[str]:
        """Columns that are never empty."""
        types = fields_of(self.row).types
        optional = {name for name, kind in types.items() if kind in _OPTIONAL}
        return frozenset(self.types) - optional

    def cells(self, row: Value) -> dict[str, Cell]:
        """Return the columns of a row as a new dictionary."""
        cells: dict[str, Cell] = dict(row.__dict__)
        for flag in self.flags:
            cells[flag] = int(cells[flag] or 0)
        return cells

    def read(self, values: tuple[Cell, ...]) -> dict[str, Any]:
        """Return the fields of a row from its stored values."""
        fields: dict[str, Any] = dict(zip(self.columns, values, strict=True))
        for flag in self.flags:
            fields[flag] = bool(fields[flag])
        return fields


TABLES = (
    Table(
        "conversations",
        conversations.VERSION,
        ConversationRow,
        ("thread_id",),
        conversations.changes_of_run,
        conversations.erased_changes,
        reads_messages=True,
    ),
    Table(
        "messages",
        messages.VERSION,
        MessageRow,
        ("thread_id", "position"),
        messages.changes_of_run,
        messages.erased_changes,
        IS_THERE,
        reads_messages=True,
    ),
    Table(
        "summaries",
        summaries.VERSION,
        SummaryRow,
        ("thread_id", "summary_id"),
        summaries.changes_of_run,
        summaries.erased_changes,
    ),
    Table(
        "compactions",
        compactions.VERSION,
        CompactionRow,
        ("thread_id", "attempt_id"),
        compactions.changes_of_run,
        compactions.erased_changes,
    ),
    Table(
        "topics",
        topics.VERSION,
        TopicRow,
        ("thread_id", "summary_id", "rank"),
        topics.changes_of_run,
        topics.erased_changes,
        active="summary_id IN (SELECT summary_id FROM {summaries} WHERE thread_id = ? AND is_active = 1)",
    ),
    Table(
        "request_sizes",
        request_sizes.VERSION,
        RequestSizesRow,
        ("thread_id", "events", "number"),
        request_sizes.changes_of_run,
        reads_messages=True,
    ),
    Table(
        "notes",
        notes.VERSION,
        NoteRow,
        ("thread_id", "flush_id", "number"),
        notes.changes_of_run,
        notes.erased_changes,
    ),
)

FORMAT = 5
"""Format of the file. A file of another format is folded again. Since format 2, nothing stays of deleted
content. Format 4 has the view of archived messages and the index of messages with other owners,
format 5 the sizes of requests.
"""

PROJECTIONS: Mapping[str, int] = {table.name: FORMAT * 1_000 + table.version for table in TABLES}

TALLIES = "tallies"
TALLY_KEY = ("thread_id", "projection")
TALLY_COLUMNS: Mapping[str, type] = {
    "thread_id": str,
    "projection": str,
    "row_count": int,
    "checksums": int,
    CHECKSUM: int,
}
"""Columns of a tally: number of rows and sum of checksums, by conversation and projection."""

ARCHIVED = """
CREATE VIEW archived_messages AS
SELECT m.thread_id, m.position, m.message_id, s.summary_id
FROM messages m JOIN summaries s ON s.thread_id = m.thread_id AND s.is_active = 1
WHERE m.position >= s.covered_from AND m.position < s.first_kept_index
AND m.position NOT IN (SELECT value FROM json_each(s.exclusions))
"""
"""View of the messages that the active summary covers, for users who query the file."""

LATE_INDEX = "messages_by_id"


def create_tables(db: Tables) -> None:
    """Create every table, in the open transaction."""
    for table in TABLES:
        db.create_table(table.name, table.types, table.key, table.required, in_order=True)
    # The database itself allows only one active summary for a conversation.
    where = "is_active = 1"
    db.create_index("one_active_summary", "summaries", "thread_id", where=where, unique=True)
    # Few messages have an owner of their own, so conversations without any need no reading.
    where = "owner IS NOT NULL"
    db.create_index("messages_of_others", "messages", "thread_id, position", where=where)
    db.create_view(ARCHIVED)
    db.create_table(TALLIES, TALLY_COLUMNS, TALLY_KEY, TALLY_COLUMNS)


def create_late_index(db: Tables) -> None:
    """Create the index that would slow a bulk load down. It is created after the load."""
    db.create_index(LATE_INDEX, "messages", "message_id")

"""The tables of the read models: what each holds, which fold fills it, and how they are made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, cast

from sqlite_utils import Database

from refold.application.ports.read_models import (
    CompactionRow,
    ConversationRow,
    MessageRow,
    NoteRow,
    SummaryRow,
    TopicRow,
)
from refold.application.projections import compaction_list as compactions
from refold.application.projections import conversation_list as conversations
from refold.application.projections import message_list as messages
from refold.application.projections import note_list as notes
from refold.application.projections import summary_list as summaries
from refold.application.projections import topic_list as topics
from refold.application.projections.row_changes import Cell, Changes, RunChanges
from refold.domain.value import Value

from .row_checksums import CHECKSUM

_TYPES: Mapping[Any, type] = {str: str, str | None: str, int: int, int | None: int, bool: int}

IS_THERE = "thread_id != ''"
"""Of a row of messages: that it was not erased since; then only a number is left of it, and what the
message says now stands in a new row. A row that grows, or is deleted, would have SQLite move others, and
leave bytes of them behind."""

_OPTIONAL: frozenset[Any] = frozenset({str | None, int | None})


@dataclass(frozen=True)
class Table:
    """A table that a projection fills: the columns are the fields of ``row``, and a checksum."""

    name: str
    version: int
    """Of the projection; rows of another version are dropped and replayed."""
    row: type[Value]
    key: tuple[str, ...]
    changes: RunChanges
    erased: Changes | None = None
    """What becomes of the rows of an event, given what an erasure left of it; None: nothing of it is here."""
    where: str = "1"
    """Which rows there are: others only stand in the place of what was erased."""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns without the checksum, in their order."""
        return tuple(self.row.model_fields)

    @cached_property
    def flags(self) -> frozenset[str]:
        """The columns that hold truth values."""
        fields = self.row.model_fields.items()
        return frozenset(name for name, field in fields if field.annotation is bool)

    @cached_property
    def values(self) -> Callable[[Mapping[str, Cell]], tuple[Cell, ...]]:
        """Takes the values of a row in the order of the columns."""
        return cast("Callable[[Mapping[str, Cell]], tuple[Cell, ...]]", itemgetter(*self.columns))

    @cached_property
    def thread(self) -> int:
        """The place of the thread id among the columns."""
        return self.columns.index("thread_id")

    @cached_property
    def types(self) -> dict[str, type]:
        """The columns with their types."""
        fields = self.row.model_fields.items()
        return {name: _TYPES[field.annotation] for name, field in fields} | {CHECKSUM: int}

    @cached_property
    def required(self) -> frozenset[str]:
        """The columns that are never empty."""
        fields = self.row.model_fields.items()
        optional = {name for name, field in fields if field.annotation in _OPTIONAL}
        return frozenset(self.types) - optional

    def cells(self, row: Value) -> dict[str, Cell]:
        """The columns of a row, a copy."""
        cells: dict[str, Cell] = dict(row.__dict__)
        for flag in self.flags:
            cells[flag] = int(cells[flag] or 0)
        return cells

    def read(self, values: tuple[Cell, ...]) -> dict[str, Any]:
        """The fields of the row that these stored values are."""
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
    ),
    Table(
        "messages",
        messages.VERSION,
        MessageRow,
        ("thread_id", "position"),
        messages.changes_of_run,
        messages.erased_changes,
        IS_THERE,
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

FORMAT = 4
"""Of the file; one of another is folded anew. Since 2 nothing stays of what is deleted from it, and
since 4 it has the view of archived messages and the index of messages of others."""

PROJECTIONS: Mapping[str, int] = {table.name: FORMAT * 1_000 + table.version for table in TABLES}

TALLIES = "tallies"
TALLY_COLUMNS: Mapping[str, type] = {
    "thread_id": str,
    "projection": str,
    "row_count": int,
    "checksums": int,
    CHECKSUM: int,
}
"""Per conversation and projection: how many rows there must be, and the sum of their checksums."""

ARCHIVED = """
CREATE VIEW archived_messages AS
SELECT m.thread_id, m.position, m.message_id, s.summary_id
FROM messages m JOIN summaries s ON s.thread_id = m.thread_id AND s.is_active = 1
WHERE m.position >= s.covered_from AND m.position < s.first_kept_index
AND m.position NOT IN (SELECT value FROM json_each(s.exclusions))
"""
"""The messages that the active summary stands for, for whoever looks into the file."""

LATE_INDEX = "messages_by_id"


def create_tables(db: Database) -> None:
    """Make every table, in the transaction that is open."""
    for table in TABLES:
        db.table(table.name).create(table.types, pk=table.key, not_null=table.required, strict=True)
    # Requirement A3, kept by the database itself.
    db.conn.execute(
        "CREATE UNIQUE INDEX one_active_summary ON summaries (thread_id) WHERE is_active = 1"
    )
    # Few messages have an owner of their own: nothing is read where none has.
    db.conn.execute(
        "CREATE INDEX messages_of_others ON messages (thread_id, position) WHERE owner IS NOT NULL"
    )
    db.conn.execute(ARCHIVED)
    columns, key = dict(TALLY_COLUMNS), ("thread_id", "projection")
    db.table(TALLIES).create(columns, pk=key, not_null=set(columns), strict=True)


def create_late_index(db: Database) -> None:
    """Make the index that a bulk load is quicker without."""
    db.table("messages").create_index(["message_id"], LATE_INDEX, if_not_exists=True)

"""Read models in their file: tables, folds and the answers to queries."""

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from refold.application.ports.conversation_log import ConversationLog, Damage, LoggedEvent
from refold.application.ports.read_models import (
    Beginning,
    CompactionRow,
    ConversationOrder,
    ConversationRow,
    ConversationsPage,
    MessageRow,
    NoteRow,
    RequestSizesRow,
    SummaryRow,
    TopicSeen,
)
from refold.infrastructure.observability.log_observer import Notice, ignore

from . import view_answers as answers
from .catch_up import FollowedLog
from .checkpoint import Left, Progress, Total, read_progress, thread_of_mark
from .projection import Comparable
from .row_checksums import FoldDamaged, storable
from .tables import Tables
from .view_answers import count_events
from .view_folds import fold_into
from .view_tables import (
    LATE_INDEX,
    PROJECTIONS,
    TABLES,
    TALLIES,
    TALLY_COLUMNS,
    create_late_index,
    create_tables,
)

MESSAGES = "messages"


class ViewsContent:
    """The ``Content`` of the read models: one table for each, with tallies."""

    name = "views"
    title = "the read models"
    projections = PROJECTIONS
    counts = "events"
    late = frozenset({LATE_INDEX})
    schemas = frozenset(
        {
            "0fd7f08fd405ddc0c47a25875453c7f28d653a943c95d53052fc89a5d1532b01",
            "9b66b1acfb1654c983044dccfa8f72918e0c70fb15be8cf6ab93bf9f2576f6ec",
        }
    )
    compared: Sequence[Comparable] = (
        *(
            Comparable(
                table.name,
                tuple(table.types),
                table.key,
                of_event=table.name in ("messages", "summaries"),
                is_final=table.name == MESSAGES,
                where=table.where,
            )
            for table in TABLES
        ),
        Comparable(TALLIES, tuple(TALLY_COLUMNS), ("thread_id", "projection")),
    )

    def create(self, db: Tables) -> None:
        """Create every table except that of checkpoints, in the open transaction."""
        create_tables(db)

    def fold(
        self, db: Tables, progress: Progress, events: Iterator[LoggedEvent], left: Left
    ) -> tuple[Progress, bool]:
        """Fold the next batch of events in, and store rows and checkpoint in the open transaction."""
        return fold_into(db, progress, events, left)

    def finish(self, db: Tables) -> None:
        """Create the index that would slow a bulk load down."""
        create_late_index(db)

    def count(self, db: Tables) -> int:
        """Return the number of folded events."""
        return count_events(db)

    def forget(self, db: Tables) -> None:
        """Empty the tables with final rows, after a check has compared these rows."""
        db.execute(f"DELETE FROM {{{MESSAGES}}}")

    def damage(self, db: Tables) -> Iterator[Damage]:
        """Yield nothing, because every table is compared row by row."""
        del db
        return iter(())


VIEWS = ViewsContent()


Answer = TypeVar("Answer")


class Followed(Protocol):
    """A fold of the log in tables, which is up to date whenever it answers."""

    def answer(self, question: Callable[[Tables], Answer]) -> Answer:
        """Catch up with the log, then query at one moment."""
        ...

    def check(self) -> Iterator[Damage]:
        """Compare the tables with a fresh fold of the log."""
        ...

    def rebuild(self) -> int:
        """Fold the log again, and return the number of folded items."""
        ...

    def forget_erased(self) -> bool:
        """Remove erased content, and return whether nothing of it is left."""
        ...

    def drop(self) -> bool:
        """Delete the tables, and return whether nothing is left."""
        ...

    def close(self) -> None:
        """Release what is open."""
        ...


AnyFollowed = TypeVar("AnyFollowed", bound=Followed)


class _OwnedConversations:
    """The conversations that have an owner. After a change, only blocks of rows that changed are read again.

    The total of all rows proves that no other block has changed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        """Checkpoint at which the values below were read."""
        self._totals: dict[int, Total] = {}
        self._owned: dict[int, tuple[tuple[str, str], ...]] = {}
        """Owner and id of each conversation that has an owner, by block."""
        self._threads: defaultdict[str | None, set[str]] = defaultdict(set)
        """Conversations by owner, and all of them under None."""

    def find(self, db: Tables, owner: str | None) -> frozenset[str]:
        """Return the conversations of this owner, or of all owners."""
        progress = read_progress(db, PROJECTIONS)
        with self._lock:
            if progress != self._progress:
                self._read(db, progress)
                self._progress = progress
            key = None if owner is None else str(storable(owner))
            return frozenset(self._threads.get(key, ()))

    def _read(self, db: Tables, progress: Progress) -> None:
        """Read the blocks that changed.

        Raises:
            FoldDamaged: a row was changed or lost.
        """
        expected = progress.totals["conversations"]
        # Most often there is one conversation with new events, which the checkpoint names.
        near = answers.block_of(db, thread_of_mark(progress.mark))
        read = {} if near is None else {near: answers.owners_in_block(db, near)}
        totals = self._totals | {block: total for block, (total, _) in read.items()}
        if reduce(Total.plus, totals.values(), Total()) != expected:
            totals = dict(answers.blocks_of_conversations(db))
            changed = (block for block in totals if totals[block] != self._totals.get(block))
            read = {block: answers.owners_in_block(db, block) for block in changed}
            totals |= {block: total for block, (total, _) in read.items()}
        if reduce(Total.plus, totals.values(), Total()) != expected:
            raise FoldDamaged("the conversations are not those recorded")
        for block in self._owned.keys() - (totals.keys() - read.keys()):
            for owner, thread_id in self._owned.pop(block):
                for key in (owner, None):
                    self._threads[key].discard(thread_id)
        for block, (_, owned) in read.items():
            self._owned[block] = owned
            for owner, thread_id in owned:
                for key in (owner, None):
                    self._threads[key].add(thread_id)
        self._totals = totals


class FollowedViews(Generic[AnyFollowed]):
    """The ``ReadModels`` in the tables of a followed log."""

    def __init__(self, followed: AnyFollowed) -> None:
        self.followed = followed
        self._owned = _OwnedConversations()

    def conversations(self) -> Sequence[ConversationRow]:
        """Return all conversations, the latest activity first."""
        return self.followed.answer(answers.all_conversations)

    def iter_conversations(self, prefix: str = "") -> Iterator[ConversationRow]:
        """Iterate over the conversations whose ids begin with a text, in the order of their ids, page by page."""
        after: str | None = None
        read = partial(answers.conversations_after, prefix=prefix)
        while page := self.followed.answer(partial(read, after=after)):
            yield from (row for row in page if not row.erased)
            after = page[-1].thread_id

    def conversations_page(
        self, start: int, count: int, owner: str | None, order: ConversationOrder
    ) -> ConversationsPage:
        """Return a part of a sorted list of conversations."""
        return self.followed.answer(
            lambda db: answers.conversations_page(db, start, count, owner, order)
        )

    def conversations_before(
        self, before: Beginning | None, count: int, owner: str | None
    ) -> Sequence[ConversationRow]:
        """Return the next conversations, the latest beginning first."""
        return self.followed.answer(
            lambda db: answers.conversations_before(db, before, count, owner)
        )

    def conversations_of(self, owner: str) -> Sequence[ConversationRow]:
        """Return the conversations of an owner, the latest activity first."""
        return self.followed.answer(lambda db: self._conversations_of(db, owner))

    def _conversations_of(self, db: Tables, owner: str) -> Sequence[ConversationRow]:
        rows = answers.conversations_of(db, owner)
        if frozenset(row.thread_id for row in rows) != self._owned.find(db, owner):
            raise FoldDamaged("the conversations of an owner are not those recorded")
        return rows

    def owned_conversations(self, owner: str | None = None) -> Collection[str]:
        """Return the conversations of this owner, or of all owners."""
        return self.followed.answer(lambda db: self._owned.find(db, owner))

    def has_others(self, thread_id: str, owner: str, start: int, stop: int) -> bool:
        """Return whether a message in a range of positions belongs to another owner."""
        return self.followed.answer(
            lambda db: answers.has_others(db, thread_id, owner, start, stop)
        )

    def messages_of(self, owner: str) -> Mapping[str, frozenset[int]]:
        """Return the positions of the messages that name this owner, by conversation."""
        return self.followed.answer(lambda db: answers.messages_of(db, owner))

    def owners_of(self, thread_id: str) -> Mapping[int, str]:
        """Return the owners of the messages that name one, by position."""
        return self.followed.answer(lambda db: answers.owners_of(db, thread_id))

    def guests_of(self, owner: str) -> Mapping[str, Mapping[int, str]]:
        """Return the other owners of messages in an owner's conversations, by conversation and position."""
        return self.followed.answer(lambda db: answers.guests_of(db, owner))

    def conversation(self, thread_id: str) -> ConversationRow | None:
        """Return a conversation, or None."""
        return self.followed.answer(lambda db: answers.one_conversation(db, thread_id))

    def messages(self, thread_id: str, start: int, stop: int) -> Sequence[MessageRow]:
        """Return the messages in a range of positions."""
        return self.followed.answer(lambda db: answers.some_messages(db, thread_id, start, stop))

    def messages_by_id(self, thread_id: str, ids: Collection[str]) -> Sequence[MessageRow]:
        """Return the messages of a conversation that have one of these ids, in order."""
        return self.followed.answer(lambda db: answers.messages_by_id(db, thread_id, ids))

    def newest_message_by(self, thread_id: str, at: str) -> MessageRow | None:
        """Return the newest message at or before a time, or None."""
        return self.followed.answer(lambda db: answers.newest_message_by(db, thread_id, at))

    def summaries(self, thread_id: str) -> Sequence[SummaryRow]:
        """Return all summaries of a conversation, oldest first."""
        return self.followed.answer(lambda db: answers.all_summaries(db, thread_id))

    def summary(self, thread_id: str, summary_id: str) -> SummaryRow | None:
        """Return one summary, or None."""
        return self.followed.answer(lambda db: answers.one_summary(db, thread_id, summary_id))

    def conversations_with_summary(self, summary_id: str) -> Sequence[str]:
        """Return the conversations that have a summary with this id, in the order of their ids."""
        return self.followed.answer(lambda db: answers.conversations_with_summary(db, summary_id))

    def compactions(self, thread_id: str) -> Sequence[CompactionRow]:
        """Return all compaction attempts of a conversation, in the order of the log."""
        return self.followed.answer(lambda db: answers.all_compactions(db, thread_id))

    def topics(self, thread_id: str) -> Sequence[TopicSeen]:
        """Return the topics of the active summary."""
        return self.followed.answer(lambda db: answers.seen_topics(db, thread_id))

    def notes(self, thread_id: str) -> Sequence[NoteRow]:
        """Return the notes of a conversation, oldest first."""
        return self.followed.answer(lambda db: answers.some_notes(db, thread_id))

    def request_sizes(self, thread_id: str) -> Sequence[RequestSizesRow]:
        """Return the sizes of a conversation in rows of equal length."""
        return self.followed.answer(lambda db: answers.request_sizes(db, thread_id))

    def notes_of(self, owner: str) -> Sequence[NoteRow]:
        """Return the notes of all conversations of an owner."""
        return self.followed.answer(lambda db: answers.notes_of(db, owner))

    def active_summaries_of(self, owner: str) -> Sequence[SummaryRow]:
        """Return the active summaries of all conversations of an owner."""
        return self.followed.answer(lambda db: answers.active_summaries_of(db, owner))

    def all_notes(self) -> Sequence[NoteRow]:
        """Return the notes of all conversations."""
        return self.followed.answer(answers.all_notes)

    def check(self) -> Iterator[Damage]:
        """Yield all differences from a replay. Rows that are not folded in yet are not damage."""
        return self.followed.check()

    def rebuild(self) -> int:
        """Delete the read models, fold the log again, and return the number of events."""
        return self.followed.rebuild()

    def drop(self) -> bool:
        """Delete the read models, and return whether nothing is left."""
        return self.followed.drop()

    def forget_erased(self) -> bool:
        """Remove erased content from all files, and return whether nothing of it is left."""
        return self.followed.forget_erased()

    def close(self) -> None:
        """Release files and connections. A second call does nothing."""
        self.followed.close()


class SQLiteViews(FollowedViews[FollowedLog]):
    """The ``ReadModels`` in an SQLite file next to the log, which may be deleted at any time.

    If the file cannot be used (a read-only folder, a full disk), the read models are kept in memory
    until it can be used again, and a warning is logged.
    """

    def __init__(
        self,
        path: str | Path,
        log: ConversationLog,
        *,
        of: str | Path | None = None,
        notify: Callable[[Notice], None] = ignore,
    ) -> None:
        """Create the read models. The file is opened by the first query; ``":memory:"`` uses no disk.

        ``of`` is the log file, which gives the new file its permissions. ``notify`` is called for each
        rebuild because of damage.
        """
        super().__init__(FollowedLog(path, VIEWS, log, of=of, notify=notify))

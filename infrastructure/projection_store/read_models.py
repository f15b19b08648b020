"""What the file of the read models consists of."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from sqlite_utils import Database

from refold.application.ports.conversation_log import ConversationLog, Damage, LoggedEvent
from refold.application.ports.read_models import (
    CompactionRow,
    ConversationRow,
    MessageRow,
    NoteRow,
    SummaryRow,
    TopicSeen,
)
from refold.infrastructure.observability.log_observer import Notice, ignore

from . import view_answers as answers
from .catch_up import FollowedLog
from .checkpoint import Left, Progress
from .projection import Comparable
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
    """``Content`` of the read models: one table for each, with tallies."""

    name = "views"
    title = "the read models"
    projections = PROJECTIONS
    counts = "events"
    late = frozenset({LATE_INDEX})
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

    def create(self, db: Database) -> None:
        """See ``Content``."""
        create_tables(db)

    def fold(
        self, db: Database, progress: Progress, events: Iterator[LoggedEvent], left: Left
    ) -> tuple[Progress, bool]:
        """See ``Content``."""
        return fold_into(db, progress, events, left)

    def finish(self, db: Database) -> None:
        """See ``Content``."""
        create_late_index(db)

    def count(self, db: Database) -> int:
        """See ``Content``."""
        return count_events(db)

    def forget(self, db: Database) -> None:
        """See ``Content``."""
        db.conn.execute(f"DELETE FROM {MESSAGES}")

    def damage(self, db: Database) -> Iterator[Damage]:
        """See ``Content``. Every table is compared row by row."""
        del db
        return iter(())


VIEWS = ViewsContent()


class SQLiteViews:
    """``ReadModels`` in an SQLite file beside the log; the file may be deleted at any time.

    Where the file cannot be used (a read-only folder, a full disk), the read models live in memory
    for as long as this object does, and a warning is logged.
    """

    def __init__(
        self,
        path: str | Path,
        log: ConversationLog,
        *,
        of: str | Path | None = None,
        told: Callable[[Notice], None] = ignore,
    ) -> None:
        """Nothing is opened before the first question. ``":memory:"`` never touches a disk.

        ``of``: the file of the log; whoever may use that one may use this one. ``told``: of every
        rebuild that damage makes necessary.
        """
        self.followed = FollowedLog(path, VIEWS, log, of=of, told=told)

    def conversations(self) -> Sequence[ConversationRow]:
        """See ``ReadModels``."""
        return self.followed.answer(answers.all_conversations)

    def conversations_of(self, owner: str) -> Sequence[ConversationRow]:
        """See ``ReadModels``."""
        return self.followed.answer(lambda db: answers.conversations_of(db, owner))

    def has_others(self, thread_id: str, owner: str, start: int, stop: int) -> bool:
        """See ``ReadModels``."""
        return self.followed.answer(
            lambda db: answers.has_others(db, thread_id, owner, start, stop)
        )

    def messages_of(self, owner: str) -> Mapping[str, frozenset[int]]:
        """See ``ReadModels``."""
        return self.followed.answer(lambda db: answers.messages_of(db, owner))

    def owners_of(self, thread_id: str) -> Mapping[int, str]:
        """See ``ReadModels``."""
        return self.followed.answer(lambda db: answers.owners_of(db, thread_id))

    def guests_of(self, owner: str) -> Mapping[str, Mapping[int, str]]:
        """See ``ReadModels``."""
        return self.followed.answer(lambda db: answers.guests_of(db, owner))

    def conversation(self, thread_id: str) -> ConversationRow | None:
        """See ``ReadModels``."""
        return self.followed.answer(lambda db: answers.one_conversation(db, thread_id))

    def messages(self, thread_id: str, start: int, stop: int) -> Sequence[MessageRow]:
        """See ``ReadModels``."""
        return self.followed.answer(lambda db: answers.some_messages(db, thread_id, start, stop))

    def newest_message_by(self, thread_id: str, at: str) -> MessageRow | None:
        """See ``ReadModels``."""
        return self.followed.answer(lambda db: answers.newest_message_by(db, thread_id, at))

    def summaries(self, thread_id: str) -> Sequence[SummaryRow]:
        """See ``ReadModels``."""
        return self.followed.answer(lambda db: answers.all_summaries(db, thread_id))

    def compactions(self, thread_id: str) -> Sequence[CompactionRow]:
        """See ``ReadModels``."""
        return self.followed.answer(lambda db: answers.all_compactions(db, thread_id))

    def topics(self, thread_id: str) -> Sequence[TopicSeen]:
        """See ``ReadModels``."""
        return self.followed.answer(lambda db: answers.seen_topics(db, thread_id))

    def notes(self, thread_id: str) -> Sequence[NoteRow]:
        """See ``ReadModels``."""
        return self.followed.answer(lambda db: answers.some_notes(db, thread_id))

    def notes_of(self, owner: str) -> Sequence[NoteRow]:
        """See ``ReadModels``."""
        return self.followed.answer(lambda db: answers.notes_of(db, owner))

    def active_summaries_of(self, owner: str) -> Sequence[SummaryRow]:
        """See ``ReadModels``."""
        return self.followed.answer(lambda db: answers.active_summaries_of(db, owner))

    def all_notes(self) -> Sequence[NoteRow]:
        """See ``ReadModels``."""
        return self.followed.answer(answers.all_notes)

    def check(self) -> Iterator[Damage]:
        """See ``ReadModels``. Rows that are not folded in yet are no damage."""
        return self.followed.check()

    def rebuild(self) -> int:
        """See ``ReadModels``."""
        return self.followed.rebuild()

    def drop(self) -> bool:
        """See ``ReadModels``."""
        return self.followed.drop()

    def forget_erased(self) -> bool:
        """See ``ReadModels``."""
        return self.followed.forget_erased()

    def close(self) -> None:
        """See ``ReadModels``."""
        self.followed.close()

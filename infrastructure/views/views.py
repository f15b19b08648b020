"""The read models of a log: caught up when they are read, rebuilt by replay when they are damaged."""

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from sqlite_utils import Database

from refold.application.errors import LogError
from refold.application.event_log import ConversationLog, Damage
from refold.application.read_models import CompactionRow, ConversationRow, MessageRow, SummaryRow
from refold.infrastructure.observing.notices import Notice, nobody

from . import answers
from .checking import check_file
from .damage import ViewsDamaged, is_unusable
from .file import ViewsFile, transaction
from .folding import fold_all, fold_into
from .outdating import ViewsOutdated, reading_from, still_valid
from .progress import events_after, read_progress
from .tables import LATE_INDEX, create_late_index, schema_of

TRIES = 4
"""As it is, rebuilt, in memory, and rebuilt in memory."""

BULK = 200_000
"""Events that a new file is filled with before others may open it: some seconds of work."""

logger = logging.getLogger(__name__)
Answer = TypeVar("Answer")


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
        told: Callable[[Notice], None] = nobody,
    ) -> None:
        """Nothing is opened before the first question. ``":memory:"`` never touches a disk.

        ``of``: the file of the log; whoever may use that one may use this one. ``told``: of every
        rebuild that damage makes necessary.
        """
        self._log = log
        self._told = told
        self._path = None if str(path) == ":memory:" else Path(path).absolute()
        self._of = None if of is None else Path(of).absolute()
        self._file = self._at(self._path)
        self._threads = threading.RLock()
        self._pid = os.getpid()
        self._damaged = False
        """Whether they are being rebuilt since they were damaged."""

    def conversations(self) -> Sequence[ConversationRow]:
        """See ``ReadModels``."""
        return self._answer(answers.all_conversations)

    def conversation(self, thread_id: str) -> ConversationRow | None:
        """See ``ReadModels``."""
        return self._answer(lambda db: answers.one_conversation(db, thread_id))

    def messages(self, thread_id: str, start: int, stop: int) -> Sequence[MessageRow]:
        """See ``ReadModels``."""
        return self._answer(lambda db: answers.some_messages(db, thread_id, start, stop))

    def summaries(self, thread_id: str) -> Sequence[SummaryRow]:
        """See ``ReadModels``."""
        return self._answer(lambda db: answers.all_summaries(db, thread_id))

    def compactions(self, thread_id: str) -> Sequence[CompactionRow]:
        """See ``ReadModels``."""
        return self._answer(lambda db: answers.all_compactions(db, thread_id))

    def check(self) -> Iterator[Damage]:
        """See ``ReadModels``. Rows that are not folded in yet are no damage."""
        with self._alone():
            return iter(tuple(check_file(self._file, self._log)))

    def rebuild(self) -> int:
        """See ``ReadModels``."""
        with self._alone():
            try:
                self._file.drop()
            except OSError as error:
                self._move_to_memory(error)
            return self._answer(answers.count_events)

    def drop(self) -> bool:
        """See ``ReadModels``."""
        with self._alone():
            try:
                self._file.drop(any_file=True)
                if self._file.path != self._path:
                    # They were moved into memory; what the file held is there still.
                    self._at(self._path).drop(any_file=True)
            except OSError as error:
                logger.warning("the read models %s cannot be deleted: %s", self._path, error)
                return False
        return True

    def close(self) -> None:
        """See ``ReadModels``."""
        if os.getpid() != self._pid:
            return
        with self._alone():
            self._file.close()

    @contextmanager
    def _alone(self) -> Generator[None]:
        # Before the lock: a thread that held it does not live in a forked process.
        if os.getpid() != self._pid:
            raise LogError(
                f"{self._file.path or 'the log'} was opened before this process was forked; open it "
                "again here"
            )
        with self._threads:
            yield

    def _answer(self, question: Callable[[Database], Answer]) -> Answer:
        with self._alone():
            for tries in range(TRIES):
                try:
                    db = self._file.database()
                    self._catch_up(db)
                    with transaction(db, "DEFERRED"):
                        answer = question(db)
                        self._tell_rebuilt(db)
                    return answer
                except (ViewsDamaged, sqlite3.Error, OSError, UnicodeDecodeError) as error:
                    self._repair(error, tries)
        raise LogError(
            f"the read models of {self._file.path or 'the log'} cannot be rebuilt; "
            "run `refold verify`, the log may be damaged"
        )

    def _tell_rebuilt(self, db: Database) -> None:
        if self._damaged:
            self._damaged = False
            self._told(Notice("views.rebuilt", "", {"events": answers.count_events(db)}))

    def _fill(self, db: Database) -> None:
        # Others wait meanwhile: a very long log is finished in the way that lets them in.
        events = islice(self._log.scan(), BULK)
        fold_all(db, still_valid(events, reading_from(db)))
        create_late_index(db)

    def _catch_up(self, db: Database) -> None:
        known = read_progress(db)
        events = events_after(self._log, known)
        first = next(events, None)
        if first is None:
            return
        read_from = reading_from(db)
        events = still_valid(chain((first,), events), read_from)
        more = True
        while more:
            with transaction(db, "IMMEDIATE"):
                # Another process may have folded the same events in meanwhile.
                now = read_progress(db)
                if now != known:
                    events = still_valid(events_after(self._log, now), read_from)
                known, more = fold_into(db, now, events)
        if LATE_INDEX not in schema_of(db):
            with transaction(db, "IMMEDIATE"):
                create_late_index(db)

    def _repair(self, error: Exception, tries: int) -> None:
        if isinstance(error, ViewsOutdated):
            logger.info("folding the read models anew: %s", error)
        elif is_unusable(error) or (tries and self._file.path is not None):
            self._move_to_memory(error)
            return
        else:
            logger.warning(
                "the read models %s are damaged (%s); rebuilding them from the log",
                self._file.path or "in memory",
                error,
            )
            self._damaged = True
        try:
            self._file.drop()
        except OSError as refused:
            self._move_to_memory(refused)

    def _move_to_memory(self, error: Exception) -> None:
        logger.warning(
            "the read models %s cannot be used (%s); keeping them in memory instead",
            self._file.path or "in memory",
            error,
        )
        self._file.close()
        self._file = self._at(None)

    def _at(self, path: Path | None) -> ViewsFile:
        return ViewsFile(path, self._fill, self._log.newest, of=self._of)

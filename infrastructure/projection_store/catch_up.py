"""Asking a file that others may damage, or delete and make anew, while it is asked."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from sqlite_utils import Database

from refold.application.errors import LogError
from refold.application.ports.conversation_log import ConversationLog, Damage
from refold.application.runtime.plain_lines import plain_logger, unquoted
from refold.infrastructure.files.fork_gate import FileTurn
from refold.infrastructure.observability.log_observer import Notice, ignore
from refold.infrastructure.sqlite.sqlite_connection import transaction

from .checkpoint import (
    FoldOutdated,
    events_after,
    left_in,
    read_progress,
    reading_from,
    still_valid,
    write_reading_from,
)
from .database_file import DatabaseFile
from .ownership import declared_in
from .projection import Content, wrapped
from .projection_check import check_file, check_place, fold_all
from .projection_file import kind_of
from .row_checksums import BROKEN, FoldDamaged, MemoryShort, blamed_on_file, is_unusable

TRIES = 4
"""As it is, made anew, in memory, and anew in memory."""
RENEWALS = 100
"""How often a question is asked again of a file that others made meanwhile: erasures drop the old one."""

Answer = TypeVar("Answer")


class NoAnswer(Exception):
    """Nothing helped. Never leaves the infrastructure."""


def answered(
    ask: Callable[[], Answer],
    *,
    is_replaced: Callable[[], bool],
    repair: Callable[[Exception, int], None],
) -> Answer:
    """Ask, and where that fails ask again: another file as it is, the same one repaired.

    ``repair`` is told how often it was called before. What an erasure outdates is no damage: it is not
    counted. Where memory is short, the same file is asked once more before it is repaired.

    Raises:
        NoAnswer: it failed after every repair.
        LogError: memory is still short after a repair.
    """
    renewals = repairs = shortages = 0
    while repairs < TRIES:
        try:
            with blamed_on_file():
                return ask()
        except BROKEN as error:
            is_outdated = isinstance(error, FoldOutdated)
            if isinstance(error, MemoryShort) and (shortages := shortages + 1) != 2:
                _refuse_third(shortages, error)
            elif renewals < RENEWALS and (is_outdated or is_replaced()):
                renewals += 1
                if is_outdated:
                    repair(error, repairs)
            else:
                repair(error, repairs)
                repairs += 1
    raise NoAnswer


def _refuse_third(shortages: int, error: MemoryShort) -> None:
    if shortages > 2:
        raise LogError(
            "there is not enough memory to answer; free some and ask again, nothing is lost"
        ) from error


BULK = 200_000
"""Events that a new file is filled with before others may open it: some seconds of work."""

SOON = 1_000
"""Events that are folded in by an erasure, whatever there is."""

logger = plain_logger(__name__)


class FollowedLog:
    """What was folded from a log, in an SQLite file beside it; the file may be deleted at any time.

    Where the file cannot be used (a read-only folder, a full disk), what is folded lives in memory for
    as long as this object does, and a warning is logged.
    """

    def __init__(
        self,
        path: str | Path,
        content: Content,
        log: ConversationLog,
        *,
        of: str | Path | None = None,
        told: Callable[[Notice], None] = ignore,
    ) -> None:
        """Nothing is opened before the first question. ``":memory:"`` never touches a disk.

        ``of``: the file of the log; whoever may use that one may use this one. ``told``: of every
        rebuild that damage makes necessary.
        """
        self._content = content
        self._log = log
        self._told = told
        self._path = None if str(path) == ":memory:" else Path(path).absolute()
        self._of = None if of is None else Path(of).absolute()
        self._file = self._at(self._path)
        self._turn = FileTurn(f"{of or path}", self.let_go)
        self._damaged = False
        """Whether it is being rebuilt since it was damaged."""

    def answer(self, question: Callable[[Database], Answer]) -> Answer:
        """Catch up, then ask in one read transaction; what is damaged is rebuilt and asked again.

        Raises:
            LogError: the log cannot be read, or it was opened before this process was forked.
        """
        with self._alone():
            try:
                return answered(
                    lambda: self._asked(question),
                    is_replaced=lambda: self._file.is_replaced,
                    repair=self._repair,
                )
            except NoAnswer as error:
                raise LogError(
                    f"{self._content.title} of {self._file.path or 'the log'} cannot be rebuilt; "
                    "run `refold verify`, the log may be damaged"
                ) from error

    def check(self) -> Iterator[Damage]:
        """Compare everything with a fresh fold of the log, without changing either.

        What is not folded in yet is no damage. A file of somebody else in the place of ours is told.
        """
        with self._alone():
            found = tuple(check_file(self._file, self._content, self._log))
            if self._file.path != self._path:
                found = (*check_place(self._at(self._path)), *found)
            return iter(found)

    def look_into(self, look: Callable[[Database], Answer]) -> Answer | None:
        """Ask the file as it lies there, without folding anything; None if there is none."""
        with self._alone(), self._file.unchanged() as found:
            return None if found is None or self._file.path is None else look(wrapped(found))

    def distrust(self, problem: str) -> None:
        """Drop what was found to be damaged; the next question has it rebuilt."""
        with self._alone():
            self._repair(FoldDamaged(problem), 0)

    def rebuild(self) -> int:
        """Drop everything and fold the log again; returns how much that is (``Content.count``)."""
        with self._alone():
            self._drop()
            return self.answer(self._content.count)

    def forget_erased(self) -> bool:
        """Take out what was erased, so that no byte of it is left in any file; whether none is.

        That is done in place; where it cannot be, everything is deleted.
        """
        with self._alone():
            try:
                with blamed_on_file():
                    if self._has_forgotten():
                        return True
            except (LogError, *BROKEN) as error:
                # Neither a damaged file nor a log that is damaged elsewhere may keep what was erased.
                logger.info("%s is folded anew: %s", self._content.title, error)
            return self.drop()

    def drop(self) -> bool:
        """Delete everything that was folded, here and on the disk. Whether nothing is left."""
        with self._alone():
            try:
                with blamed_on_file():
                    self._file.drop(any_file=True)
                    if self._file.path != self._path:
                        # It was moved into memory; what the file held is there still.
                        with closing(self._at(self._path)) as elsewhere:
                            elsewhere.drop(any_file=True)
            except BROKEN as error:
                logger.warning(
                    "%s %s cannot be deleted: %s", self._content.title, self._path, error
                )
                return False
        return True

    def close(self) -> None:
        """Release files and connections; closing twice is fine."""
        if self._turn.process.is_this:
            with self._alone():
                self._file.close()

    def let_go(self) -> None:
        """Close the file before a fork; the next question opens it again."""
        self._file.let_go()

    def _asked(self, question: Callable[[Database], Answer]) -> Answer:
        db = self._database()
        self._catch_up(db)
        with transaction(db.conn, "DEFERRED"):
            answer = question(db)
            self._tell_rebuilt(db)
        return answer

    def _has_forgotten(self) -> bool:
        """Fold the erasures in, and leave nothing of what was there before; False: it cannot be done so."""
        if self._file.path != self._path:
            return False  # What the file holds that could not be used is there still.
        if self._path is None:
            if self._file.is_open and not self._is_far_behind():
                self._catch_up(self._database())
                return True
            return False
        if not self._file.is_alone or self._is_far_behind():
            return False
        with self._file.lasting():
            self._catch_up(self._database())
            return self._file.empty_ahead()

    def _is_far_behind(self) -> bool:
        """Whether most of the log is not folded in: that is left to whoever asks."""
        known = read_progress(self._database(), self._content.projections)
        return self._log.newest() > 2 * known.number + SOON

    def _alone(self) -> AbstractContextManager[None]:
        return self._turn.taken()

    def _tell_rebuilt(self, db: Database) -> None:
        if self._damaged:
            self._damaged = False
            name = f"{self._content.name}.rebuilt"
            self._told(Notice(name, "", {self._content.counts: self._content.count(db)}))

    def _database(self) -> Database:
        return wrapped(self._file.connection())

    def _fill(self, connection: sqlite3.Connection) -> None:
        db = wrapped(connection)
        write_reading_from(db, self._log.newest())
        # Others wait meanwhile: a very long log is finished in the way that lets them in.
        events, read_from = islice(self._log.scan(), BULK), reading_from(db)
        left = left_in(self._log, read_from)
        fold_all(self._content, db, still_valid(events, read_from), left)
        self._content.finish(db)

    def _catch_up(self, db: Database) -> None:
        known = read_progress(db, self._content.projections)
        events = events_after(self._log, known)
        first = next(events, None)
        if first is None:
            return
        read_from = reading_from(db)
        events = still_valid(chain((first,), events), read_from)
        left = left_in(self._log, read_from)
        more = True
        while more:
            with transaction(db.conn, "IMMEDIATE"):
                # Another process may have folded the same events in meanwhile.
                now = read_progress(db, self._content.projections)
                if now != known:
                    events = still_valid(events_after(self._log, now), read_from)
                known, more = self._content.fold(db, now, events, left)
        if not self._content.late <= declared_in(db.conn).keys():
            with transaction(db.conn, "IMMEDIATE"):
                self._content.finish(db)

    def _repair(self, error: Exception, tries: int) -> None:
        title = self._content.title
        if isinstance(error, FoldOutdated):
            logger.info("folding %s anew: %s", title, error)
        elif is_unusable(error, self._file.path) or (tries and self._file.path is not None):
            self._move_to_memory(error)
            return
        else:
            place = self._file.path or "in memory"
            why = unquoted(error)
            logger.warning("%s %s: damaged (%s); rebuilding from the log", title, place, why)
            self._damaged = True
        self._drop()

    def _drop(self) -> None:
        try:
            with blamed_on_file():
                self._file.drop()
        except BROKEN as refused:
            self._move_to_memory(refused)

    def _move_to_memory(self, error: Exception) -> None:
        logger.warning(
            "%s %s cannot be used (%s): kept in memory instead",
            self._content.title,
            self._file.path or "in memory",
            unquoted(error),
        )
        self._file.close()
        self._file = self._at(None)

    def _at(self, path: Path | None) -> DatabaseFile:
        return DatabaseFile(path, kind_of(self._content), self._fill, of=self._of)

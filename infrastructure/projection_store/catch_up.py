"""Query a file that others may damage, delete or replace during the query."""

import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from refold.application.errors import LogError, was_closed
from refold.application.ports.conversation_log import ConversationLog, Damage
from refold.application.runtime.plain_lines import plain_logger, strip_quotations
from refold.infrastructure.files.fork_gate import FileTurn
from refold.infrastructure.observability.log_observer import Notice, ignore
from refold.infrastructure.sqlite.sqlite_connection import declared_in, transaction
from refold.infrastructure.sqlite.sqlite_failures import as_shortage

from .checkpoint import (
    POSITIONS,
    FoldOutdated,
    Progress,
    events_after,
    left_in,
    nowhere,
    progress_in,
    read_progress,
    reading_from,
    still_valid,
    write_reading_from,
)
from .database_file import DatabaseFile, DisplacedFile
from .projection import Content, kind_of
from .projection_check import check_file, check_place, fold_all
from .row_checksums import BROKEN, FoldDamaged, MemoryShort, blamed_on_file, is_unusable
from .tables import SQLiteTables, Tables

TRIES = 4
"""Attempts: the file as it is, a rebuilt file, memory, and rebuilt memory."""
RENEWALS = 100
"""Maximum number of retries because other processes replaced the file, as erasures do."""

Answer = TypeVar("Answer")


class NoAnswer(Exception):
    """Every attempt to answer failed. This error never leaves the infrastructure layer."""


def query_with_repairs(
    ask: Callable[[], Answer],
    *,
    is_replaced: Callable[[], bool],
    repair: Callable[[Exception, int], None],
) -> Answer:
    """Call ``ask``, and retry if it fails: at once if the file was replaced, or else after a repair.

    ``repair`` gets the number of repairs before it. A file that an erasure outdated is not damaged, so its
    rebuild does not count as a repair. If memory is short, the same file is queried once more before a
    repair.

    Raises:
        NoAnswer: every attempt failed.
        LogError: memory is still short after a repair.
    """
    renewals = repairs = shortages = 0
    last: Exception | None = None
    while repairs < TRIES:
        try:
            with blamed_on_file():
                return ask()
        except BROKEN as error:
            last = error
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
    raise NoAnswer from last


def _refuse_third(shortages: int, error: MemoryShort) -> None:
    if shortages > 2:
        raise LogError(
            "there is not enough memory to answer; free some and try again (nothing is lost)"
        ) from error


BULK = 200_000
"""Number of events that a new file is filled with before others may open it: some seconds of work."""

SOON = 1_000
"""Number of new events that an erasure always folds in, even if they are most of the log."""

logger = plain_logger(__name__)


class FollowedLog:
    """A fold of the log in an SQLite file next to it, which may be deleted at any time.

    If the file cannot be used (a read-only folder, a full disk), the fold is kept in memory until it can be
    used again, and a warning is logged.
    """

    def __init__(
        self,
        path: str | Path,
        content: Content,
        log: ConversationLog,
        *,
        of: str | Path | None = None,
        notify: Callable[[Notice], None] = ignore,
    ) -> None:
        """Create the fold. The file is opened by the first query; ``":memory:"`` uses no disk.

        ``of`` is the log file, which gives the new file its permissions. ``notify`` is called for each
        rebuild because of damage.
        """
        self._content = content
        self._log = log
        self._notify = notify
        self._path = None if str(path) == ":memory:" else Path(path).absolute()
        self._of = None if of is None or str(of) == ":memory:" else Path(of).absolute()
        self._file = self._file_at(self._path)
        self._displaced: DisplacedFile[DatabaseFile] | None = None
        self._turn = FileTurn(f"{of or path}", self.let_go)
        self._closed = False
        self._compared: Progress | None = None
        """Checkpoint whose last event was compared with the log."""
        self._opened: tuple[object, Progress] = None, nowhere(content.projections)
        """Rows of the checkpoint that were opened last, and what they contain."""
        self._damaged = False
        """True if a rebuild because of damage has begun."""

    def answer(self, question: Callable[[Tables], Answer]) -> Answer:
        """Catch up with the log, then query in one read transaction. Rebuild a damaged file and retry.

        Raises:
            LogError: the log cannot be read, or it was opened before this process was forked.
        """
        with self._alone():
            if self._displaced is not None:
                self._return_to_file(self._displaced)
            try:
                return query_with_repairs(
                    lambda: self._ask(question),
                    is_replaced=lambda: self._file.is_replaced,
                    repair=self._repair,
                )
            except NoAnswer as error:
                title = f"{self._content.title} of {self._of or self._path or 'the log'}"
                raise as_shortage(title, error) or LogError(
                    f"{title} cannot be rebuilt ({strip_quotations(error.__cause__ or error)}); run "
                    "`refold verify`, the log may be damaged"
                ) from error

    def check(self) -> Iterator[Damage]:
        """Compare the file with a fresh fold of the log, and change neither.

        Events that are not folded in yet are not damage. A file of another program in this place is
        reported.
        """
        with self._alone():
            found = tuple(check_file(self._file, self._content, self._log))
            if self._file.path != self._path:
                found = (*check_place(self._file_at(self._path)), *found)
            return iter(found)

    def look_into(self, look: Callable[[SQLiteTables], Answer]) -> Answer | None:
        """Query the file without folding new events. Return None if there is no file."""
        with self._alone(), self._file.unchanged() as found:
            return None if found is None or self._file.path is None else look(SQLiteTables(found))

    def distrust(self, problem: str) -> None:
        """Delete the damaged file. The next query rebuilds it."""
        with self._alone():
            self._repair(FoldDamaged(problem), 0)

    def rebuild(self) -> int:
        """Delete the file, fold the log again, and return the number of folded items (``Content.count``)."""
        with self._alone():
            self._drop()
            return self.answer(self._content.count)

    def forget_erased(self) -> bool:
        """Remove erased content from all files, and return whether nothing of it is left.

        Content is removed in place. If that is not possible, the whole file is deleted.
        """
        with self._alone():
            try:
                with blamed_on_file():
                    if self._has_forgotten():
                        return True
            except (LogError, RecursionError, *BROKEN) as error:
                # Neither a damaged file nor a log with damage elsewhere may keep erased content.
                logger.info("%s is rebuilt: %s", self._content.title, error)
            return self.drop()

    def drop(self) -> bool:
        """Delete the fold in memory and on disk, and return whether nothing is left."""
        with self._alone():
            try:
                with blamed_on_file():
                    self._file.drop(any_file=True)
                    if self._file.path != self._path:
                        # The fold was moved into memory, but the content of the file still exists.
                        with closing(self._file_at(self._path)) as elsewhere:
                            elsewhere.drop(any_file=True)
            except BROKEN as error:
                logger.warning(
                    "%s %s cannot be deleted: %s", self._content.title, self._path, error
                )
                return False
        return True

    def close(self) -> None:
        """Release files and connections. A second call does nothing."""
        if self._turn.process.is_this:
            with self._turn.taken():
                self._closed = True
                self._file.close()

    def let_go(self) -> None:
        """Close the file before a fork. The next query opens it again."""
        self._file.let_go()

    def _ask(self, question: Callable[[Tables], Answer]) -> Answer:
        db = self._database()
        self._catch_up(db)
        with transaction(db.connection, "DEFERRED"):
            answer = question(db)
            self._tell_rebuilt(db)
        return answer

    def _has_forgotten(self) -> bool:
        """Fold the erasures in and remove the older content. Return False if that is not possible."""
        if self._file.path != self._path:
            return False  # The content of the unusable file still exists.
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
        """Return whether most of the log is not folded in. In that case the next query catches up."""
        known = read_progress(self._database(), self._content.projections)
        return self._log.newest() > 2 * known.number + SOON

    @contextmanager
    def _alone(self) -> Generator[None]:
        with self._turn.taken():
            if self._closed:  # By another thread. The file must not be opened again.
                raise was_closed(self._of or "the log")
            yield

    def _tell_rebuilt(self, db: Tables) -> None:
        if self._damaged:
            self._damaged = False
            name = f"{self._content.name}.rebuilt"
            self._notify(Notice(name, "", {self._content.counts: self._content.count(db)}))

    def _database(self) -> SQLiteTables:
        return SQLiteTables(self._file.connection())

    def _fill(self, connection: sqlite3.Connection) -> None:
        db = SQLiteTables(connection)
        write_reading_from(db, self._log.newest())
        # Other processes wait in the meantime, so a very long log is finished in a way that admits
        # them.
        events, read_from = islice(self._log.scan(), BULK), reading_from(db)
        left = left_in(self._log, read_from)
        fold_all(self._content, db, still_valid(events, read_from), left)
        self._content.finish(db)

    def _catch_up(self, db: SQLiteTables) -> None:
        known = self._stored_progress(db)
        if known == self._compared and self._log.newest() == known.number:
            return
        events = events_after(self._log, known)
        self._compared = known
        first = next(events, None)
        if first is None:
            return
        read_from = reading_from(db)
        events = still_valid(chain((first,), events), read_from)
        left = left_in(self._log, read_from)
        more = True
        while more:
            with transaction(db.connection, "IMMEDIATE"):
                # Another process may have folded in the same events in the meantime.
                now = read_progress(db, self._content.projections)
                if now != known:
                    events = still_valid(events_after(self._log, now), read_from)
                known, more = self._content.fold(db, now, events, left)
        self._compared = known  # Its last event was just read from the log.
        late = self._content.late
        if late and not late <= declared_in(db.connection).keys():
            with transaction(db.connection, "IMMEDIATE"):
                self._content.finish(db)

    def _stored_progress(self, db: SQLiteTables) -> Progress:
        """Return the stored checkpoint. Its rows are opened again only if they have changed."""
        rows = db.execute(f"SELECT * FROM {{{POSITIONS}}}").fetchall()
        if rows != self._opened[0]:
            self._opened = rows, progress_in(rows, self._content.projections)
        return self._opened[1]

    def _repair(self, error: Exception, tries: int) -> None:
        title = self._content.title
        if isinstance(error, FoldOutdated):
            logger.info("rebuilding %s: %s", title, error)
        elif is_unusable(error, self._file.path) or (tries and self._file.path is not None):
            self._move_to_memory(error)
            return
        else:
            place = self._file.path or "in memory"
            why = strip_quotations(error)
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
            strip_quotations(error),
        )
        if self._file.path is not None:
            self._displaced = DisplacedFile(self._file, error)
        self._file.close()
        self._file = self._file_at(None)

    def _return_to_file(self, displaced: DisplacedFile[DatabaseFile]) -> None:
        if (file := displaced.try_again()) is not None:
            self._file.close()
            self._file, self._displaced, self._compared = file, None, None

    def _file_at(self, path: Path | None) -> DatabaseFile:
        return DatabaseFile(path, kind_of(self._content), self._fill, of=self._of)

"""Checking the index of recall in the background, one index of words at a time."""

import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress

from sqlite_utils import Database

from refold.infrastructure.derived.damage import BROKEN, is_unusable
from refold.infrastructure.derived.following import FollowedLog

from .words_check import WORD_TABLES, WordTable, copied, problem_of

_SIZE = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
LARGEST = 64 << 20
"""Bytes of an index of words and its text: a larger one is not copied into memory."""

logger = logging.getLogger(__name__)


class WordsScrub:
    """One opening's share of the work: the index that comes next, and more while there is room."""

    def __init__(
        self,
        followed: FollowedLog,
        last: Callable[[], str],
        keep: Callable[[str], None],
        budget: int,
        tables: Sequence[WordTable] = WORD_TABLES,
    ) -> None:
        """``last``: the index that was checked last, by whatever opening; ``keep``: notes it.

        ``budget``: bytes that are checked in all, and one index in any case.
        """
        self._followed = followed
        self._last = last
        self._keep = keep
        self._left = budget
        self._tables = tables
        self._done = 0
        self._copy: sqlite3.Connection | None = None
        self._interrupted = False

    def step(self) -> bool:
        """Check the next index; whether there is room for one more at this opening."""
        table = self._next()
        try:
            # A file that was misread looks the same: a second copy is read from the disk again.
            problem = self._problem(table) and self._problem(table)
        except BROKEN as error:
            if is_unusable(error):
                logger.info("the recall index is not checked in the background: %s", error)
                return False
            problem = str(error) or type(error).__name__
        if self._interrupted:
            return False
        if problem:
            self._followed.distrust(problem)
        self._keep(table.name)
        self._done += 1
        return not problem and self._left > 0 and self._done < len(self._tables)

    def interrupt(self) -> None:
        """Give up the check that is under way."""
        self._interrupted = True
        if (copy := self._copy) is not None:
            with suppress(sqlite3.ProgrammingError):  # It is closed by now.
                copy.interrupt()

    def _next(self) -> WordTable:
        names = [table.name for table in self._tables]
        last = self._last()
        at = names.index(last) + 1 if last in names else 0
        return self._tables[at % len(names)]

    def _problem(self, table: WordTable) -> str:
        copy = self._followed.look_into(lambda db: self._copied(db, table))
        if copy is None:
            return ""
        with closing(copy):
            self._copy = copy
            try:
                return "" if self._interrupted else problem_of(copy, table)
            finally:
                self._copy = None

    def _copied(self, db: Database, table: WordTable) -> sqlite3.Connection | None:
        (size,) = db.conn.execute(_SIZE).fetchone()
        share = int(size) // len(self._tables)
        self._left -= share
        return copied(db, table) if share <= LARGEST else None

"""Checking the index of recall in the background, one segment at a time."""

from collections.abc import Callable
from contextlib import closing

from sqlite_utils import Database

from refold.application.plain_lines import plain_logger
from refold.infrastructure.derived.content import wrapped
from refold.infrastructure.derived.damage import BROKEN, blamed_on_file, is_unusable
from refold.infrastructure.derived.following import FollowedLog
from refold.infrastructure.sqlite_connection import open_sqlite

from .segments import PassageDamaged, copy_segment, problem_of, segments_in
from .tables import create_tables

_SIZE = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"

logger = plain_logger(__name__)


class SegmentsScrub:
    """One opening's share of the work: the segment that comes next, and more while there is room."""

    def __init__(
        self,
        followed: FollowedLog,
        last: Callable[[], str],
        keep: Callable[[str], None],
        budget: int,
    ) -> None:
        """``last``: the segment that was checked last, by whatever opening; ``keep``: notes it.

        ``budget``: bytes that are checked in all, and one segment in any case.
        """
        self._followed = followed
        self._last = last
        self._keep = keep
        self._left = budget
        self._count = 0
        self._done: set[int] = set()
        self._interrupted = False

    def step(self) -> bool:
        """Check the next segment; whether there is room for one more at this opening."""
        segment: int | None = None
        try:
            with blamed_on_file():
                segment = self._next()
                if segment is None:
                    return False
                # A file that was misread looks the same: it is read from the disk again.
                problem = self._problem(segment) and self._problem(segment)
        except BROKEN as error:
            if is_unusable(error):
                logger.info("the recall index is not checked in the background: %s", error)
                return False
            problem = str(error) or type(error).__name__
        if self._interrupted:
            return False
        if problem:
            self._followed.distrust(problem)
            return False
        self._keep(str(segment))
        return self._left > 0 and len(self._done) < self._count

    def interrupt(self) -> None:
        """Give up the check that is under way."""
        self._interrupted = True

    def _next(self) -> int | None:
        found = self._followed.look_into(_overview)
        if found is None or not found[0]:
            return None
        segments, size = found
        self._count = len(segments)
        self._left -= size // len(segments)
        last = self._last()
        after = [s for s in segments if last.isdecimal() and s > int(last)]
        segment = (after or segments)[0]
        if segment in self._done:
            return None
        self._done.add(segment)
        return segment

    def _problem(self, segment: int) -> str:
        # In memory: nobody waits for what is made of a copy.
        with closing(wrapped(open_sqlite(":memory:", isolation_level=None))) as copy:
            create_tables(copy)
            found = self._followed.look_into(lambda db: copy_segment(db, copy, segment))
            if not found or self._interrupted:
                return ""
            try:
                return problem_of(copy, segment)
            except PassageDamaged as error:
                return str(error)


def _overview(db: Database) -> tuple[list[int], int]:
    """Every segment, and the bytes of all together."""
    return segments_in(db), int(db.conn.execute(_SIZE).fetchone()[0])

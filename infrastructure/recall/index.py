"""The recall index of a log, in a file beside it."""

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from refold.application.event_log import ConversationLog, Damage
from refold.application.recall.index import NO_FILTERS, Filters, Found
from refold.application.recall.passages import Passage
from refold.infrastructure.derived.following import FollowedLog
from refold.infrastructure.derived.outdating import reading_from
from refold.infrastructure.observing.notices import Notice, nobody

from . import finding
from .content import RECALL
from .proving import Proved


class SQLiteRecallIndex:
    """``RecallIndex`` in an SQLite file beside the log; the file may be deleted at any time.

    Where the file cannot be used, the index lives in memory for as long as this object does, and a
    warning is logged.
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
        self.followed = FollowedLog(path, RECALL, log, of=of, told=told)
        self._proved = Proved()

    def edition(self) -> int:
        """See ``RecallIndex``."""
        return self.followed.answer(reading_from)

    def find(
        self,
        tokens: Sequence[str],
        filters: Filters = NO_FILTERS,
        *,
        limit: int = 50,
        also: Sequence[int] = (),
    ) -> Found:
        """See ``RecallIndex``."""
        return self.followed.answer(
            lambda db: finding.find(db, tokens, filters, limit, also, self._proved)
        )

    def passages(
        self, after: int = 0, limit: int = 1_000, *, filters: Filters = NO_FILTERS
    ) -> Sequence[Passage]:
        """See ``RecallIndex``."""
        return self.followed.answer(
            lambda db: finding.in_order(db, after, limit, filters, self._proved)
        )

    def digests(self) -> Collection[str]:
        """See ``RecallIndex``."""
        return self.followed.answer(lambda db: finding.every_digest(db, self._proved))

    def check(self) -> Iterator[Damage]:
        """See ``RecallIndex``."""
        return self.followed.check()

    def rebuild(self) -> int:
        """See ``RecallIndex``."""
        return self.followed.rebuild()

    def drop(self) -> bool:
        """See ``RecallIndex``."""
        return self.followed.drop()

    def forget_erased(self) -> bool:
        """See ``RecallIndex``."""
        return self.followed.forget_erased()

    def close(self) -> None:
        """See ``RecallIndex``."""
        self.followed.close()

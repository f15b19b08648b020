"""The recall index of a log, in a file beside it."""

from collections.abc import Iterator, Sequence

from refold.application.event_log import Damage
from refold.application.recall.index import NO_FILTERS, Filters, Found
from refold.application.recall.passages import Passage


class SQLiteRecallIndex:
    """``RecallIndex`` in an SQLite file beside the log; the file may be deleted at any time."""

    def find(
        self,
        tokens: Sequence[str],
        filters: Filters = NO_FILTERS,
        *,
        limit: int = 50,
        also: Sequence[int] = (),
    ) -> Found:
        """See ``RecallIndex``."""
        del tokens, filters, limit, also
        return Found((), {}, {}, 0)

    def passages(
        self, after: int = 0, limit: int = 1_000, *, filters: Filters = NO_FILTERS
    ) -> Sequence[Passage]:
        """See ``RecallIndex``."""
        del after, limit, filters
        return ()

    def check(self) -> Iterator[Damage]:
        """See ``RecallIndex``."""
        return iter(())

    def rebuild(self) -> int:
        """See ``RecallIndex``."""
        return 0

    def drop(self) -> bool:
        """See ``RecallIndex``."""
        return True

    def close(self) -> None:
        """See ``RecallIndex``."""

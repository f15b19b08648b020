"""Recall without an index: finds nothing."""

from collections.abc import Iterator, Sequence

from refold.application.event_log import Damage
from refold.application.recall.index import NO_FILTERS, Filters, Found
from refold.application.recall.parts import RecallParts
from refold.application.recall.passages import Passage


class EmptyIndex:
    """An index that has nothing."""

    def edition(self) -> int:
        return 0

    def find(
        self,
        tokens: Sequence[str],
        filters: Filters = NO_FILTERS,
        *,
        limit: int = 50,
        also: Sequence[int] = (),
    ) -> Found:
        del tokens, filters, limit, also
        return Found((), {}, {}, 0)

    def passages(
        self, after: int = 0, limit: int = 1_000, *, filters: Filters = NO_FILTERS
    ) -> Sequence[Passage]:
        del after, limit, filters
        return ()

    def check(self) -> Iterator[Damage]:
        return iter(())

    def rebuild(self) -> int:
        return 0

    def drop(self) -> bool:
        return True

    def close(self) -> None:
        pass


def no_recall() -> RecallParts:
    """Parts that find nothing."""
    return RecallParts(index=EmptyIndex())

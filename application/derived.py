"""Everything that is derived from the log: dropped, rebuilt, checked and closed together, in one place."""

from collections.abc import Iterator, Sequence

from .core import Core
from .errors import LogError
from .event_log import Damage
from .recall.index import RecallIndex
from .recall.passages import Passage
from .recall.vectors import VectorStore


def drop_derived(core: Core) -> bool:
    """Delete what was made from the log, so that nothing of what was erased is left in it.

    The next question makes it anew. Whether nothing is left.
    """
    done = [core.views.drop(), core.recall.index.drop()]
    if core.recall.backend is not None:
        done.append(core.recall.backend.drop())
    if core.recall.vectors is not None:
        done.append(_pruned(core.recall.index, core.recall.vectors))
    return all(done)


def check_derived(core: Core) -> Iterator[Damage]:
    """Compare the read models and the recall index with a fresh fold of the log, changing neither."""
    yield from core.views.check()
    yield from core.recall.index.check()


def rebuild_derived(core: Core) -> tuple[int, int]:
    """Fold the log anew; returns the number of events, and of passages in the recall index."""
    return core.views.rebuild(), core.recall.index.rebuild()


def close_derived(core: Core) -> None:
    """Release files and connections; closing twice is fine."""
    if core.recall.embedding is not None:
        core.recall.embedding.close()
    core.views.close()
    core.recall.index.close()
    if core.recall.vectors is not None:
        core.recall.vectors.close()
    if core.recall.backend is not None:
        core.recall.backend.close()


def _pruned(index: RecallIndex, vectors: VectorStore) -> bool:
    """Vectors may have cost money: those of texts that are still there stay."""

    def kept() -> Iterator[str]:
        page: Sequence[Passage] = index.passages()
        while page:
            yield from (passage.digest for passage in page)
            page = index.passages(page[-1].number)

    try:
        return vectors.prune(kept)
    except LogError:
        return vectors.drop()  # The log is damaged: it cannot tell what is still there.

"""Everything that is derived from the log: dropped, checked, rebuilt and closed together, in one place."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from refold.application.errors import LogError
from refold.application.ports.conversation_log import Damage
from refold.application.ports.recall_index import RecallIndex
from refold.application.ports.vectors import VectorStore
from refold.application.runtime.core import Core

FOREIGN = "foreign"
"""The kind of what lies in the place of a file of ours: it is left alone."""


class Fold(Protocol):
    """What is folded from the log alone: ``ReadModels`` and ``RecallIndex``."""

    def check(self) -> Iterator[Damage]:
        """Compare everything with a fresh fold of the log, without changing either."""
        ...

    def rebuild(self) -> int:
        """Drop everything and fold the log again; returns how much was folded."""
        ...

    def drop(self) -> bool:
        """Delete everything that was folded; whether nothing is left."""
        ...

    def forget_erased(self) -> bool:
        """Take out what was erased, so that no byte of it is left; whether none is."""
        ...

    def close(self) -> None:
        """Release files and connections; closing twice is fine."""
        ...


def folds(core: Core) -> Mapping[str, Fold]:
    """What replay makes anew, by what sentences call it."""
    return {"the read models": core.views, "the recall index": core.recall.index}


def drop_derived(core: Core) -> bool:
    """Delete everything that was made from the log. The next question makes it anew. Whether nothing is left."""
    return _all_done(core, [fold.drop() for fold in folds(core).values()])


def forget_erased(core: Core) -> bool:
    """Take what was erased out of everything that was made from the log; whether nothing of it is left."""
    return _all_done(core, [fold.forget_erased() for fold in folds(core).values()])


def _all_done(core: Core, done: list[bool]) -> bool:
    if core.recall.vectors is not None:
        done.append(_pruned(core.recall.index, core.recall.vectors))
    if core.recall.backend is not None:
        done.append(core.recall.backend.drop())
    done.append(core.recall.drop_handed_over())
    return all(done)


def check_derived(core: Core) -> Iterator[Damage]:
    """Compare every fold with a fresh one, and read every vector, without changing any."""
    for fold in folds(core).values():
        yield from fold.check()
    if core.recall.vectors is not None:
        yield from core.recall.vectors.check()


def repair_derived(core: Core) -> Iterator[str]:
    """Make anew what is damaged; yields what that was, in words."""
    for title, fold in folds(core).items():
        if places := sorted({one.place for one in fold.check() if one.kind != FOREIGN}):
            fold.rebuild()
            yield f"{title} ({', '.join(places)}): rebuilt from the log"
    vectors = core.recall.vectors
    if vectors is not None and (damaged := sum(one.kind != FOREIGN for one in vectors.check())):
        vectors.mend()
        yield f"vectors ({damaged} damaged): deleted, and made again when somebody searches by meaning"


def close_derived(core: Core) -> None:
    """Release files and connections; closing twice is fine."""
    if core.recall.embedding is not None:
        core.recall.embedding.close()
    for fold in folds(core).values():
        fold.close()
    if core.recall.vectors is not None:
        core.recall.vectors.close()
    if core.recall.backend is not None:
        core.recall.backend.close()


def _pruned(index: RecallIndex, vectors: VectorStore) -> bool:
    """Vectors may have cost money: those of texts that are still there stay."""
    try:
        return vectors.prune(index.digests)
    except LogError:
        return vectors.drop()  # The log is damaged: it cannot tell what is still there.

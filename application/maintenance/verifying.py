"""Verify a log and all that is derived from it, and rebuild what differs."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from refold.application.conversation.addresses import thread_of
from refold.application.errors import LogError
from refold.application.ports.conversation_log import Damage
from refold.application.ports.log_keeper import Checked
from refold.application.ports.recall_index import RecallIndex
from refold.application.ports.vectors import VectorStore
from refold.application.runtime.core import Core
from refold.domain.value import Value

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


_RESTORE = "restore the log from a backup, or copy every intact event with `refold salvage NEW.db`"
_BEHIND = (
    "put the newer file back; or copy what is here with `refold salvage NEW.db`; or, to go on with the log "
    "as it is, `refold anchor --accept`"
)
_OF_LOG: Mapping[str, str] = MappingProxyType(
    {
        "behind": _BEHIND,
        "missing": _BEHIND,
        "empty": _BEHIND,
        "erased": "nobody recorded this erasure: restore the log from a backup, if there is one of before",
        "restored": "erase it again: `refold erase`",
        "newer": "install a newer refold",
        "write-ahead": "copy every intact event with `refold salvage NEW.db`, which reads it frame by frame, "
        "then put that in place: `refold restore NEW.db --force`",
        "unsealed": "somebody without the key put it there: see who may write the file; "
        f"{_RESTORE}, which leaves it out",
    }
)
_OF_SNAPSHOTS = (
    "nothing is lost: it is not used, and replaced at the next load or by `refold verify --repair`"
)
_OF_KEYS = (
    "nothing is lost or doubled: it is not believed, and made anew from the messages when a key of the "
    "conversation is used next, or by `refold verify --repair`"
)
_OF_ANCHOR = "nothing is lost: `refold verify --repair` makes the anchor anew from the log"
_OF_VECTORS = "nothing is lost: it is made again when somebody searches by meaning; `refold verify --repair` deletes it"
_OF_VIEWS = (
    "nothing is lost: it is rebuilt when it is read, by `refold verify --repair` or `refold replay`"
)

_OF_FOREIGN = (
    "nothing is lost: it is left alone, and what would lie there is kept in memory meanwhile; give that "
    "file, or the log, another name"
)


def remedy_of(damage: Damage) -> str:
    """What can be done about it."""
    match damage.place:
        case "log":
            return _OF_LOG.get(damage.kind, _RESTORE)
        case _ if damage.kind == "foreign":
            return _OF_FOREIGN
        case "snapshots":
            return _OF_SNAPSHOTS
        case "keys":
            return _OF_KEYS
        case "anchor":
            return _OF_ANCHOR
        case "vectors":
            return _OF_VECTORS
        case _:
            return _OF_VIEWS


class DamageReport(Value, frozen=True):
    """One finding of a verification."""

    place: str
    """``log``, ``snapshots``, ``keys``, ``anchor``, or the name of a table that is folded from the log."""
    thread_id: str
    version: int
    kind: str
    detail: str
    remedy: str
    """What can be done about it."""


class Verification(Value, frozen=True):
    """What a verification found."""

    ok: bool
    """Whether nothing is damaged, or not any more."""
    events: int
    """How many events of the log were read."""
    conversations: int
    """All that the log has; ``erased`` says how many of them nothing can be read from any more."""
    erased: int = 0
    damage: tuple[DamageReport, ...] = ()
    """What is damaged; what was repaired is not among it."""
    repaired: tuple[str, ...] = ()
    """What was damaged and is repaired."""
    notices: tuple[str, ...] = ()
    """What is to be known of the files beside the log, and is no damage."""

    @property
    def log_damaged(self) -> bool:
        """Whether the log itself is damaged: replay cannot repair that."""
        return any(d.place == "log" for d in self.damage)


class Replayed(Value, frozen=True):
    """What a replay rebuilt."""

    events: int
    passages: int = 0
    """How many passages the recall index has."""


def verify(core: Core, *, repair: bool = False, anchor: Path | None = None) -> Verification:
    """Check every event of the log, then compare every read model and the recall index with a fresh fold.

    Vectors that are kept are checked as well: that they are what was stored.

    ``repair``: whether these, snapshots, the index of keys and the anchor are made anew where they are damaged; the
    events are never touched. ``anchor``: one that was exported, to hold the log against as well.
    """
    found = _looked(core, anchor)
    if not found.damage:
        return report_of(found, erased=found.conversations - len(core.views.conversations()))
    if not repair:
        return report_of(found)
    repaired = tuple(core.keeper.repair(found.damage))
    if not any(d.place == "log" for d in found.damage):
        repaired += tuple(repair_derived(core))
    return report_of(_looked(core, anchor), repaired)


def replay(core: Core) -> Replayed:
    """Drop every read model and the recall index, and fold the log again. No model is called."""
    return Replayed(events=core.views.rebuild(), passages=core.recall.index.rebuild())


def report_of(checked: Checked, repaired: Sequence[str] = (), *, erased: int = 0) -> Verification:
    """What was found, for the caller."""
    return Verification(
        ok=not checked.damage,
        events=checked.events,
        conversations=checked.conversations,
        erased=max(0, erased),
        damage=tuple(_report(d) for d in checked.damage),
        repaired=tuple(repaired),
        notices=checked.notices,
    )


def _looked(core: Core, anchor: Path | None) -> Checked:
    found = core.keeper.check(anchor)
    if any(d.place == "log" for d in found.damage):
        return found  # There is nothing to compare read models with.
    return found._replace(damage=(*found.damage, *check_derived(core)))


def _report(damage: Damage) -> DamageReport:
    return DamageReport(
        place=damage.place,
        thread_id=thread_of(damage.thread_id),
        version=damage.version,
        kind=damage.kind,
        detail=damage.detail,
        remedy=remedy_of(damage),
    )

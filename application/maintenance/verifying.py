"""Verify a log and all data derived from it, and rebuild derived data that differs."""

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
"""Kind of damage for another program's file that has the name of a file of refold. It is left alone."""


class Fold(Protocol):
    """Data folded from the log alone: ``ReadModels`` and ``RecallIndex``."""

    def check(self) -> Iterator[Damage]:
        """Compare everything with a fresh fold of the log, without changing either."""
        ...

    def rebuild(self) -> int:
        """Delete everything, fold the log again, and return how much was folded."""
        ...

    def drop(self) -> bool:
        """Delete everything that was folded, and return whether nothing is left."""
        ...

    def forget_erased(self) -> bool:
        """Remove erased content from all files, and return whether none is left."""
        ...

    def close(self) -> None:
        """Release files and connections; closing twice is allowed."""
        ...


def folds(core: Core) -> Mapping[str, Fold]:
    """Return the data that replay can rebuild, by name."""
    return {"the read models": core.views, "the recall index": core.recall.index}


def drop_derived(core: Core) -> bool:
    """Delete all derived data, which is rebuilt on demand, and return whether nothing is left."""
    return _all_done(core, [fold.drop() for fold in folds(core).values()])


def forget_erased(core: Core) -> bool:
    """Remove erased content from all derived data, and return whether none is left."""
    return _all_done(core, [fold.forget_erased() for fold in folds(core).values()])


def _all_done(core: Core, done: list[bool]) -> bool:
    if core.recall.vectors is not None:
        done.append(_prune_vectors(core.recall.index, core.recall.vectors))
    if core.recall.backend is not None:
        done.append(core.recall.backend.drop())
    done.append(core.recall.drop_handed_over())
    return all(done)


def check_derived(core: Core) -> Iterator[Damage]:
    """Compare every fold with a fresh one and check every vector, without changes."""
    for fold in folds(core).values():
        yield from fold.check()
    if core.recall.vectors is not None:
        yield from core.recall.vectors.check()


def repair_derived(core: Core) -> Iterator[str]:
    """Rebuild damaged derived data, and yield a description of each repair."""
    for title, fold in folds(core).items():
        if places := sorted({one.place for one in fold.check() if one.kind != FOREIGN}):
            fold.rebuild()
            yield f"{title} ({', '.join(places)}): rebuilt from the log"
    vectors = core.recall.vectors
    if vectors is not None and (damaged := sum(one.kind != FOREIGN for one in vectors.check())):
        vectors.mend()
        yield f"vectors ({damaged} damaged): deleted; the next search by meaning makes them again"


def _prune_vectors(index: RecallIndex, vectors: VectorStore) -> bool:
    """Delete the vectors of texts that are gone, and return whether none is left.

    Other vectors are kept, because they may have cost money.
    """
    try:
        return vectors.prune(index.digests)
    except LogError:
        return vectors.drop()  # A damaged log cannot tell which texts are left.


_RESTORE = "restore the log from a backup, or copy every intact event with `refold salvage NEW.db`"
_BEHIND = (
    "put the newer file back; or copy what is here with `refold salvage NEW.db`; or, to continue with this "
    "log, use `refold anchor --accept`"
)
_OF_LOG: Mapping[str, str] = MappingProxyType(
    {
        "behind": _BEHIND,
        "missing": _BEHIND,
        "empty": _BEHIND,
        "erased": "this erasure was not recorded: restore the log from an earlier backup, if there is one",
        "restored": "erase it again: `refold erase`",
        "newer": "install a newer refold",
        "write-ahead": "copy every intact event with `refold salvage NEW.db`, which reads it frame by frame, "
        "then put that in place: `refold restore NEW.db --force`",
        "unsealed": "it was written without the key: check who can write the file; "
        f"{_RESTORE}, which leaves it out",
    }
)
_OF_SNAPSHOTS = (
    "nothing is lost: it is ignored, and replaced at the next load or by `refold verify --repair`"
)
_OF_KEYS = (
    "nothing is lost or duplicated: it is ignored, and rebuilt from the messages when a key of the "
    "conversation is next used, or by `refold verify --repair`"
)
_OF_ANCHOR = "nothing is lost: `refold verify --repair` rebuilds the anchor from the log"
_OF_VECTORS = "nothing is lost: the next search by meaning makes it again; `refold verify --repair` deletes it"
_OF_VIEWS = (
    "nothing is lost: it is rebuilt when it is read, by `refold verify --repair` or `refold replay`"
)

_OF_FOREIGN = (
    "nothing is lost: the file is left alone, and our data is kept in memory; rename that file "
    "or the log"
)


def remedy_of(damage: Damage) -> str:
    """Return advice for this kind of damage."""
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
    """One of ``log``, ``snapshots``, ``keys``, ``anchor``, or the name of a derived table."""
    thread_id: str
    version: int
    kind: str
    detail: str
    remedy: str
    """Advice for this kind of damage."""


class Verification(Value, frozen=True):
    """Result of a verification."""

    ok: bool
    """True if nothing is damaged after any repair."""
    events: int
    """Number of events that were read."""
    conversations: int
    """Number of conversations in the log, including ``erased`` ones."""
    erased: int = 0
    damage: tuple[DamageReport, ...] = ()
    """Damage that was not repaired."""
    repaired: tuple[str, ...] = ()
    """Descriptions of repaired damage."""
    notices: tuple[str, ...] = ()
    """Remarks about files next to the log that are not damage."""

    @property
    def log_damaged(self) -> bool:
        """True if the log itself is damaged, which replay cannot repair."""
        return any(d.place == "log" for d in self.damage)


class Replayed(Value, frozen=True):
    """Result of a replay."""

    events: int
    passages: int = 0
    """Number of passages in the recall index."""


def verify(core: Core, *, repair: bool = False, anchor: Path | None = None) -> Verification:
    """Verify every event of the log, and compare all derived data with a fresh fold.

    Stored vectors are checked as well. With ``repair``, damaged derived data, snapshots, the index
    of keys and the anchor are rebuilt; events are never changed. ``anchor`` is an exported anchor
    to compare the log with.
    """
    found = _check_all(core, anchor)
    if not found.damage:
        there = sum(1 for _ in core.views.iter_conversations())
        return report_of(found, erased=found.conversations - there)
    if not repair:
        return report_of(found)
    repaired = tuple(core.keeper.repair(found.damage))
    if not any(d.place == "log" for d in found.damage):
        repaired += tuple(repair_derived(core))
    return report_of(_check_all(core, anchor), repaired)


def replay(core: Core) -> Replayed:
    """Delete the read models and the recall index, and fold the log again without a model."""
    return Replayed(events=core.views.rebuild(), passages=core.recall.index.rebuild())


def report_of(checked: Checked, repaired: Sequence[str] = (), *, erased: int = 0) -> Verification:
    """Return the result of a check as a report."""
    return Verification(
        ok=not checked.damage,
        events=checked.events,
        conversations=checked.conversations,
        erased=max(0, erased),
        damage=tuple(_report(d) for d in checked.damage),
        repaired=tuple(repaired),
        notices=checked.notices,
    )


def _check_all(core: Core, anchor: Path | None) -> Checked:
    found = core.keeper.check(anchor)
    if any(d.place == "log" for d in found.damage):
        return found  # Derived data cannot be compared with a damaged log.
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

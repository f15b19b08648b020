"""Remove erased content from all files after an erasure was recorded."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from refold.application.maintenance.maintenance_results import ErasedPlace
from refold.application.maintenance.verifying import forget_erased
from refold.application.notes.note_files import write_notes
from refold.application.runtime.core import Core
from refold.domain.errors import RefoldError

from .erasure_report import Place

FILES = "files of the log"
FOLDER = "folder of the log"
Answer = TypeVar("Answer")


class CleanedUp(NamedTuple):
    """Places that may still have erased content. The fields are those of ``ErasureReport``."""

    complete: bool
    damaged_copies: tuple[str, ...]
    earlier_logs: tuple[str, ...]
    places: tuple[ErasedPlace, ...]


def clean_up(core: Core) -> CleanedUp:
    """Remove what was erased from all files.

    The erasure is recorded, so a failure does not raise. The place is reported as pending.
    """
    keeper = core.keeper
    failed: list[ErasedPlace] = []
    done = _attempt(lambda: finish(core), FILES, failed)
    kept = _attempt(keeper.damaged_copies, FOLDER, failed) or ()
    earlier = _attempt(keeper.earlier_logs, FOLDER, failed) or ()
    left = _attempt(keeper.erased_places, FILES, failed) or ()
    places = (*{one.place: one for one in failed}.values(), *left, *update_followers(core))
    pending = any(place.state == "pending" for place in places)
    return CleanedUp(
        complete=bool(done) and not (kept or earlier or pending),
        damaged_copies=tuple(map(str, kept)),
        earlier_logs=tuple(map(str, earlier)),
        places=places,
    )


def _attempt(act: Callable[[], Answer], place: str, failed: list[ErasedPlace]) -> Answer | None:
    """Return the result, or None after adding the place to those that failed."""
    try:
        return act()
    except (RefoldError, OSError, MemoryError, RecursionError) as error:
        problem = str(error) or type(error).__name__
        detail = f"the erasure is recorded, and this failed: {problem}. Erase again, or open the log again"
        failed.append(ErasedPlace(place=place, state="pending", detail=detail))
        return None


def finish(core: Core) -> bool:
    """Remove remains of earlier erasures from files, and return whether none are left."""
    done = core.log.finish_erasures(lambda: forget_erased(core))
    return write_notes(core) and done


def finish_all(core: Core, *, wait: float) -> tuple[ErasedPlace, ...]:
    """Remove remains of earlier erasures, and return where erased content may still be.

    ``wait``: seconds to wait until the places that can be reached have none.
    """
    done = finish(core)
    if wait and done:
        core.keeper.wait_for_erasures(wait)
    places = (*core.keeper.erased_places(), *update_followers(core))
    if done or any(place.state == "pending" for place in places):
        return places
    detail = "another process is reading: erase again, or open the log again"
    return (ErasedPlace(place=FILES, state="pending", detail=detail), *places)


def update_followers(core: Core) -> Sequence[ErasedPlace]:
    """Update the followers of this process, and return those whose tables may still have what was erased."""
    left: list[ErasedPlace] = []
    for follower in {(one.place, one.name): one for one in core.followers}.values():
        problem = ""
        try:
            follower.update()
            if follower.has_remains:
                problem = "another reader may still see what was removed"
        except (RefoldError, OSError, MemoryError, RecursionError) as error:
            problem = f"they cannot be updated ({type(error).__name__})"
        if problem:
            place = f"tables of follower {follower.name}: {follower.place}"
            detail = f"{problem}; a later update removes it"
            left.append(ErasedPlace(place=place, state="pending", detail=detail))
    return left


def derived_places(core: Core) -> Sequence[Place]:
    """Return the derived places that an erasure cleans."""
    places: list[Place] = ["read models", "recall index"]
    if core.recall.embedder is not None:
        places.append("vectors")
    if core.recall.backend is not None:
        places.append("search backend")
    if core.followers:
        places.append("tables of followers")
    return places

"""Checking the file of the vectors: nothing can be folded anew to compare with, so each vector has a checksum."""

from collections.abc import Iterator
from pathlib import Path

from refold.application.event_log import Damage
from refold.application.plain_lines import plain_logger
from refold.infrastructure.derived.damage import BROKEN, blamed_on_file
from refold.infrastructure.derived.whose import PlaceTaken
from refold.infrastructure.log.file.failures import is_forbidden

from .vector_rows import damaged_in, delete_rows, forget_model, model_in, problems_of
from .vectors_file import VectorsFile

PLACE = "vectors"
"""What damage names."""

logger = plain_logger(__name__)


def damage_of(file: VectorsFile) -> Iterator[Damage]:
    """What is not as it was stored; a file that is not there is as it should be."""
    try:
        with blamed_on_file(), file.reading() as db:
            if db is not None:
                for problem in problems_of(db):
                    yield Damage(PLACE, "", 0, "unreadable", problem)
                for number in damaged_in(db):
                    yield Damage(PLACE, "", 0, "differs", f"vector {number} was changed")
    except PlaceTaken as error:
        yield Damage(PLACE, "", 0, "foreign", str(error))
    except BROKEN as error:
        if is_forbidden(error):
            logger.warning("the vectors %s cannot be checked: %s", file.path, error)
            return
        yield Damage(PLACE, "", 0, "unreadable", str(error))


def taken(path: Path | None) -> Iterator[Damage]:
    """Whether a file of somebody else lies in the place of ours."""
    try:
        VectorsFile(path).refuse_foreign()
    except PlaceTaken as error:
        yield Damage(PLACE, "", 0, "foreign", str(error))


def delete_damaged(file: VectorsFile) -> bool:
    """Delete the vectors that were changed; whether that helps, or the file as such is damaged."""
    try:
        with blamed_on_file(), file.writing() as db:
            if any(problems_of(db)):
                return False
            delete_rows(db, list(damaged_in(db)))
    except BROKEN:
        return False
    return True


def delete_of_other_dimension(file: VectorsFile, model: str, dimension: int) -> int | None:
    """Delete a model's vectors where they have another dimension; how many there were, None if they fit."""
    with file.reading() as db:
        known = None if db is None else model_in(db, model)
    if known is None or known.dimension == dimension:
        return None
    with file.writing() as db:
        return forget_model(db, known)

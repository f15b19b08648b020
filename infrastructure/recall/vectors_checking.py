"""Checking the file of the vectors: nothing can be folded anew to compare with, so each vector has a checksum."""

import sqlite3
from collections.abc import Iterator

from refold.application.event_log import Damage
from refold.infrastructure.derived.damage import FoldDamaged

from .vector_rows import damaged_in, delete_rows, problems_of
from .vectors_file import VectorsFile

PLACE = "vectors"
"""What damage names."""
BROKEN = (FoldDamaged, sqlite3.Error, OSError, UnicodeDecodeError)
"""What is raised where the file cannot be used."""


def damage_of(file: VectorsFile) -> Iterator[Damage]:
    """What is not as it was stored; a file that is not there is as it should be."""
    try:
        with file.reading() as db:
            if db is not None:
                for problem in problems_of(db):
                    yield Damage(PLACE, "", 0, "unreadable", problem)
                for number in damaged_in(db):
                    yield Damage(PLACE, "", 0, "differs", f"vector {number} was changed")
    except BROKEN as error:
        yield Damage(PLACE, "", 0, "unreadable", str(error))


def delete_damaged(file: VectorsFile) -> bool:
    """Delete the vectors that were changed; whether that helps, or the file as such is damaged."""
    try:
        with file.writing() as db:
            if any(problems_of(db)):
                return False
            delete_rows(db, list(damaged_in(db)))
    except BROKEN:
        return False
    return True

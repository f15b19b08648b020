"""Asking a file that others may damage, or delete and make anew, while it is asked."""

from collections.abc import Callable
from typing import TypeVar

from refold.application.errors import LogError

from .invalidation import FoldOutdated
from .projection_damage import BROKEN, MemoryShort, blamed_on_file

TRIES = 4
"""As it is, made anew, in memory, and anew in memory."""
RENEWALS = 100
"""How often a question is asked again of a file that others made meanwhile: erasures drop the old one."""

Answer = TypeVar("Answer")


class NoAnswer(Exception):
    """Nothing helped. Never leaves the infrastructure."""


def answered(
    ask: Callable[[], Answer],
    *,
    is_replaced: Callable[[], bool],
    repair: Callable[[Exception, int], None],
) -> Answer:
    """Ask, and where that fails ask again: another file as it is, the same one repaired.

    ``repair`` is told how often it was called before. What an erasure outdates is no damage: it is not
    counted. Where memory is short, the same file is asked once more before it is repaired.

    Raises:
        NoAnswer: it failed after every repair.
        LogError: memory is still short after a repair.
    """
    renewals = repairs = shortages = 0
    while repairs < TRIES:
        try:
            with blamed_on_file():
                return ask()
        except BROKEN as error:
            is_outdated = isinstance(error, FoldOutdated)
            if isinstance(error, MemoryShort) and (shortages := shortages + 1) != 2:
                _refuse_third(shortages, error)
            elif renewals < RENEWALS and (is_outdated or is_replaced()):
                renewals += 1
                if is_outdated:
                    repair(error, repairs)
            else:
                repair(error, repairs)
                repairs += 1
    raise NoAnswer


def _refuse_third(shortages: int, error: MemoryShort) -> None:
    if shortages > 2:
        raise LogError(
            "there is not enough memory to answer; free some and ask again, nothing is lost"
        ) from error

"""Split turns: a turn too big to stay whole is divided; its beginning is summarised (A5, A15)."""

from bisect import bisect_left
from itertools import accumulate
from typing import NamedTuple

from .conversation import Conversation
from .policy import CompactionPolicy
from .turns import turn_beginnings


class Division(NamedTuple):
    """The turn that a cut divides. Sizes are tokens of what may be covered: a request that stays
    wherever the turn is cut counts for nothing.
    """

    begin: int
    """Where the turn begins: what is covered from here on is its prefix, what lies before is history."""
    prefix: int
    turn: int
    average: float
    """Of a message of the turn."""


class Turns:
    """The turns among what no summary covers yet, measured by what of them may be covered."""

    def __init__(self, state: Conversation, kept: frozenset[int]) -> None:
        """``kept``: the positions that stay whatever the cut."""
        self._beginnings = turn_beginnings(state)
        self._end = state.length
        messages = [m for m in state.live if m.position not in kept]
        self._positions = [m.position for m in messages]
        self._sums = [0, *accumulate(m.tokens for m in messages)]

    def begins_at(self, position: int) -> bool:
        """Whether a turn begins there."""
        return position in self._beginnings

    def division(self, cut: int) -> Division | None:
        """What ``cut`` divides; None between turns, and where nothing of the turn would be covered.

        A turn of which the beginning is covered already begins, as far as can be known, where the
        coverage ends: ``begin`` never lies before that. Then the history may hold no message at all,
        only the summary so far.
        """
        begin = max((b for b in self._beginnings if b <= cut), default=cut)
        end = min((b for b in self._beginnings if b > cut), default=self._end)
        first, middle, last = (bisect_left(self._positions, p) for p in (begin, cut, end))
        if first == middle:
            return None
        turn = self._sums[last] - self._sums[first]
        return Division(begin, self._sums[middle] - self._sums[first], turn, turn / (last - first))


def least_prefix(average: float, window: int, policy: CompactionPolicy) -> float:
    """The share of a divided turn that is at least summarised, for messages of this average size.

    ``split_prefix_share`` for the smallest messages, falling evenly to ``split_prefix_least`` for
    messages of ``chunk_large`` of the window and more: among large ones the next cut may lie far
    away (requirement A15).
    """
    most = policy.split_prefix_share
    least = min(policy.split_prefix_least, most)
    return most - (most - least) * min(1.0, average / max(1.0, policy.chunk_large * window))


def largest_kept(window: int, policy: CompactionPolicy) -> int:
    """The most that may stay behind a cut before a turn is divided, in tokens (requirement A5)."""
    return int(window * policy.split_share * policy.split_slack)


def is_worthwhile(division: Division | None, window: int, policy: CompactionPolicy) -> bool:
    """Whether enough of the divided turn would be summarised, if a turn is divided at all."""
    if division is None:
        return True
    return division.prefix >= least_prefix(division.average, window, policy) * division.turn

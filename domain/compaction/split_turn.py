"""Split turns: of a turn too big to stay whole the beginning is summarised in a text of its own."""

from bisect import bisect_left
from itertools import accumulate
from typing import NamedTuple

from refold.domain.conversation import Conversation
from refold.domain.turns import turn_beginnings

from .policy import CompactionPolicy


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
        self._state = state
        self._beginnings = turn_beginnings(state)
        self._end = state.length
        # System messages at the beginning stay in any case: they are no history.
        messages = [
            m for m in state.live if m.position >= state.preamble and m.position not in kept
        ]
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

    def split_at(self, cut: int, window: int, policy: CompactionPolicy) -> int | None:
        """Return where the turn begins whose beginning gets a summary of its own; None where it is one text.

        It gets one where the content from the beginning of the turn on is more than ``largest_kept``,
        and there is history before it. Where there is none, or where the beginning was covered long
        ago, what is covered of the turn is the history: it is told in the sections of one.
        """
        divided = self.division(cut)
        if divided is None or not self._has_history(divided.begin):
            return None
        content = (m.tokens - m.thinking for m in self._state.live if m.position >= divided.begin)
        return divided.begin if sum(content) > largest_kept(window, policy) else None

    def _has_history(self, begin: int) -> bool:
        if self._state.summary is None:
            return bool(self._positions) and self._positions[0] < begin
        return begin != self._beginnings[0] or self._is_request(begin)

    def _is_request(self, position: int) -> bool:
        # Behind a summary the first of what is left begins a turn only if somebody asks in it.
        first = next((m for m in self._state.live if m.position == position), None)
        return first is not None and first.role == "user" and first.speaks and not first.results


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
    """Return the tokens of a turn above which its beginning gets a summary of its own (requirement A5)."""
    return int(window * policy.split_share * policy.split_slack)


def is_worthwhile(division: Division | None, window: int, policy: CompactionPolicy) -> bool:
    """Whether enough of the divided turn would be summarised, if a turn is divided at all."""
    if division is None:
        return True
    return division.prefix >= least_prefix(division.average, window, policy) * division.turn

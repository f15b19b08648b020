"""Split turns: if a turn is too large to stay whole, its beginning gets its own summary."""

from bisect import bisect_left
from itertools import accumulate
from typing import NamedTuple

from refold.domain.conversation import Conversation
from refold.domain.turns import turn_beginnings

from .policy import CompactionPolicy


class Division(NamedTuple):
    """The turn that a cut divides. Sizes are tokens of messages that may be covered.

    Requests that stay at any cut are not counted.
    """

    begin: int
    """Position where the turn begins. Covered messages from here on are its prefix, earlier ones are history.
    """
    prefix: int
    turn: int
    average: float
    """Average tokens of a message in the turn."""


class Turns:
    """Uncovered turns of a conversation, with the sizes of the messages that may be covered."""

    def __init__(self, state: Conversation, kept: frozenset[int]) -> None:
        """Measure the turns. ``kept`` are the positions that stay at any cut."""
        self._state = state
        self._beginnings = turn_beginnings(state)
        self._end = state.length
        # System messages at the beginning always stay, so they are not history.
        messages = [
            m for m in state.live if m.position >= state.preamble and m.position not in kept
        ]
        self._positions = [m.position for m in messages]
        self._sums = [0, *accumulate(m.tokens for m in messages)]

    def begins_at(self, position: int) -> bool:
        """Return whether a turn begins at this position."""
        return position in self._beginnings

    def division(self, cut: int) -> Division | None:
        """Return the division of a turn by ``cut``, or None if no part of a turn would be covered.

        If the beginning of the turn is already covered, the turn counts from the end of the coverage:
        ``begin`` is never before that. The history may then consist of the previous summary only.
        """
        begin = max((b for b in self._beginnings if b <= cut), default=cut)
        end = min((b for b in self._beginnings if b > cut), default=self._end)
        first, middle, last = (bisect_left(self._positions, p) for p in (begin, cut, end))
        if first == middle:
            return None
        turn = self._sums[last] - self._sums[first]
        return Division(begin, self._sums[middle] - self._sums[first], turn, turn / (last - first))

    def split_at(self, cut: int, window: int, policy: CompactionPolicy) -> int | None:
        """Return the beginning of a turn that gets its own summary, or None for one summary.

        A turn gets its own summary if its content is larger than ``largest_kept`` and there is history
        before it. Without history, or if the beginning was covered earlier, the covered part of the turn
        is summarised as history.
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
        # After a summary, the first remaining message begins a turn only if it is a request.
        first = next((m for m in self._state.live if m.position == position), None)
        return first is not None and first.role == "user" and first.speaks and not first.results


def least_prefix(average: float, window: int, policy: CompactionPolicy) -> float:
    """Return the minimum share of a split turn to summarise, for messages of this average size.

    The share falls evenly from ``split_prefix_share`` for the smallest messages to ``split_prefix_least``
    for messages of at least ``chunk_large`` of the window. Among large messages the next cut may be far
    away.
    """
    most = policy.split_prefix_share
    least = min(policy.split_prefix_least, most)
    return most - (most - least) * min(1.0, average / max(1.0, policy.chunk_large * window))


def largest_kept(window: int, policy: CompactionPolicy) -> int:
    """Return the tokens of a turn above which its beginning gets its own summary."""
    return int(window * policy.split_share * policy.split_slack)


def is_worthwhile(division: Division | None, window: int, policy: CompactionPolicy) -> bool:
    """Return whether a cut summarises enough of the turn that it divides. True if it divides none."""
    if division is None:
        return True
    return division.prefix >= least_prefix(division.average, window, policy) * division.turn

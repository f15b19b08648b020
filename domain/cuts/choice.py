"""Choose a cut among the legal ones, and divide the turn that it splits if it is too large to stay whole."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from refold.domain.compaction.budget import archiving_leaves, live_messages
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.conversation import Conversation, LiveMessage
from refold.domain.shortening import tokens_after_decision
from refold.domain.turns import thinking_start, turn_beginnings

from .rules import Cuts


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


class Candidate(NamedTuple):
    """A legal cut that covers something. All sizes are tokens."""

    cut: int
    covered: int
    """Tokens of the messages that this cut would newly cover."""
    messages: int
    """Number of messages that this cut would newly cover."""
    newest: int
    """Tokens of the messages from the cut on, as they would be after the compaction."""
    kept: int
    """Tokens of all content that stays, as they would be after the compaction.

    This is ``newest``, the messages kept before the cut, and pinned and quoted texts.
    """
    last: LiveMessage
    """The last message that the cut would cover."""


def candidates(state: Conversation, cuts: Cuts, kept: frozenset[int]) -> list[Candidate]:
    """Return the cuts that cover something while the positions in ``kept`` stay, earliest first.

    A later cut never keeps more. Kept messages are measured without the thinking that the cut would drop.
    """
    found: list[Candidate] = []
    first = thinking_start(state)
    newest = sum(tokens_after_decision(m, first) for m in state.live)
    stays = newest + sum(pin.tokens for pin in state.pins) + state.memories_tokens
    covered, count = state.older_tokens, state.older_live
    last: LiveMessage | None = None
    for message in state.live:
        if last is not None and message.position in cuts:
            found.append(Candidate(message.position, covered, count, newest, stays, last))
        shown = tokens_after_decision(message, first)
        newest -= shown
        if message.position >= state.preamble and message.position not in kept:
            covered, count, last = covered + message.tokens, count + 1, message
            stays -= shown
    if last is not None and state.length in cuts:
        found.append(Candidate(state.length, covered, count, newest, stays, last))
    return found


def latest_cut(
    state: Conversation, policy: CompactionPolicy, nearest: int, *, least: int | None = None
) -> int:
    """Return the latest cut that honours the keep settings as far as the target allows.

    ``nearest`` is the first cut that meets the target; the result is never before it. The settings protect
    the newest messages, tokens and turns. ``least`` replaces ``keep_last``.
    """
    messages = max(nearest, state.length - (least or policy.keep_last))
    return min(messages, _tokens(state, policy, nearest), _turns(state, policy, nearest))


def _tokens(state: Conversation, policy: CompactionPolicy, nearest: int) -> int:
    cut, missing = state.length, policy.keep_tokens
    for message in reversed(state.live):
        if missing <= 0 or cut <= nearest:
            break
        missing -= message.tokens
        cut = message.position
    return max(cut, nearest)


def _turns(state: Conversation, policy: CompactionPolicy, nearest: int) -> int:
    # The running turn is one of them. If a turn does not fit whole, no part of it is protected.
    newest = turn_beginnings(state)[-policy.keep_turns :] if policy.keep_turns else ()
    return min((begin for begin in newest if begin >= nearest), default=state.length)


class Choice:
    """Choose a cut for one state, one goal in tokens and the limit of ``archive_over`` messages."""

    def __init__(
        self, state: Conversation, turns: Turns, goal: int, window: int, policy: CompactionPolicy
    ) -> None:
        self._state = state
        self._turns = turns
        self._goal = goal
        self._window = window
        self._policy = policy

    def keep_most(self, found: Sequence[Candidate]) -> Candidate:
        """Return the cut that keeps as much as the goal allows.

        A cut between turns is preferred if it keeps at least ``whole_turn_share`` of the newest tokens
        that a cut inside a turn would keep. Otherwise the turn is split so that enough of it is
        summarised. Both respect the keep settings. If no cut meets the goal, the closest one is returned.
        If only the limit of messages is missed, the cut covers as much as the keep settings allow.
        """
        fitting = [c for c in found if c.kept <= self._goal]
        if not fitting:
            return min(found, key=_kept)
        few = [c for c in fitting if self._leaves_few(c)]
        if not few:
            return self._select_allowed(fitting)[-1]
        fitting = few
        small = [c for c in fitting if c.newest <= largest_kept(self._window, self._policy)]
        # Messages that should stay whole take precedence over whole turns, as far as they fit.
        whole = max(self._policy.keep_last, self._policy.whole_last)
        allowed = self._select_allowed(small or fitting, whole)
        least = self._policy.whole_turn_share * allowed[0].newest
        for candidate in allowed:
            if candidate.newest >= least and self._turns.begins_at(candidate.cut):
                return candidate
        return next(filter(self._is_worthwhile, allowed), allowed[0])

    def cover_most(self, found: Sequence[Candidate]) -> Candidate:
        """Return the cut that covers as much as the keep settings allow.

        A cut between turns is preferred if it meets the goal and covers at least ``whole_turn_share`` of
        the tokens that a cut inside a turn would cover.
        """
        fitting = [c for c in found if c.kept <= self._goal]
        if not fitting:
            return found[-1]
        fitting = [c for c in fitting if self._leaves_few(c)] or fitting
        allowed = self._select_allowed(fitting)
        least = self._policy.whole_turn_share * allowed[-1].covered
        for candidate in reversed(allowed):
            if candidate.covered >= least and self._turns.begins_at(candidate.cut):
                return candidate
        return allowed[-1]

    def _select_allowed(
        self, fitting: Sequence[Candidate], least: int | None = None
    ) -> list[Candidate]:
        latest = latest_cut(self._state, self._policy, fitting[0].cut, least=least)
        return [c for c in fitting if c.cut <= latest]

    def _leaves_few(self, candidate: Candidate) -> bool:
        most = archiving_leaves(self._policy)
        return most is None or live_messages(self._state) - candidate.messages <= most

    def _is_worthwhile(self, candidate: Candidate) -> bool:
        return is_worthwhile(self._turns.division(candidate.cut), self._window, self._policy)


def _kept(candidate: Candidate) -> int:
    return candidate.kept

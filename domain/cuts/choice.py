"""Choose a cut among the legal ones, measured in one pass over the live messages."""

from collections.abc import Sequence
from typing import NamedTuple

from refold.domain.compaction.budget import archiving_leaves, live_messages
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.compaction.split_turn import Turns, is_worthwhile, largest_kept
from refold.domain.conversation import Conversation, LiveMessage
from refold.domain.shortening import tokens_after_decision
from refold.domain.turns import thinking_start, turn_beginnings

from .rule import Cuts


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

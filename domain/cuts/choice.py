"""What each legal cut would cover and keep, measured in one pass over the live messages."""

from collections.abc import Sequence
from typing import NamedTuple

from refold.domain.compaction.budget import archiving_leaves, live_messages
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.compaction.split_turn import Turns, is_worthwhile, largest_kept
from refold.domain.conversation import Conversation, LiveMessage
from refold.domain.shortening import shown_after_a_decision
from refold.domain.turns import stays_from, turn_beginnings

from .rule import Cuts


class Candidate(NamedTuple):
    """A legal cut that covers something. All sizes are tokens."""

    cut: int
    covered: int
    """Of the messages that no summary covers yet and this one would."""
    messages: int
    """How many these are."""
    newest: int
    """Of the messages at the cut and behind it, as they will be."""
    kept: int
    """Of everything that stays, as it will be: those, what is kept before the cut, pinned and quoted
    texts."""
    last: LiveMessage
    """The last message that it would cover."""


def candidates(state: Conversation, cuts: Cuts, kept: frozenset[int]) -> list[Candidate]:
    """The cuts that cover something while the positions ``kept`` stay, earliest first.

    A later cut never keeps more. What stays is measured without the thinking that no decision leaves.
    """
    found: list[Candidate] = []
    first = stays_from(state)
    newest = sum(shown_after_a_decision(m, first) for m in state.live)
    stays = newest + sum(pin.tokens for pin in state.pins) + state.memories_tokens
    covered, count = state.older_tokens, state.older_live
    last: LiveMessage | None = None
    for message in state.live:
        if last is not None and message.position in cuts:
            found.append(Candidate(message.position, covered, count, newest, stays, last))
        shown = shown_after_a_decision(message, first)
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
    """The latest cut that keeps as much of what the policy asks for as the target allows.

    ``nearest`` is the first cut that meets the target; this is never before it. The newest messages
    and tokens (D3, E2) are kept as many as fit, the newest turns as many as fit whole. ``least``: so many
    messages, in place of ``keep_last``.
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
    # The running turn is one of them. A turn that does not fit whole is no reason to keep a part of it.
    newest = turn_beginnings(state)[-policy.keep_turns :] if policy.keep_turns else ()
    return min((begin for begin in newest if begin >= nearest), default=state.length)


class Choice:
    """Chooses for one state and one goal: the tokens that may stay, and ``archive_over`` messages."""

    def __init__(
        self, state: Conversation, turns: Turns, goal: int, window: int, policy: CompactionPolicy
    ) -> None:
        self._state = state
        self._turns = turns
        self._goal = goal
        self._window = window
        self._policy = policy

    def keep_most(self, found: Sequence[Candidate]) -> Candidate:
        """The cut that keeps as much as the goal allows.

        A cut between turns is preferred where it keeps at least ``whole_turn_share`` of the newest
        tokens that a cut inside a turn would keep; else the turn is divided, so that enough of it is
        summarised (A15). Neither takes from what the keep rules ask for. If no cut meets the goal,
        the one that comes nearest to it is the best there is; if only the number of messages is not
        met, as much is covered as the keep rules allow.
        """
        fitting = [c for c in found if c.kept <= self._goal]
        if not fitting:
            return min(found, key=_kept)
        few = [c for c in fitting if self._leaves_few(c)]
        if not few:
            return self._allowed(fitting)[-1]
        fitting = few
        small = [c for c in fitting if c.newest <= largest_kept(self._window, self._policy)]
        # Those that stay whole (B5) stay as they are, as far as they fit: no turn is worth more.
        whole = max(self._policy.keep_last, self._policy.whole_last)
        allowed = self._allowed(small or fitting, whole)
        least = self._policy.whole_turn_share * allowed[0].newest
        for candidate in allowed:
            if candidate.newest >= least and self._turns.begins_at(candidate.cut):
                return candidate
        return next(filter(self._is_worthwhile, allowed), allowed[0])

    def cover_most(self, found: Sequence[Candidate]) -> Candidate:
        """The cut that covers as much as the keep rules allow.

        A cut between turns is preferred where it meets the goal and covers at least
        ``whole_turn_share`` of what a cut inside a turn would cover.
        """
        fitting = [c for c in found if c.kept <= self._goal]
        if not fitting:
            return found[-1]
        fitting = [c for c in fitting if self._leaves_few(c)] or fitting
        allowed = self._allowed(fitting)
        least = self._policy.whole_turn_share * allowed[-1].covered
        for candidate in reversed(allowed):
            if candidate.covered >= least and self._turns.begins_at(candidate.cut):
                return candidate
        return allowed[-1]

    def _allowed(self, fitting: Sequence[Candidate], least: int | None = None) -> list[Candidate]:
        latest = latest_cut(self._state, self._policy, fitting[0].cut, least=least)
        return [c for c in fitting if c.cut <= latest]

    def _leaves_few(self, candidate: Candidate) -> bool:
        most = archiving_leaves(self._policy)
        return most is None or live_messages(self._state) - candidate.messages <= most

    def _is_worthwhile(self, candidate: Candidate) -> bool:
        return is_worthwhile(self._turns.division(candidate.cut), self._window, self._policy)


def _kept(candidate: Candidate) -> int:
    return candidate.kept

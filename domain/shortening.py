"""What of a tool call may be shown shorter, and from where on messages stay as they are."""

from typing import Literal, NamedTuple

from .budget import Budget
from .calls import open_calls
from .conversation import Conversation
from .facts import LiveMessage
from .policy import CompactionPolicy
from .thinking import stays_from

Side = Literal["call", "result"]


class ToolPart(NamedTuple):
    """One side of a tool call of a live message, with what it would cost if it were shown shorter."""

    position: int
    call_id: str
    side: Side
    """The call's input, or its result."""
    tokens: int
    """Its size as it is shown now."""
    short_tokens: int

    @property
    def freed(self) -> int:
        """What showing it shorter saves, in tokens."""
        return self.tokens - self.short_tokens


class Shortenable(NamedTuple):
    """The parts that may be shown shorter at all: of live messages that are not pinned.

    A call that waits for its result is none: somebody may be asked to approve it.
    """

    positions: frozenset[int]
    waiting: frozenset[str]

    def allows(self, position: int, call_id: str, side: Side) -> bool:
        """Whether this part may be shown shorter."""
        return position in self.positions and not (side == "call" and call_id in self.waiting)


def shortenable(state: Conversation) -> Shortenable:
    """What may be shown shorter in this state."""
    live = frozenset(m.position for m in state.live)
    return Shortenable(live - state.pinned_positions, frozenset(open_calls(state)))


def whole_from(state: Conversation, budget: Budget, policy: CompactionPolicy) -> int:
    """The position from which on messages stay whole (requirement B5).

    The newest ten, as far as they fit their tier; and in any case the model's last response with
    all that was said after it, for nobody has read that yet.
    """
    room = int(budget.conversation * policy.whole_tier)
    start, first = state.length, stays_from(state)
    for message in state.live[: -policy.whole_last - 1 : -1]:
        room -= shown_after_a_decision(message, first)
        if room < 0:
            break
        start = message.position
    answers = (m.position for m in reversed(state.live) if m.role == "assistant")
    return min(start, next(answers, 0))


def condensed_part_fits(state: Conversation, budget: Budget, policy: CompactionPolicy) -> bool:
    """Whether the messages before those that stay whole fit their tier (requirement B4)."""
    stop = whole_from(state, budget, policy)
    older = (m for m in state.live if state.preamble <= m.position < stop)
    first = stays_from(state)
    tokens = state.older_tokens + sum(shown_after_a_decision(m, first) for m in older)
    return tokens <= budget.conversation * policy.condensed_tier


def thinking_tokens(state: Conversation) -> int:
    """What any decision saves besides: of most thinking nothing is shown behind a prefix that has changed."""
    first = stays_from(state)
    return sum(m.thinking for m in state.live if m.position < first)


def is_worth_it(freed: int, budget: Budget, policy: CompactionPolicy) -> bool:
    """Whether so many tokens are worth that the provider reads the whole prefix anew."""
    return freed * 4 >= _enough(budget, policy)


def is_enough(before: int, after: int, budget: Budget, policy: CompactionPolicy) -> bool:
    """Whether a request that shrank from ``before`` to ``after`` tokens needs no summary now.

    It meets the target; or much was freed (requirement D2) and it is so far below the trigger that
    the next decision is not due soon: each one has the provider read the whole prefix anew.
    """
    if after <= budget.target:
        return True
    well_under = (budget.trigger + budget.target) // 2
    return before - after >= _enough(budget, policy) and after <= well_under


def _enough(budget: Budget, policy: CompactionPolicy) -> int:
    return min(policy.enough_freed_tokens, int(policy.enough_freed_share * budget.window))


def shown_after_a_decision(message: LiveMessage, thinking_from: int) -> int:
    """The tokens of a message behind a changed prefix; ``thinking_from``: where thinking stays from."""
    return message.tokens - (message.thinking if message.position < thinking_from else 0)

"""The decisions to show large content shorter: previews, shortened texts, older results cut to their beginning."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from refold.domain.compaction.budget import Budget
from refold.domain.compaction.policy import CompactionPolicy

from .conversation import Conversation, LiveMessage
from .events import MessagesCondensed, ShortenedPart, ToolContentOffloaded
from .turns import open_calls, stays_from

Side = Literal["call", "result", "said"]
"""Of a tool call; or what a user said or showed, where ``call_id`` is the place of the block."""


class ToolPart(NamedTuple):
    """One side of a tool call of a live message, or a block of a user's message, with what it would cost
    if it were shown shorter.
    """

    position: int
    call_id: str
    side: Side
    """The call's input, or its result; or what a user said."""
    tokens: int
    """Its size as it is shown now."""
    short_tokens: int
    blind: bool = False
    """Whether nothing of it is to be seen then: it is an image, say."""

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
    return min(start, last_response(state))


def last_response(state: Conversation) -> int:
    """The position of the model's last response; 0 where it has said nothing."""
    answers = (m.position for m in reversed(state.live) if m.role == "assistant")
    return next(answers, 0)


def unanswered_from(state: Conversation) -> int:
    """The position from which on the model has read nothing yet."""
    last = next((m.position for m in reversed(state.live) if m.role == "assistant"), -1)
    return last + 1


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

    It meets the target; or much was freed, and it is under the trigger (requirement D2). Little is not
    enough: each decision has the provider read the whole prefix anew, and the next would be due soon.
    """
    if after <= budget.target:
        return True
    return before - after >= _enough(budget, policy) and after < budget.trigger


def _enough(budget: Budget, policy: CompactionPolicy) -> int:
    return min(policy.enough_freed_tokens, int(policy.enough_freed_share * budget.window))


def shown_after_a_decision(message: LiveMessage, thinking_from: int) -> int:
    """The tokens of a message behind a changed prefix; ``thinking_from``: where thinking stays from."""
    return message.tokens - (message.thinking if message.position < thinking_from else 0)


def much_smaller(parts: Sequence[ToolPart]) -> tuple[ToolPart, ...]:
    """The parts of which a preview costs less than half; the others stay, oldest first."""
    found = (part for part in parts if part.short_tokens * 2 < part.tokens)
    return tuple(sorted(found, key=_position))


def choose_offloads(
    parts: Sequence[ToolPart],
    state: Conversation,
    size: int,
    budget: Budget,
    policy: CompactionPolicy,
) -> tuple[ToolPart, ...]:
    """The parts to show as previews of a request with ``size`` tokens; none where it gains little.

    Giants first, wherever they stand, the oldest first and no more than needed. If that is not enough,
    all large parts before the messages that stay whole, at once: the prefix then stays as it is for
    longer than if some were left for later.
    """
    candidates = much_smaller(parts)
    giant = budget.room * policy.giant_share
    giants = _giants(candidates, state, giant)
    thinking = thinking_tokens(state)
    for count in range(1, len(giants) + 1):
        if is_enough(size, size - thinking - _freed(giants[:count]), budget, policy):
            return giants[:count]
    stop = whole_from(state, budget, policy)
    older = tuple(
        p for p in candidates if p.position < stop and giant >= p.tokens > policy.offload_tokens
    )
    chosen = (*giants, *older)
    if giants or is_worth_it(_freed(chosen) + thinking, budget, policy):
        return chosen
    return ()


def _giants(parts: Sequence[ToolPart], state: Conversation, giant: float) -> tuple[ToolPart, ...]:
    """The giants, those that the model has answered before the others.

    Of what it has not answered yet some must be left to see: an image has no preview.
    """
    fresh = unanswered_from(state)
    giants = [p for p in parts if p.tokens > giant]
    older = (p for p in giants if p.position < fresh)
    newer = (p for p in giants if p.position >= fresh and not p.blind)
    return (*older, *newer)


def as_few_as_needed(parts: Sequence[ToolPart], excess: int) -> tuple[ToolPart, ...]:
    """The parts to show shorter so that ``excess`` tokens are freed, oldest first."""
    chosen: list[ToolPart] = []
    for part in sorted(parts, key=_position):
        if excess <= 0:
            break
        if part.freed > 0:
            chosen.append(part)
            excess -= part.freed
    return tuple(chosen)


def offload_parts(
    parts: Sequence[ShortenedPart], *, head: int, tail: int
) -> tuple[ToolContentOffloaded, ...]:
    """Show ``parts`` as previews from now on; no parts, no decision."""
    return (ToolContentOffloaded(parts=tuple(parts), head=head, tail=tail),) if parts else ()


def _freed(parts: Sequence[ToolPart]) -> int:
    return sum(part.freed for part in parts)


def _position(part: ToolPart) -> int:
    return part.position


LEAST_SAVED = 20
"""Tokens below which a result stays: its marker would say little less than the result."""


def worth_a_marker(parts: Sequence[ToolPart]) -> tuple[ToolPart, ...]:
    """The results that a marker makes smaller; inputs are the model's own words and stay."""
    return tuple(p for p in parts if p.side == "result" and p.freed >= LEAST_SAVED)


def choose_condensed(
    parts: Sequence[ToolPart], state: Conversation, budget: Budget, policy: CompactionPolicy
) -> tuple[ToolPart, ...] | None:
    """The results to cut short: all before the messages that stay whole, at once (requirement B4).

    None where that gains too little; empty where dropping the thinking is what gains.
    """
    stop = whole_from(state, budget, policy)
    chosen = tuple(part for part in worth_a_marker(parts) if part.position < stop)
    freed = sum(part.freed for part in chosen) + thinking_tokens(state)
    return chosen if is_worth_it(freed, budget, policy) else None


def condense_parts(
    parts: Sequence[ShortenedPart], characters: int
) -> tuple[MessagesCondensed, ...]:
    """Cut ``parts`` to so many characters from now on; with 0 only a marker is left of them."""
    return (MessagesCondensed(parts=tuple(parts), characters=characters),)

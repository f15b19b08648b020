"""Decisions to shorten large content: previews, shortened user texts, and condensed tool results."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from refold.domain.compaction.budget import Budget
from refold.domain.compaction.policy import CompactionPolicy

from .conversation import Conversation, LiveMessage
from .events import MessagesCondensed, ShortenedPart, ToolContentOffloaded
from .turns import open_calls, thinking_start
from .value import build_in_order

Side = Literal["call", "result", "said"]
"""Side of a tool call, or ``said`` for user content. For the latter ``call_id`` is the index of the block."""


class ToolPart(NamedTuple):
    """A part of a live message that can be shortened: a side of a tool call, or a block of user content."""

    position: int
    call_id: str
    side: Side
    """Input of the call, its result, or user content."""
    tokens: int
    """Tokens as shown now."""
    short_tokens: int
    blind: bool = False
    """Whether the shortened form shows no content, for example of an image."""

    @property
    def freed(self) -> int:
        """Tokens that shortening frees."""
        return self.tokens - self.short_tokens


class Shortenable(NamedTuple):
    """The parts that may be shortened: those of live messages that are not pinned.

    A call that waits for its result is excluded, because a person may be asked to approve it.
    """

    positions: frozenset[int]
    waiting: frozenset[str]

    def allows(self, position: int, call_id: str, side: Side) -> bool:
        """Return whether this part may be shortened."""
        return position in self.positions and not (side == "call" and call_id in self.waiting)


def shortenable(state: Conversation) -> Shortenable:
    """Return the parts that may be shortened in this state."""
    live = frozenset(m.position for m in state.live)
    return Shortenable(live - state.pinned_positions, frozenset(open_calls(state)))


def whole_start(state: Conversation, budget: Budget, policy: CompactionPolicy) -> int:
    """Return the position from which messages stay whole.

    These are the newest ``whole_last`` messages as far as they fit their tier. The model's last response
    and all later messages always stay whole, because the model has not read those messages yet.
    """
    room = int(budget.conversation * policy.whole_tier)
    start, first = state.length, thinking_start(state)
    for message in state.live[: -policy.whole_last - 1 : -1]:
        room -= tokens_after_decision(message, first)
        if room < 0:
            break
        start = message.position
    return min(start, last_response(state))


def last_response(state: Conversation) -> int:
    """Return the position of the model's last response, or 0 if none exists."""
    answers = (m.position for m in reversed(state.live) if m.role == "assistant")
    return next(answers, 0)


def first_unread(state: Conversation) -> int:
    """Return the position of the first message that the model has not read."""
    last = next((m.position for m in reversed(state.live) if m.role == "assistant"), -1)
    return last + 1


def condensed_part_fits(state: Conversation, budget: Budget, policy: CompactionPolicy) -> bool:
    """Return whether the messages before the whole ones fit their tier."""
    stop = whole_start(state, budget, policy)
    older = (m for m in state.live if state.preamble <= m.position < stop)
    first = thinking_start(state)
    tokens = state.older_tokens + sum(tokens_after_decision(m, first) for m in older)
    return tokens <= budget.conversation * policy.condensed_tier


def thinking_tokens(state: Conversation) -> int:
    """Return the tokens of thinking that any decision drops by changing the prefix."""
    first = thinking_start(state)
    return sum(m.thinking for m in state.live if m.position < first)


def is_worth_it(freed: int, budget: Budget, policy: CompactionPolicy) -> bool:
    """Return whether freeing this many tokens is worth a new prefix, which the provider must read again."""
    return freed * 4 >= _enough(budget, policy)


def is_enough(before: int, after: int, budget: Budget, policy: CompactionPolicy) -> bool:
    """Return whether a request that shrank from ``before`` to ``after`` tokens needs no summary now.

    This is true if it meets the target, or if much was freed and it is below the trigger. A small gain is
    not enough: each decision makes the provider read the whole prefix again, and the next one would be due
    soon.
    """
    if after <= budget.target:
        return True
    return before - after >= _enough(budget, policy) and after < budget.trigger


def _enough(budget: Budget, policy: CompactionPolicy) -> int:
    return min(policy.enough_freed_tokens, int(policy.enough_freed_share * budget.window))


def tokens_after_decision(message: LiveMessage, thinking_from: int) -> int:
    """Return the tokens of a message after a decision. Only thinking from ``thinking_from`` on stays."""
    return message.tokens - (message.thinking if message.position < thinking_from else 0)


def select_much_smaller(parts: Sequence[ToolPart]) -> tuple[ToolPart, ...]:
    """Return the parts whose preview has less than half of their tokens, oldest first."""
    found = (part for part in parts if part.short_tokens * 2 < part.tokens)
    return tuple(sorted(found, key=_position))


def choose_offloads(
    parts: Sequence[ToolPart],
    state: Conversation,
    size: int,
    budget: Budget,
    policy: CompactionPolicy,
) -> tuple[ToolPart, ...]:
    """Choose the parts to offload in a request of ``size`` tokens, or none if that gains little.

    Giant parts come first in any position, oldest first, and only as many as needed. If they are not
    enough, all large parts before the whole messages are offloaded at once, so that the prefix then stays
    unchanged for longer.
    """
    candidates = select_much_smaller(parts)
    giant = budget.room * policy.giant_share
    giants = _giants(candidates, state, giant)
    thinking = thinking_tokens(state)
    for count in range(1, len(giants) + 1):
        if is_enough(size, size - thinking - _total_freed(giants[:count]), budget, policy):
            return giants[:count]
    stop = whole_start(state, budget, policy)
    older = tuple(
        p for p in candidates if p.position < stop and giant >= p.tokens > policy.offload_tokens
    )
    chosen = (*giants, *older)
    if giants or is_worth_it(_total_freed(chosen) + thinking, budget, policy):
        return chosen
    return ()


def _giants(parts: Sequence[ToolPart], state: Conversation, giant: float) -> tuple[ToolPart, ...]:
    """Return the giant parts, with those that the model has answered first.

    Unanswered parts without a preview, such as images, are left out, because the model must see them.
    """
    fresh = first_unread(state)
    giants = [p for p in parts if p.tokens > giant]
    older = (p for p in giants if p.position < fresh)
    newer = (p for p in giants if p.position >= fresh and not p.blind)
    return (*older, *newer)


def choose_fewest(parts: Sequence[ToolPart], excess: int) -> tuple[ToolPart, ...]:
    """Return as many parts, oldest first, as are needed to free ``excess`` tokens."""
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
    """Record that ``parts`` are shown as previews, or do nothing if there are none."""
    return (
        (build_in_order(ToolContentOffloaded, parts=tuple(parts), head=head, tail=tail),)
        if parts
        else ()
    )


def _total_freed(parts: Sequence[ToolPart]) -> int:
    return sum(part.freed for part in parts)


def _position(part: ToolPart) -> int:
    return part.position


LEAST_SAVED = 20
"""Minimum number of tokens that a marker must free. A smaller result has nearly the size of the marker."""


def select_worth_marking(parts: Sequence[ToolPart]) -> tuple[ToolPart, ...]:
    """Return the tool results that a marker makes smaller. Inputs are the model's own words and stay."""
    return tuple(p for p in parts if p.side == "result" and p.freed >= LEAST_SAVED)


def choose_condensed(
    parts: Sequence[ToolPart], state: Conversation, budget: Budget, policy: CompactionPolicy
) -> tuple[ToolPart, ...] | None:
    """Choose the tool results to condense: all before the whole messages, at once.

    None means that the gain is too small. An empty tuple means that dropping thinking gains enough.
    """
    stop = whole_start(state, budget, policy)
    chosen = tuple(part for part in select_worth_marking(parts) if part.position < stop)
    freed = sum(part.freed for part in chosen) + thinking_tokens(state)
    return chosen if is_worth_it(freed, budget, policy) else None


def condense_parts(
    parts: Sequence[ShortenedPart], head: int, tail: int = 0
) -> tuple[MessagesCondensed, ...]:
    """Record that ``parts`` are cut to so many characters at both ends. With 0 only a marker remains."""
    return (build_in_order(MessagesCondensed, parts=tuple(parts), characters=head, tail=tail),)

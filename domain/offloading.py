"""The decision to show large tool results and inputs as previews; their content stays in the log."""

from collections.abc import Sequence

from .budget import Budget
from .conversation import Conversation
from .events import ShortenedPart, ToolContentOffloaded
from .policy import CompactionPolicy
from .shortening import (
    ToolPart,
    is_enough,
    is_worth_it,
    thinking_tokens,
    unanswered_from,
    whole_from,
)


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

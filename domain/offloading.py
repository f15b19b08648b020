"""The decision to show large tool results and inputs as previews; their content stays in the log."""

from collections.abc import Sequence

from .budget import Budget
from .conversation import Conversation
from .events import ShortenedPart, ToolContentOffloaded
from .policy import CompactionPolicy
from .shortening import ToolPart, is_enough, is_worth_it, thinking_tokens, whole_from


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

    Giants first, wherever they stand. If that is not enough, all large parts before the messages that
    stay whole, at once: the prefix then stays as it is for longer than if some were left for later.
    """
    candidates = much_smaller(parts)
    giant = budget.room * policy.giant_share
    giants = tuple(p for p in candidates if p.tokens > giant)
    thinking = thinking_tokens(state)
    if giants and is_enough(size, size - thinking - _freed(giants), budget, policy):
        return giants
    stop = whole_from(state, budget, policy)
    older = tuple(
        p for p in candidates if p.position < stop and giant >= p.tokens > policy.offload_tokens
    )
    chosen = (*giants, *older)
    if giants or is_worth_it(_freed(chosen) + thinking, budget, policy):
        return chosen
    return ()


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

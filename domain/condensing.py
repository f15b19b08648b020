"""The decision to cut the tool results of older messages short; their content stays in the log."""

from collections.abc import Sequence

from .budget import Budget
from .conversation import Conversation
from .events import MessagesCondensed, ShortenedPart
from .policy import CompactionPolicy
from .shortening import ToolPart, is_worth_it, thinking_tokens, whole_from

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

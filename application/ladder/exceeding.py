"""The error for a request that no rung of the ladder makes small enough."""

from refold.application.loaded import LoadedConversation
from refold.domain.budget import Budget
from refold.domain.conversation import Conversation
from refold.domain.errors import ContextWindowExceeded, PinnedContentTooLarge

NAMED = 3
"""So many of the largest culprits are named."""


def window_exceeded(
    loaded: LoadedConversation, needed: int, budget: Budget
) -> ContextWindowExceeded:
    """What to raise for a request of ``needed`` tokens: it says what is in the way."""
    pins = _pins(loaded)
    pinned = sum(pins.values())
    fixed = _fixed(budget)
    # Where the fixed parts alone do not fit, unpinning would be no help.
    if pinned and budget.fixed <= budget.limit < budget.fixed + pinned:
        named = ", ".join(f"{pin} {tokens:,} tokens" for pin, tokens in _largest(pins))
        return PinnedContentTooLarge(
            needed,
            budget.limit,
            f"{fixed}what is pinned takes {pinned:,} tokens alone: {named}. "
            f"{_way_out('Unpin some of it', 'use a model with a larger window', budget)}",
            pins=tuple(pin.pin_id for pin in loaded.state.pins),
            pinned=pinned,
            instructions=budget.instructions,
        )
    messages = {f"message {m.position} ({m.role})": m.tokens for m in loaded.state.live}
    named = ", ".join(f"{message} {tokens:,} tokens" for message, tokens in _largest(messages))
    return ContextWindowExceeded(
        needed,
        budget.limit,
        f"{fixed}the largest messages that must stay word for word: {named or 'none'}. "
        f"{_way_out('Use a model with a larger window', 'send less at once', budget)}",
        instructions=budget.instructions,
    )


def _fixed(budget: Budget) -> str:
    """What every request carries: what the caller gave, and what a setting adds to it."""
    files, given = budget.instructions, budget.fixed - budget.instructions
    told = f"instruction files {files:,} tokens; " if files else ""
    return told + (f"system text and tools {given:,} tokens; " if given else "")


def _way_out(first: str, second: str, budget: Budget) -> str:
    if not budget.instructions:
        return f"{first}, or {second}"
    return (
        f"{first}, {second}, name fewer instruction files (`instruction_files`), or allow fewer "
        "characters of them (`instruction_characters`, `instruction_total`)"
    )


def is_out_of_reach(state: Conversation, budget: Budget) -> bool:
    """Whether what no rung makes smaller does not fit by itself: then nothing is folded for it in vain.

    Fixed parts, pins, and what the user said since the model last spoke.
    """
    pinned, size = state.pinned_positions, budget.fixed + sum(pin.tokens for pin in state.pins)
    unanswered = True
    for message in reversed(state.live):
        unanswered = unanswered and message.role != "assistant"
        if message.position in pinned or (unanswered and not message.results):
            size += message.tokens - message.thinking
    return size > budget.limit


def _pins(loaded: LoadedConversation) -> dict[str, int]:
    """What each pin takes: its line in the ledger, or the message that it holds in place."""
    in_place = {m.position: m.tokens for m in loaded.state.live}
    return {
        _name(pin.pin_id, pin.position): pin.tokens or in_place.get(pin.position or 0, 0)
        for pin in loaded.state.pins
    }


def _name(pin_id: str, position: int | None) -> str:
    return f"pin {pin_id!r}" + (f" of message {position}" if position is not None else "")


def _largest(sizes: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(sizes.items(), key=lambda item: item[1], reverse=True)[:NAMED]

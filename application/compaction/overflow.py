"""Errors for requests that cannot be made small enough."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from refold.application.conversation.entries import held_entries
from refold.application.conversation.loaded import LoadedConversation
from refold.domain.compaction.budget import Budget
from refold.domain.errors import ContextWindowExceeded, PinnedContentTooLarge, RequestTooLarge

Name = TypeVar("Name")

NAMED = 3
"""Number of the largest messages to name."""


def window_exceeded(
    loaded: LoadedConversation, needed: int, budget: Budget, *, may_shorten: bool = True
) -> ContextWindowExceeded:
    """Return the error for a request of ``needed`` tokens, with the causes and possible remedies.

    ``may_shorten``: whether user content may be shortened.
    """
    pins = _pins(loaded)
    pinned = sum(pins.values())
    fixed = _describe_fixed(budget)
    # If the fixed parts alone do not fit, unpinning would not help.
    if pinned and budget.fixed <= budget.limit < budget.fixed + pinned:
        named = ", ".join(f"{pin} {tokens:,} tokens" for pin, tokens in _largest(pins))
        return PinnedContentTooLarge(
            needed,
            budget.limit,
            f"{fixed}pinned content alone takes {pinned:,} tokens: {named}. "
            f"{_way_out(_capital(_unpin(loaded)), 'use a model with a larger window', budget)}",
            pins=tuple(pin.pin_id for pin in loaded.state.pins),
            pinned=pinned,
            instructions=budget.instructions,
        )
    tokens_of = {m.position: m.tokens for m in loaded.state.live}
    largest = _largest(tokens_of)
    named = ", ".join(f"{_message(loaded, at)} {tokens:,} tokens" for at, tokens in largest)
    smaller = _smaller(loaded, _enough(tokens_of, needed - budget.limit), budget, may_shorten)
    return ContextWindowExceeded(
        needed,
        budget.limit,
        f"{fixed}the largest messages: {named or 'none'}. "
        f"{_way_out(smaller, 'use a model with a larger window', budget)}",
        instructions=budget.instructions,
    )


def too_many_bytes(loaded: LoadedConversation, needed: int, budget: Budget) -> RequestTooLarge:
    """Return the error for a request of ``needed`` bytes that cannot be made small enough."""
    sizes = {entry.position: entry.bytes for entry in held_entries(loaded.window.entries)}
    largest = _largest(sizes)
    named = ", ".join(f"{_message(loaded, at)} {size:,} bytes" for at, size in largest)
    enough = _enough(sizes, needed - budget.byte_limit)
    return RequestTooLarge(
        needed,
        budget.byte_limit,
        f"system text and tools {budget.fixed_bytes:,} bytes; the largest messages: "
        f"{named or 'none'}. {_smaller(loaded, enough, budget)}, or allow larger requests (`request_bytes`)",
    )


def _message(loaded: LoadedConversation, position: int) -> str:
    roles = {m.position: m.role for m in loaded.state.live}
    pin = _pin_of(loaded, position)
    return f"message {position} ({roles.get(position, 'message')}{f', pinned as {pin!r}' if pin else ''})"


def _pin_of(loaded: LoadedConversation, position: int) -> str | None:
    pins = (pin for pin in loaded.state.pins if not pin.tokens and pin.position == position)
    return next((pin.pin_id for pin in pins), None)


def _unpin(loaded: LoadedConversation) -> str:
    return f"unpin some content (`conversation.unpin({loaded.state.pins[-1].pin_id!r})`)"


def _enough(sizes: Mapping[int, int], excess: int) -> list[int]:
    """Return the positions of the fewest, largest messages whose sizes cover the excess."""
    chosen: list[int] = []
    for position, size in sorted(sizes.items(), key=lambda item: item[1], reverse=True):
        if chosen and excess <= 0:
            break
        chosen.append(position)
        excess -= size
    return chosen


def _smaller(
    loaded: LoadedConversation, largest: Sequence[int], budget: Budget, may_shorten: bool = True
) -> str:
    """Return advice for the largest messages; they are stored already, so sending less does not help."""
    if not largest or budget.fixed >= budget.limit or budget.fixed_bytes >= budget.byte_limit:
        is_given = budget.fixed > budget.instructions
        return "Send a shorter system text or fewer tools" if is_given else ""
    ways: list[str] = []
    if not may_shorten and _is_said(loaded, largest[0]):
        ways.append("allow shortening it (`shorten_texts=True`)")
    pins = [pin for at in largest if (pin := _pin_of(loaded, at)) is not None]
    if pins:
        calls = " and ".join(f"`conversation.unpin({pin!r})`" for pin in pins)
        setting = "" if may_shorten else " and set `shorten_texts=True`"
        ways.append(f"unpin it with {calls}{setting}, so that it can be shortened")
    elif loaded.state.pins:
        ways.append(_unpin(loaded))
    return _capital(", or ".join([*ways, _erase(largest)]))


def _erase(positions: Sequence[int]) -> str:
    named = ", ".join(map(str, positions[:NAMED]))
    if len(positions) == 1:
        return f"remove message {named} for good with `conversation.erase({named})`"
    if len(positions) <= NAMED:
        return f"remove messages {named} for good with `conversation.erase([{named}])`"
    count = f"{len(positions):,} messages"
    return f"remove {count} for good, the largest first, with `conversation.erase([{named}, …])`"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _is_said(loaded: LoadedConversation, position: int) -> bool:
    """Return whether the last rung could shorten the message: it is a user's and not pinned."""
    said = (m for m in loaded.state.live if m.role == "user" and not m.results)
    return position in {m.position for m in said} - loaded.state.pinned_positions


def _describe_fixed(budget: Budget) -> str:
    """Return the sizes of the parts that every request has, from the caller and from settings."""
    files, given = budget.instructions, budget.fixed - budget.instructions
    sizes = f"instruction files {files:,} tokens; " if files else ""
    return sizes + (f"system text and tools {given:,} tokens; " if given else "")


def _way_out(first: str, second: str, budget: Budget) -> str:
    if not first:
        first, second = second[0].upper() + second[1:], ""
    first = f"{first}, {second}" if second and budget.instructions else first
    if not budget.instructions:
        return f"{first}, or {second}" if second else first
    return (
        f"{first}, use fewer instruction files (`instruction_files`), or reduce their size "
        "(`instruction_characters`, `instruction_total`)"
    )


def _pins(loaded: LoadedConversation) -> dict[str, int]:
    """Return the tokens of each pin: of its line in the ledger, or of the message that it keeps in place."""
    in_place = {m.position: m.tokens for m in loaded.state.live}
    return {
        _name(pin.pin_id, pin.position): pin.tokens or in_place.get(pin.position or 0, 0)
        for pin in loaded.state.pins
    }


def _name(pin_id: str, position: int | None) -> str:
    return f"pin {pin_id!r}" + (f" of message {position}" if position is not None else "")


def _largest(sizes: Mapping[Name, int]) -> list[tuple[Name, int]]:
    return sorted(sizes.items(), key=lambda item: item[1], reverse=True)[:NAMED]

"""Tool inputs and results of live messages, with the tokens that shortening each would save."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from refold.application.conversation.addresses import address_of
from refold.application.conversation.entries import Entry, Preview, held_entries
from refold.application.conversation.loaded import LoadedConversation
from refold.application.rendering.shortened_blocks import shorten_block
from refold.application.runtime.core import Core
from refold.domain.events import SaidPart, ShortenedPart
from refold.domain.messages import THINKING, Block, Message, text_of
from refold.domain.shortening import Side, ToolPart, shortenable
from refold.domain.value import build_in_order, build_unvalidated


class Decided(NamedTuple):
    """A part to shorten, with the tokens that this saves."""

    position: int
    call_id: str
    side: Side
    tokens_freed: int


def name_tool_parts(parts: Sequence[Decided]) -> tuple[ShortenedPart, ...]:
    """Return the parts of tool calls in the form of events."""
    return tuple(
        build_in_order(
            ShortenedPart,
            position=p.position,
            call_id=p.call_id,
            side=p.side,
            tokens_freed=p.tokens_freed,
        )
        for p in parts
        if p.side != "said"
    )


def name_user_parts(parts: Sequence[Decided]) -> tuple[SaidPart, ...]:
    """Return the parts of user messages in the form of events."""
    return tuple(
        SaidPart(position=p.position, block=int(p.call_id), tokens_freed=p.tokens_freed)
        for p in parts
        if p.side == "said"
    )


class _Name(NamedTuple):
    call_id: str
    side: Side


TOOLS: frozenset[Side] = frozenset(("call", "result"))
RESULTS: frozenset[Side] = frozenset(("result",))
SAID: frozenset[Side] = frozenset(("said",))


LARGE_BLANK = 1_000
"""Characters from which a blank text is shown by a marker, because it counts although it is not shown."""


def tool_parts(
    core: Core,
    loaded: LoadedConversation,
    preview: Preview,
    *,
    least: int = 0,
    sides: frozenset[Side] = TOOLS,
    stop: int | None = None,
    size: Callable[[Block], int] | None = None,
) -> list[ToolPart]:
    """Return the parts that this preview would shorten, oldest first.

    ``least``: messages of at most this number of tokens are skipped, because measuring is expensive.
    ``sides``: kinds of parts. ``stop``: position of the first message that is left out.
    ``size``: function that measures a block in another unit than tokens.
    """
    size = size or (lambda block: _size(core, [block]))
    allowed = shortenable(loaded.state)
    found: list[ToolPart] = []
    for entry in held_entries(loaded.window.entries):
        if stop is not None and entry.position >= stop:
            break
        if entry.tokens - entry.thinking <= least:
            continue
        address = address_of(loaded.thread_id, entry.position)
        for index, block in enumerate(entry.message.blocks()):
            name = _name_of(entry, index, block)
            if name is None or name.side not in sides or not allowed.allows(entry.position, *name):
                continue
            if _is_blank(block) and len(block.get("text") or "") < LARGE_BLANK:
                continue  # It is not shown, so that leaving it out would only add a marker.
            shown = loaded.window.previews.get((entry.position, name.call_id, name.side))
            if _is_as_short(shown, preview):
                continue
            now = size(shorten_block(block, shown, address) if shown else block)
            is_left_out = preview.method == "left-out"
            then = 0 if is_left_out else size(shorten_block(block, preview, address))
            blind = block.get("type") != "tool_use" and not text_of(block)
            found.append(ToolPart(entry.position, *name, now, then, blind))
    return found


def decide_parts(
    core: Core, loaded: LoadedConversation, parts: Sequence[ToolPart], preview: Preview
) -> tuple[Decided, ...]:
    """Return the parts, each with the tokens that the preview frees.

    For each message, they add up to the exact difference in size.
    """
    freed: dict[int, dict[_Name, int]] = {}
    for part in parts:
        of_message = freed.setdefault(part.position, {})
        name = _Name(part.call_id, part.side)
        of_message[name] = of_message.get(name, 0) + part.freed
    shown: dict[int, dict[_Name, Preview]] = {position: {} for position in freed}
    for (position, call_id, side), before in loaded.window.previews.items():
        if position in shown:
            shown[position][_Name(call_id, cast(Side, side))] = before
    return tuple(
        part
        for entry in held_entries(loaded.window.entries)
        if entry.position in freed
        for part in _decide_in(
            core,
            _Shown(entry, address_of(loaded.thread_id, entry.position), shown[entry.position]),
            freed[entry.position],
            preview,
        )
    )


class _Shown(NamedTuple):
    """A message as it is rendered."""

    entry: Entry
    address: str
    previews: dict[_Name, Preview]

    def size(self, core: Core) -> int:
        """Return the tokens of the message without thinking."""
        blocks = enumerate(self.entry.message.blocks())
        shown = [self._block(i, block) for i, block in blocks if block.get("type") not in THINKING]
        left = [block for block in shown if block is not None]
        return _size(core, left) if left else 0

    def _block(self, index: int, block: Block) -> Block | None:
        name = _name_of(self.entry, index, block)
        preview = self.previews.get(name) if name is not None else None
        if preview is None:
            return block
        is_left_out = preview.method == "left-out"
        return None if is_left_out else shorten_block(block, preview, self.address)


def _decide_in(
    core: Core, shown: _Shown, freed: Mapping[_Name, int], preview: Preview
) -> Iterator[Decided]:
    # The message is measured as a whole, and the last part gets the sum of all rounding differences.
    # Sizes are in the units of the recorded tokens, even if the counter has learnt since.
    recorded = shown.entry.tokens - shown.entry.thinking
    recorded -= sum(before.tokens_freed for before in shown.previews.values())
    now = max(1, shown.size(core))
    after = shown._replace(previews={**shown.previews, **dict.fromkeys(freed, preview)})
    saved = recorded + -recorded * after.size(core) // now
    *others, last = freed
    shares = {name: freed[name] * recorded // now for name in others}
    shares[last] = saved - sum(shares.values())
    for name, tokens in shares.items():
        yield Decided(shown.entry.position, name.call_id, name.side, tokens)


def _name_of(entry: Entry, index: int, block: Block) -> _Name | None:
    # In messages of another role they are shown as plain text, or not at all.
    match block.get("type"), entry.message.role:
        case "tool_use", "assistant":
            return _Name(str(block.get("id")), "call")
        case "tool_result", "user":
            return _Name(str(block.get("tool_use_id")), "result")
        case "text" | "image" | "document", "user":
            return _Name(str(index), "said")
        case _:
            return None


def _is_blank(block: Block) -> bool:
    return block.get("type") == "text" and not str(block.get("text") or "").strip()


def _is_as_short(shown: Preview | None, preview: Preview) -> bool:
    if shown is None or shown.method == "left-out":
        return shown is not None
    return preview.method != "left-out" and shown.head + shown.tail <= preview.head + preview.tail


def _size(core: Core, blocks: Sequence[Block]) -> int:
    message = build_unvalidated(
        Message, role="user", content=tuple(blocks), author=None, extra=None, unknown=()
    )
    return core.counter.count_message(message).total

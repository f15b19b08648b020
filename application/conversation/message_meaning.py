"""The meaning of a message: what two forms of the same message have in common."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from refold.domain.messages import THINKING, Block, Message, said
from refold.domain.value import is_list, is_object

from .addresses import is_marker

_ADDED_LATER = (*THINKING, "tool_use", "tool_result")


def same_beginning(stored: Iterable[Message | None], recorded: Iterable[Message]) -> int:
    """Return how many recorded messages a conversation begins with already, also under other keys.

    ``stored`` has None for an erased message: what it was is not known, and it must not come back. Nor is it known of
    a recorded one that was erased in the log that it comes from.
    """
    pairs = enumerate(zip(stored, recorded, strict=False), start=1)
    count = 0
    for count, (known, given) in pairs:
        if known is None or was_erased_at_source(given):
            continue
        if meaning(known.model_dump()) != meaning(given.model_dump()):
            return count - 1
    return count


def is_same(stored: Message, given: Mapping[str, Any], is_keyed: bool) -> bool:
    """Return whether a stored message is the one that was given.

    What an erased message said is known by its key alone. Without one, a message with its role is taken for it, because
    it must not come back.
    """
    if not is_keyed and was_erased_at_source(stored):
        return stored.role == given.get("role")
    return meaning(stored.model_dump()) == meaning(given)


def was_erased_at_source(message: Message) -> bool:
    """Return whether a message was erased in the log that it comes from."""
    results = (b.get("content") for b in message.blocks() if b.get("type") == "tool_result")
    return is_marker(said(message)) or any(isinstance(r, str) and is_marker(r) for r in results)


def identity(block: Block) -> Block:
    """Return a block, or what a call or a result is known by: a tool may have written it in another form since."""
    match block.get("type"):
        case "tool_use" if block.get("id"):
            return {"type": "tool_use", "id": block["id"]}
        case "tool_result":
            return {"type": "tool_result", "tool_use_id": block.get("tool_use_id")}
        case _:
            return block


def added_blocks(blocks: Sequence[Block], known: Iterable[Block]) -> tuple[Block, ...]:
    """Return the blocks that a message has besides the ``known`` ones, or none if a known one is missing.

    They must be calls, results or reasoning. A tool writes these where they belong: results come in any order, and
    reasoning stands before its answer.
    """
    added, names = list(blocks), [*map(identity, blocks)]
    for name in map(identity, known):
        if name not in names:
            return ()
        place = names.index(name)
        del added[place], names[place]
    return tuple(added) if all(block.get("type") in _ADDED_LATER for block in added) else ()


def meaning(message: Mapping[str, Any]) -> str:
    """Return what two forms of the same message have in common: role, words, calls and results.

    Thinking is left out, because an application need not send it back.
    """
    parts: list[Any] = []
    for block in _blocks(message.get("content")):
        part = _part(block)
        if part is None:
            continue
        if parts and parts[-1][0] == part[0] == "text":
            parts[-1][1] += part[1]
        else:
            parts.append(part)
    return json.dumps([message.get("role"), parts], sort_keys=True, ensure_ascii=False, default=str)


def _blocks(content: Any) -> Sequence[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if is_object(block)] if is_list(content) else []


def _part(block: Mapping[str, Any]) -> list[Any] | None:
    match block.get("type"):
        case str() as kind if kind in THINKING:
            return None
        case "text":
            return ["text", str(block.get("text"))] if block.get("text") else None
        case "tool_use":
            return ["tool_use", block.get("id"), block.get("name"), block.get("input")]
        case "tool_result":
            inner = [_part(one) for one in _blocks(block.get("content"))]
            return ["tool_result", block.get("tool_use_id"), inner, bool(block.get("is_error"))]
        case kind:
            named = {n: v for n, v in block.items() if v is not None and n != "cache_control"}
            return [kind, named]

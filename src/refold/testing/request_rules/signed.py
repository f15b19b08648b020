"""Rules about signed blocks within one request: thinking and compaction."""

from collections.abc import Iterator, Mapping
from typing import cast

from refold.testing.request_rules.request import (
    THINKING,
    Json,
    Turn,
    blocks_of,
    is_result,
    message_blocks,
    messages_of,
    role_of,
    turns_of,
)


def thinking_last(request: Json) -> Iterator[str]:
    """Report assistant messages that end in thinking."""
    for m, message in enumerate(messages_of(request)):
        blocks = blocks_of(message.get("content"))
        if role_of(message) == "assistant" and blocks and blocks[-1].get("type") in THINKING:
            yield f"thinking-last: messages[{m}]: the last block is thinking"


def unsigned_thinking(request: Json) -> Iterator[str]:
    """Report thinking without its signature, and redacted thinking without its data."""
    seals = {"thinking": "signature", "redacted_thinking": "data"}
    for placed in message_blocks(request):
        seal = seals.get(str(placed.block.get("type")))
        if seal and not (isinstance(placed.block.get(seal), str) and placed.block[seal]):
            yield f"unsigned-thinking: {placed.where}: {seal} is missing or empty"


def thinking_leads_the_loop(request: Json) -> Iterator[str]:
    """Report an assistant turn of the running tool loop that does not start with thinking in manual mode."""
    config: object = request.get("thinking")
    if not isinstance(config, Mapping) or cast(Json, config).get("type") != "enabled":
        return
    for turn in _running_loop(turns_of(request)):
        if turn.blocks and turn.blocks[0].block.get("type") not in THINKING:
            yield f"thinking-leads: {turn.blocks[0].where}: must start with thinking"


def _running_loop(turns: list[Turn]) -> list[Turn]:
    # The loop runs while the newest turn starts with results. It began at the last real user turn.
    loop: list[Turn] = []
    if not turns or not turns[-1].blocks or not is_result(turns[-1].blocks[0]):
        return loop
    for index in range(len(turns) - 2, -1, -1):
        turn = turns[index]
        if turn.role == "assistant":
            loop.append(turn)
        elif not all(is_result(p) for p in turn.blocks):
            break
    return loop


def compaction_blocks(request: Json) -> Iterator[str]:
    """Report compaction blocks that are empty, not the very first block, or a second one with content."""
    found = [p for p in message_blocks(request) if p.block.get("type") == "compaction"]
    first = "messages[0].content[0]"
    filled = [p for p in found if p.block.get("content") is not None]
    for placed in filled:
        if placed.block.get("content") == "":
            yield f"compaction: {placed.where}: empty content (a failed one has null)"
        if placed.where != first or placed.role == "system":
            yield f"compaction: {placed.where}: must be the first block of the conversation"
    if len(filled) > 1:
        yield f"compaction: {filled[1].where}: more than one with content"

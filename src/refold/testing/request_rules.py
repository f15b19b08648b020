"""The rules of the Messages API about the messages and blocks of one request, one small function each."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from refold.testing.request_parts import (
    ASSISTANT_ONLY,
    CALLS,
    SERVER_CALLS,
    THINKING,
    Json,
    Placed,
    Turn,
    accepts_prefill,
    accepts_system_messages,
    all_blocks,
    blocks_of,
    call_ids,
    is_result,
    is_server_result,
    mappings,
    message_blocks,
    messages_of,
    result_id,
    role_of,
    turns_of,
)

_ROLES = frozenset({"user", "assistant", "system"})
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_SERVER_CALL_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")


def shapes(request: Json) -> Iterator[str]:
    """Report values that are not messages or blocks."""
    messages: object = request.get("messages")
    if not isinstance(messages, list | tuple):
        yield "shape: messages: not a list"
        return
    for m, message in enumerate(cast("Sequence[object]", messages)):
        if not isinstance(message, Mapping):
            yield f"shape: messages[{m}]: not an object"
            continue
        content: object = cast(Json, message).get("content")
        if not isinstance(content, str | list | tuple):
            yield f"shape: messages[{m}].content: neither text nor blocks"
        elif not isinstance(content, str):
            yield from _block_shapes(f"messages[{m}].content", cast("Sequence[object]", content))


def _block_shapes(where: str, blocks: Sequence[object]) -> Iterator[str]:
    for b, block in enumerate(blocks):
        if not isinstance(block, Mapping) or not isinstance(cast(Json, block).get("type"), str):
            yield f"shape: {where}[{b}]: not a block with a type"


def blank_texts(request: Json) -> Iterator[str]:
    """Report empty or blank text blocks in messages, results or the system prompt.

    An empty message text is left to ``empty_contents``, so that one error is reported once.
    """
    optional = _empty_strings(request)
    for placed in all_blocks(request):
        if placed.block.get("type") != "text" or placed.where in optional:
            continue
        text: object = placed.block.get("text")
        if not isinstance(text, str) or not text.strip():
            yield f"blank-text: {placed.where}: a text must not be blank"


def _empty_strings(request: Json) -> set[str]:
    contents = [message.get("content") for message in messages_of(request)]
    return {f"messages[{m}].content[0]" for m, content in enumerate(contents) if content == ""}


def errors_without_content(request: Json) -> Iterator[str]:
    """Report error results without content."""
    for placed in message_blocks(request):
        block = placed.block
        if (
            block.get("type") == "tool_result"
            and block.get("is_error")
            and not block.get("content")
        ):
            yield f"error-without-content: {placed.where}: an error must say what went wrong"


def errors_with_other_content(request: Json) -> Iterator[str]:
    """Report error results that hold anything but texts."""
    for placed in message_blocks(request):
        block = placed.block
        if block.get("type") == "tool_result" and block.get("is_error"):
            kinds = {str(part.get("type")) for part in blocks_of(block.get("content"))}
            for kind in sorted(kinds - {"text"}):
                yield f"error-not-text: {placed.where}: {kind} in a result that is an error"


def empty_contents(request: Json) -> Iterator[str]:
    """Report messages without content. Only a final assistant message may be empty."""
    messages = messages_of(request)
    for m, message in enumerate(messages):
        final = m == len(messages) - 1 and role_of(message) == "assistant"
        if not message.get("content") and not final:
            yield f"empty-content: messages[{m}]: a message must have content"


def no_messages(request: Json) -> Iterator[str]:
    """Report a request without messages."""
    if not messages_of(request):
        yield "no-messages: messages: at least one message is required"


def empty_system(request: Json) -> Iterator[str]:
    """Report a system prompt that is an empty list."""
    system: object = request.get("system")
    if isinstance(system, list | tuple) and not system:
        yield "empty-system: system: leave it out instead of sending an empty list"


def role_names(request: Json) -> Iterator[str]:
    """Report roles that do not exist."""
    for m, message in enumerate(messages_of(request)):
        if message.get("role") not in _ROLES:
            yield f"role-name: messages[{m}]: unknown role {message.get('role')!r}"


def first_role(request: Json) -> Iterator[str]:
    """Report a first message that is not the user's (older models, Bedrock, Vertex).

    A compaction block must be the first block of all, in a message of either role.
    """
    messages = messages_of(request)
    if not messages or role_of(messages[0]) == "user":
        return
    blocks = blocks_of(messages[0].get("content"))
    if not (blocks and blocks[0].get("type") == "compaction"):
        yield "first-role: messages[0]: the first message must be from the user"


def alternation(request: Json) -> Iterator[str]:
    """Report two consecutive messages of one role (portability). System messages are not counted."""
    previous = ""
    for m, message in enumerate(messages_of(request)):
        role = role_of(message)
        if role == "system":
            continue
        if role == previous:
            yield f"alternation: messages[{m}]: a second {role} message in a row"
        previous = role


def system_messages(request: Json, *, model: str) -> Iterator[str]:
    """Report system messages that the model does not support, or not between user and assistant."""
    messages = messages_of(request)
    for m, message in enumerate(messages):
        if role_of(message) != "system":
            continue
        if not accepts_system_messages(model):
            yield f"system-role: messages[{m}]: {model} takes no system messages"
        before = role_of(messages[m - 1]) if m else ""
        after = role_of(messages[m + 1]) if m + 1 < len(messages) else "assistant"
        if before != "user" or after != "assistant":
            yield f"system-role: messages[{m}]: must follow the user and precede the assistant"


def block_roles(request: Json) -> Iterator[str]:
    """Report blocks that the role of their message cannot send."""
    for placed in message_blocks(request):
        kind = str(placed.block.get("type"))
        if kind == "tool_result" and placed.role != "user":
            yield f"block-role: {placed.where}: tool_result in a message of {placed.role}"
        elif kind in ASSISTANT_ONLY and placed.role != "assistant":
            yield f"block-role: {placed.where}: {kind} in a message of {placed.role}"
        elif placed.role == "system" and kind != "text":
            yield f"block-role: {placed.where}: {kind} in a system message"


def prefill(request: Json, *, model: str, allow_pending_at_end: bool = False) -> Iterator[str]:
    """Report a final assistant message for models from generation 4.6 on.

    While calls wait for results, the request is not sent yet, so this is not a prefill.
    """
    messages = messages_of(request)
    if not messages or role_of(messages[-1]) != "assistant" or accepts_prefill(model):
        return
    if allow_pending_at_end and call_ids(turns_of(request)[-1].blocks):
        return
    yield f"prefill: messages[{len(messages) - 1}]: {model} refuses a final assistant message"


def trailing_space(request: Json) -> Iterator[str]:
    """Report a final assistant text that ends in white space."""
    messages = messages_of(request)
    if not messages or role_of(messages[-1]) != "assistant":
        return
    blocks = blocks_of(messages[-1].get("content"))
    text = str(blocks[-1].get("text", "")) if blocks else ""
    if text != text.rstrip():
        yield f"trailing-space: messages[{len(messages) - 1}]: the final text ends in white space"


def unanswered_calls(request: Json, *, allow_pending_at_end: bool = False) -> Iterator[str]:
    """Report ``tool_use`` blocks without a result among the first blocks of the next user turn."""
    turns = turns_of(request)
    for index, turn in enumerate(turns):
        following = turns[index + 1] if index + 1 < len(turns) else None
        if allow_pending_at_end and _may_wait(turns[index + 1 :]):
            continue
        answered = {result_id(p) for p in _leading_results(following)}
        for call in call_ids(turn.blocks):
            if call not in answered:
                where = _place(turn, call)
                yield f"unanswered-call: {where}: no result for {call!r} leads the next user turn"


def _may_wait(later: list[Turn]) -> bool:
    # Pending at the end: nothing follows, or only results of the same round so far.
    return not later or (len(later) == 1 and all(is_result(p) for p in later[0].blocks))


def _leading_results(turn: Turn | None) -> list[Placed]:
    leading: list[Placed] = []
    for placed in turn.blocks if turn else []:
        if not is_result(placed):
            break
        leading.append(placed)
    return leading


def _place(turn: Turn, call: str) -> str:
    return next(p.where for p in turn.blocks if str(p.block.get("id")) == call)


def late_results(request: Json) -> Iterator[str]:
    """Report results after other content of their user turn."""
    for turn in turns_of(request):
        for placed in turn.blocks[len(_leading_results(turn)) :]:
            if is_result(placed):
                yield f"late-result: {placed.where}: results must lead the turn, uninterrupted"


def orphan_results(request: Json) -> Iterator[str]:
    """Report results whose call is not in the assistant turn just before."""
    calls: set[str] = set()
    for turn in turns_of(request):
        for placed in turn.blocks:
            if is_result(placed) and result_id(placed) not in calls:
                yield f"orphan-result: {placed.where}: no call {result_id(placed)!r} just before"
        calls = set(call_ids(turn.blocks))


def duplicate_results(request: Json) -> Iterator[str]:
    """Report two results of one call."""
    for turn in turns_of(request):
        seen: set[str] = set()
        for placed in filter(is_result, turn.blocks):
            if result_id(placed) in seen:
                yield f"duplicate-result: {placed.where}: second result for {result_id(placed)!r}"
            seen.add(result_id(placed))


def repeated_call_ids(request: Json) -> Iterator[str]:
    """Report call ids that are used twice in one conversation."""
    seen: set[str] = set()
    for placed in message_blocks(request):
        if placed.block.get("type") in CALLS:
            call = str(placed.block.get("id"))
            if call in seen:
                yield f"repeated-call-id: {placed.where}: {call!r} was used before"
            seen.add(call)


def call_id_patterns(request: Json) -> Iterator[str]:
    """Report call ids with characters that the API rejects."""
    patterns = {"tool_use": _CALL_ID, "server_tool_use": _SERVER_CALL_ID}
    for placed in message_blocks(request):
        pattern = patterns.get(str(placed.block.get("type")))
        call: object = placed.block.get("id")
        if pattern and not (isinstance(call, str) and pattern.fullmatch(call)):
            yield f"call-id: {placed.where}: {call!r} does not match {pattern.pattern}"


def call_names(request: Json) -> Iterator[str]:
    """Report calls with a name that no tool can have."""
    for placed in message_blocks(request):
        name: object = placed.block.get("name")
        if placed.block.get("type") == "tool_use" and not (
            isinstance(name, str) and _NAME.fullmatch(name)
        ):
            yield f"call-name: {placed.where}: {name!r} does not match {_NAME.pattern}"


def server_results(request: Json) -> Iterator[str]:
    """Report results of server tools without their call before them."""
    calls: set[str] = set()
    for placed in message_blocks(request):
        if placed.block.get("type") in SERVER_CALLS:
            calls.add(str(placed.block.get("id")))
        elif is_server_result(placed) and result_id(placed) not in calls:
            yield f"server-result: {placed.where}: no server call {result_id(placed)!r} before it"


def server_calls(request: Json) -> Iterator[str]:
    """Report calls of server tools that never get a result although the conversation continued.

    A paused turn may be last without the result, also while a program waits for client tools.
    """
    turns = turns_of(request)
    blocks = message_blocks(request)
    settled = {result_id(p) for p in blocks if is_server_result(p)}
    settled |= {
        str(caller["tool_id"])
        for p in blocks
        for caller in mappings([p.block.get("caller")])
        if "tool_id" in caller
    }
    for turn in turns[:-1]:
        for placed in turn.blocks:
            call = str(placed.block.get("id"))
            if placed.block.get("type") in SERVER_CALLS and call not in settled:
                yield f"server-call: {placed.where}: {call!r} has no result"


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

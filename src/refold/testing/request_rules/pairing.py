"""Rules about tool calls and their results."""

import re
from collections.abc import Iterator

from refold.testing.request_rules.request import (
    CALLS,
    SERVER_CALLS,
    Json,
    Placed,
    Turn,
    call_ids,
    is_result,
    is_server_result,
    mappings,
    message_blocks,
    result_id,
    turns_of,
)

_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_SERVER_CALL_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")


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

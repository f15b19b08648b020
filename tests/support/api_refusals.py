"""What the local server refuses, as the Messages API does: plain faults, and all about compaction."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

BETA = "compact-2026-09-04"
LONGEST_INSTRUCTIONS = 16_384
_NO_COMPANIONS = ("context_management", "stop_sequences", "output_config")


def signature_of(content: str, tool_changes: object = None) -> str:
    """What the server signs a block with; another text has another."""
    data = json.dumps([content, tool_changes], sort_keys=True).encode("utf-8", "surrogatepass")
    return "EuYB" + hashlib.sha256(data).hexdigest()


def compaction_block(content: str | None, **fields: Any) -> dict[str, Any]:
    """A block as the API returns it; ``fields`` replace or add to it."""
    signature = None if content is None else signature_of(content, fields.get("tool_changes"))
    return {"type": "compaction", "content": content, "signature": signature, **fields}


def refusal(body: Any, beta: str, *, counting: bool) -> tuple[str, str | None] | None:
    """What the API would say to a body under these beta headers, and the error code if it has one."""
    problem = _problem(body, counting=counting)
    if problem:
        return problem, None
    named = {name.strip() for name in beta.split(",")}
    if "compaction" in body and BETA not in named:
        return "the compaction parameter requires anthropic-beta: " + BETA, None
    return _refused_blocks(body, named) or _refused_parameter(body)


def _refused_parameter(body: Mapping[str, Any]) -> tuple[str, str | None] | None:
    if "compaction" not in body:
        return None
    if "haiku" in body["model"]:
        return "compaction: Extra inputs are not permitted", None
    if any(name in body for name in _NO_COMPANIONS):
        return "compaction cannot be combined with these parameters", None
    if len(body["compaction"].get("instructions") or "") > LONGEST_INSTRUCTIONS:
        return "compaction.instructions: String should have at most 16384 characters", None
    last = body["messages"][-1]
    if last["role"] == "assistant" and any(b["type"] == "tool_use" for b in _blocks(last)):
        said = "compaction: the conversation ends on an unfinished assistant turn"
        return said, "compaction_incomplete_turn"
    return None


def _refused_blocks(body: Mapping[str, Any], named: set[str]) -> tuple[str, str | None] | None:
    places = [
        (m, b, block)
        for m, message in enumerate(body.get("messages") or ())
        for b, block in enumerate(_blocks(message))
        if block.get("type") == "compaction"
    ]
    if places and BETA not in named:
        return "messages.0.content.0: 'compaction' is not one of the expected types", None
    filled = [place for place in places if place[2].get("content") is not None]
    if len(filled) > 1:
        return "more than one compaction block", "compaction_block_ambiguous"
    for m, b, block in filled:
        if (m, b) != (0, 0):
            return "the compaction block must be sent first", "compaction_block_misplaced"
        signed = signature_of(block["content"], block.get("tool_changes"))
        if block.get("signature") != signed:
            return "the block's signature does not verify", "compaction_signature_invalid"
        if set(block) - {"type", "content", "signature", "tool_changes", "encrypted_content"}:
            return "messages.0.content.0.compaction: Extra inputs are not permitted", None
    return None


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [] if isinstance(content, str) else content


def _problem(body: Any, *, counting: bool) -> str | None:
    messages = body.get("messages")
    if not messages:
        return "messages: at least one message is required"
    if not isinstance(body.get("model"), str):
        return "model: Field required"
    if not counting and not isinstance(body.get("max_tokens"), int):
        return "max_tokens: Field required"
    summarised = any(block.get("type") == "compaction" for block in _blocks(messages[0])[:1])
    if messages[0]["role"] != "user" and not summarised:
        return "messages: first message must use the user role"
    for index, one in enumerate(messages):
        if not one["content"]:
            return f"messages.{index}: content must not be empty"
    if _has_lone_surrogate(body):
        return "the request body is not valid JSON: lone surrogate"
    return None


def _has_lone_surrogate(body: Any) -> bool:
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False

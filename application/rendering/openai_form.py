"""A request in the form of the OpenAI Chat Completions API."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from refold.domain.block_words import block_words
from refold.domain.errors import InvalidMessage
from refold.domain.json_data import is_list, is_object
from refold.domain.messages import Block
from refold.domain.tool_names import LONGEST_OPENAI, legal_name, name_problem

_Message = dict[str, Any]


def openai_request(
    system: str | Sequence[Block], messages: Iterable[_Message], tools: Sequence[_Message]
) -> dict[str, Any]:
    """Messages and tools for ``client.chat.completions.create``.

    Thinking and the calls of a provider's own tools are left out: they belong to the API that made them.

    Raises:
        InvalidMessage: one of the tools runs on a server of the other API, or its name is too long.
    """
    text = system if isinstance(system, str) else "\n\n".join(block_words(b) for b in system)
    made: list[_Message] = [{"role": "system", "content": text}] if text.strip() else []
    for message in messages:
        content = message["content"]
        if isinstance(content, str):
            made.append({"role": message["role"], "content": content})
        elif message["role"] == "assistant":
            made.append(_answer(content))
        else:
            made.extend(_said(content))
    request: dict[str, Any] = {"messages": made}
    if tools:
        request["tools"] = [_tool(tool, f"tools[{n}]") for n, tool in enumerate(tools)]
    return request


def _answer(content: Sequence[Block]) -> _Message:
    texts = [b["text"] for b in content if b.get("type") == "text"]
    calls = [_call(b) for b in content if b.get("type") == "tool_use"]
    said = "\n\n".join(texts)
    if not calls:
        return {"role": "assistant", "content": said}
    return {"role": "assistant", "content": said or None, "tool_calls": calls}


def _call(block: Block) -> _Message:
    arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
    function = {"name": legal_name(block["name"], LONGEST_OPENAI), "arguments": arguments}
    return {"id": block["id"], "type": "function", "function": function}


def _said(content: Sequence[Block]) -> Iterable[_Message]:
    """The results of tools, each a message of its own, then what the user says and shows."""
    parts: list[_Message] = []
    for block in content:
        if block.get("type") != "tool_result":
            parts.extend(_parts(block))
            continue
        inside = block.get("content")
        listed = inside if is_list(inside) else [{"type": "text", "text": inside or ""}]
        shown = [part for one in listed if is_object(one) for part in _parts(one)]
        text = "\n".join(part["text"] for part in shown if part["type"] == "text")
        yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": text}
        # A result is text there: what it shows besides is shown by the user.
        parts.extend(part for part in shown if part["type"] != "text")
    if len(parts) == 1 and parts[0]["type"] == "text":
        yield {"role": "user", "content": parts[0]["text"]}
    elif parts:
        yield {"role": "user", "content": parts}


def _parts(block: Block) -> Iterable[_Message]:
    match block:
        case {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}:
            yield {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
        case {"type": "image", "source": {"type": "url", "url": url}}:
            yield {"type": "image_url", "image_url": {"url": url}}
        case {"type": "document", "source": {"type": "base64", "media_type": kind, "data": data}}:
            file = {
                "filename": block.get("title") or "document",
                "file_data": f"data:{kind};base64,{data}",
            }
            yield {"type": "file", "file": file}
        case _:
            # An empty text is one, too: a tool that gave nothing back.
            words = block_words(block) or ("" if block.get("type") == "text" else _named(block))
            yield {"type": "text", "text": words}


def _named(block: Block) -> str:
    return f"[{block.get('type')}]"


def _tool(tool: _Message, place: str) -> _Message:
    if "input_schema" not in tool:
        problem = f"{tool.get('type')!r} runs on the servers of another API"
        raise InvalidMessage(f"{place}.type", problem)
    if (refused := name_problem(tool["name"], LONGEST_OPENAI)) is not None:
        raise InvalidMessage(f"{place}.name", refused)
    function: _Message = {"name": tool["name"], "parameters": tool["input_schema"]}
    if tool.get("description"):
        function["description"] = tool["description"]
    if isinstance(tool.get("strict"), bool):
        function["strict"] = tool["strict"]
    return {"type": "function", "function": function}

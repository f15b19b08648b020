"""Other forms of a request: plain text, the OpenAI Chat Completions API, and covered messages only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from refold.application.conversation.entries import Entry
from refold.application.conversation.loaded import Window
from refold.domain.errors import InvalidMessage
from refold.domain.messages import (
    LONGEST_OPENAI,
    Block,
    Message,
    Role,
    block_words,
    legal_name,
    name_problem,
    readable,
    text_of,
)
from refold.domain.originals import RESPONSES, Original
from refold.domain.value import build_unvalidated, is_list, is_object

from . import request_blocks as texts
from .request_blocks import copied, signed_summary, text_block
from .turn_builder import Turn, TurnBuilder

if TYPE_CHECKING:
    from refold.application.ports.summariser import SourceMessage

_BLANK = "data:image/png;base64," + (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg=="
)
"""A picture of one white point: an action of a computer is answered by a picture, even where none is shown."""


def render_covered(
    messages: Sequence[SourceMessage], previous: str | None = None, block: Block | None = None
) -> list[Turn]:
    """Render only these messages as valid turns after the previous summary; no answer is expected.

    ``block`` is the provider's own block for ``previous``. Thinking is left out, because the text
    that it was signed after is missing here.
    """
    entries = tuple(Entry(s.position, "", s.message, 0, 0, None) for s in messages)
    behind = messages[-1].position + 1 if messages else 0
    builder = TurnBuilder(Window(entries, thinking_from=behind), _no_address, _no_count)
    if previous:
        said = text_block(texts.summary_text(copied(previous)))
        builder.open([signed_summary(block) or said])
    builder.add(entries)
    return builder.finish(answered=False)


def _no_address(position: int) -> str:
    # Nothing here is shortened: a summary is made from the whole content.
    return f"message {position}"


def _no_count(text: str) -> int:
    del text
    return 0


SUMMARY = "## PREVIOUS CONTEXT SUMMARY"
RECENT = "## RECENT MESSAGES"


_FILLER_TEXTS = frozenset(
    {
        texts.NO_RESULT,
        texts.EMPTY_RESULT,
        texts.EMPTY_ERROR,
        texts.BEGINS_WITH_ASSISTANT,
        texts.CONTINUE,
        texts.SILENCE,
        texts.NO_CONTENT,
    }
)
"""Texts that only keep a request valid; plain text does not need them."""


def text_form(
    messages: Sequence[Mapping[str, Any]],
    opening: int,
    memory: Sequence[str],
    limit: int | None = None,
) -> str:
    """Return the request as text: ``memory`` under its heading, then each message after its role.

    ``opening`` is the number of memory blocks at the beginning of the first message. ``limit`` is
    the largest number of messages; the newest are kept.
    """
    said: list[str] = []
    for index, message in enumerate(messages):
        content = message["content"]
        if index == 0 and opening:
            content = content[opening:]
        said.extend(_parts(message["role"], content))
    kept = said if limit is None else said[max(0, len(said) - limit) :]
    return "\n\n".join([*([SUMMARY, *memory] if memory else []), RECENT, *kept])


def _parts(role: Role, content: Any) -> Iterator[str]:
    """Yield a message in words; system notes, which requests include in user turns, are separate."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    own = [block for block in blocks if text_of(block) not in _FILLER_TEXTS]
    for is_note, some in groupby(own, lambda block: _is_note(role, block)):
        text = readable(_message(role, tuple(some)))
        if is_note:
            yield "\n".join(
                f"System: {note}" for note in text.split(texts.SYSTEM_NOTE) if note.strip()
            )
        elif text.strip():
            yield f"{role.capitalize()}: {text}"


def _is_note(role: str, block: Mapping[str, Any]) -> bool:
    return role == "user" and str(block.get("text", "")).startswith(texts.SYSTEM_NOTE)


def _message(role: Role, content: tuple[Any, ...]) -> Message:
    return build_unvalidated(
        Message, role=role, content=content, author=None, extra=None, unknown=()
    )


_Message = dict[str, Any]
_LONGEST_CHAT_ID = 40
_LONGEST_RESPONSES_ID = 64
"""Maximum length of the id of a call in each API of OpenAI; other APIs make longer ones."""


def openai_request(
    system: str | Sequence[Block],
    messages: Iterable[_Message],
    tools: Sequence[_Message],
    *,
    longest_id: int = _LONGEST_CHAT_ID,
) -> dict[str, Any]:
    """Return messages and tools for ``client.chat.completions.create``.

    Thinking and calls of a provider's own tools are left out, because they are valid only in the
    API that made them.

    Raises:
        InvalidMessage: a tool runs on a server of the other API, or its name is too long.
    """
    text = system if isinstance(system, str) else "\n\n".join(block_words(b) for b in system)
    made: list[_Message] = [{"role": "system", "content": text}] if text.strip() else []
    for message in messages:
        content = message["content"]
        if isinstance(content, str):
            made.append({"role": message["role"], "content": content})
        elif message["role"] == "assistant":
            made.append(_answer(content, longest_id))
        else:
            made.extend(_user_messages(content, longest_id))
    request: dict[str, Any] = {"messages": made}
    if tools:
        request["tools"] = [_tool(tool, f"tools[{n}]") for n, tool in enumerate(tools)]
    return request


def _answer(content: Sequence[Block], longest_id: int) -> _Message:
    texts = [b["text"] for b in content if b.get("type") == "text"]
    calls = [_call(b, longest_id) for b in content if b.get("type") == "tool_use"]
    said = "\n\n".join(texts)
    if not calls:
        return {"role": "assistant", "content": said}
    return {"role": "assistant", "content": said or None, "tool_calls": calls}


def _call(block: Block, longest_id: int) -> _Message:
    arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
    function = {"name": legal_name(block["name"], LONGEST_OPENAI), "arguments": arguments}
    return {"id": legal_name(block["id"], longest_id), "type": "function", "function": function}


def _user_messages(content: Sequence[Block], longest_id: int) -> Iterable[_Message]:
    """Yield each tool result as a message, then the user's content."""
    parts: list[_Message] = []
    for block in content:
        if block.get("type") != "tool_result":
            parts.extend(_content_parts(block))
            continue
        inside = block.get("content")
        listed = inside if is_list(inside) else [{"type": "text", "text": inside or ""}]
        shown = [part for one in listed if is_object(one) for part in _content_parts(one)]
        text = "\n".join(part["text"] for part in shown if part["type"] == "text")
        call_id = legal_name(block["tool_use_id"], longest_id)
        yield {"role": "tool", "tool_call_id": call_id, "content": text}
        # A result can only be text in this API, so its other parts become user content.
        parts.extend(part for part in shown if part["type"] != "text")
    if len(parts) == 1 and parts[0]["type"] == "text":
        yield {"role": "user", "content": parts[0]["text"]}
    elif parts:
        yield {"role": "user", "content": parts}


def _content_parts(block: Block) -> Iterable[_Message]:
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
            # Keep an empty text as well, for a tool that returned nothing.
            words = block_words(block) or (
                "" if block.get("type") == "text" else _name_block(block)
            )
            yield {"type": "text", "text": words}


def _name_block(block: Block) -> str:
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


def responses_request(
    system: str | Sequence[Block],
    messages: Iterable[_Message],
    tools: Sequence[_Message],
    originals: Mapping[int, Original] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return instructions, input items and tools for ``client.responses.create``.

    ``originals`` are foreign forms of messages by their index. Items of this API are sent as they were received,
    because it accepts an item of reasoning only with the items that followed it, and a result only in the form that
    belongs to its call.

    Raises:
        InvalidMessage: a tool runs on a server of the other API, or its name is too long.
    """
    chat = openai_request(system, (), tools)
    request: dict[str, Any] = {}
    if chat["messages"]:
        request["instructions"] = chat["messages"][0]["content"]
    items: list[_Message] = []
    calls: dict[str, str] = {}
    for index, message in enumerate(messages):
        original = originals.get(index)
        own: list[_Message] = []
        if original is not None and original.format == RESPONSES:
            own = original.data
        if own and (message["role"] == "assistant" or any(map(_has_own_form, own))):
            items += own
            calls |= {
                str(one.get("call_id") or one.get("id")): kind
                for one in own
                if (kind := str(one.get("type"))).endswith("_call")
            }
        else:
            own_ids = _LONGEST_RESPONSES_ID
            some = openai_request("", [message], (), longest_id=own_ids)["messages"]
            items += (item for one in some for item in _items(one, calls))
    request["input"] = items
    if "tools" in chat:
        request["tools"] = [{"type": "function", **tool["function"]} for tool in chat["tools"]]
    return request


def _has_own_form(item: _Message) -> bool:
    """Return whether an item answers another call than that of a function."""
    kind = str(item.get("type"))
    is_result = kind.endswith("_output") and kind != "function_call_output"
    return is_result or kind == "mcp_approval_response"


def _output(call_id: str, content: Any, kind: str) -> _Message:
    """Return a result that is not shown whole as the item that its call requires."""
    named = {"type": f"{kind}_output", "call_id": call_id}
    match kind:
        case "custom_tool_call":
            return {**named, "output": content}
        case "local_shell_call":
            return {"type": f"{kind}_output", "id": call_id, "output": content}
        case "shell_call":
            ended = {"type": "exit", "exit_code": 0}
            return {**named, "output": [{"stdout": content, "stderr": "", "outcome": ended}]}
        case "apply_patch_call":
            return {**named, "status": "completed", "output": content}
        case "computer_call":
            return {**named, "output": {"type": "computer_screenshot", "image_url": _BLANK}}
        case "tool_search_call":
            state: _Message = {"execution": "client", "status": "completed", "tools": []}
            return {"type": "tool_search_output", "call_id": call_id, **state}
        case _:
            return {"type": "function_call_output", "call_id": call_id, "output": content}


def _items(message: _Message, calls: Mapping[str, str]) -> Iterator[_Message]:
    """Yield a message of the Chat Completions API as items of the Responses API.

    ``calls`` has the types of the calls before it, by their ids.
    """
    role, content = message["role"], message["content"]
    if role == "tool":
        call_id = message["tool_call_id"]
        yield _output(call_id, content, calls.get(call_id, "function_call"))
        return
    if content:
        yield {"role": role, "content": content if isinstance(content, str) else _inputs(content)}
    for call in message.get("tool_calls", ()):
        yield {"type": "function_call", "call_id": call["id"], **call["function"]}


def _inputs(parts: Sequence[_Message]) -> list[_Message]:
    made: list[_Message] = []
    for part in parts:
        match part["type"]:
            case "text":
                made.append({"type": "input_text", "text": part["text"]})
            case "image_url":
                made.append({"type": "input_image", "image_url": part["image_url"]["url"]})
            case _:
                made.append({"type": "input_file", **part["file"]})
    return made

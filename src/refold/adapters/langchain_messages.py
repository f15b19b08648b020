"""Messages of LangChain in the form of the Messages API, and back."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
    messages_from_dict,
)

from refold.application.api.async_memory import AsyncConversationMemory
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.following import newest_history
from refold.application.api.results import Context, StoredMessage
from refold.domain.messages import THINKING
from refold.domain.value import is_list, is_object
from refold.infrastructure.transcripts.openai import convert_document

from .media_lines import MEDIA, line_of

Json = dict[str, Any]
PDF = "application/pdf"
_OF_A_STREAM = frozenset({"index", "partial_json"})
"""Fields that LangChain adds to the blocks of a streamed reply."""


_OF_OTHERS = frozenset(
    {"reasoning", "function_call", "refusal", "output_text", "web_search_call", "file_search_call"}
    | {"computer_call", "code_interpreter_call", "mcp_call", "image_generation_call"}
    | {"server_tool_call", "server_tool_result", "non_standard"}
)
"""Types of blocks that are items of OpenAI's Responses API, or the same in LangChain's own format."""
_CALLS = frozenset({"tool_call", "tool_call_chunk", "invalid_tool_call"})
"""Types of blocks in LangChain's own format that ``tool_calls`` and ``invalid_tool_calls`` have as well."""


def given_messages(messages: Sequence[BaseMessage]) -> list[Json]:
    """Return messages in the form of the Messages API."""
    return [to_message(message) for message in messages]


def to_message(message: BaseMessage) -> Json:
    """Return a message in the form of the Messages API."""
    match message:
        case ToolMessage():
            result = {
                "type": "tool_result",
                "tool_use_id": message.tool_call_id,
                "content": plain_content(message.content),
                "is_error": message.status == "error",
            }
            return {"role": "user", "content": [result]}
        case AIMessage():
            return {"role": "assistant", "content": list(_assistant_blocks(message))}
        case SystemMessage():
            return {"role": "system", "content": plain_content(message.content)}
        case _:
            return {"role": "user", "content": plain_content(message.content)}


FORMAT = "langchain"
ARGUMENTS = "_arguments"
"""Field for arguments of a call that are no JSON object, as ``refold.from_openai`` has them."""


def original_of(message: BaseMessage) -> Json | None:
    """Return the form in which LangChain has a message, or None if JSON cannot represent it.

    Such a message has an artifact of a tool, for instance.
    """
    try:
        data = json.loads(json.dumps(message_to_dict(message), allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return None
    return {"format": FORMAT, "data": data}


def stored_messages(
    conversation: ConversationMemory | AsyncConversationMemory,
) -> list[BaseMessage]:
    """Return the messages of a conversation as LangChain gave them, with ids, metadata and usage.

    A message that was stored in other ways, or whose content was erased, is made from what is stored.
    It reads the log: with asyncio, call it in a thread.

    Raises:
        InvalidSetting: it is no conversation.
    """
    return newest_history(conversation, _history, given_messages)


def _history(every: Sequence[StoredMessage]) -> list[BaseMessage]:
    found: list[BaseMessage] = []
    for stored in every:
        original = stored.original
        if original is not None and original.format == FORMAT:
            found += messages_from_dict([original.data])
        else:
            message = stored.message
            content = message.content if isinstance(message.content, str) else list(message.content)
            found += from_message({"role": message.role, "content": content}, True)
    return found


def plain_content(content: Any) -> Any:
    """Return content without what LangChain added to its blocks."""
    return content if isinstance(content, str) else [_block(one) for one in content]


def _block(block: Any) -> Json:
    """Return a block without what LangChain added; a picture in its form becomes one of the API."""
    if isinstance(block, str):
        return {"type": "text", "text": block}
    own = {name: value for name, value in block.items() if name not in _OF_A_STREAM}
    match own:
        case {"type": "image", "base64": str(data)} | {
            "type": "image",
            "source_type": "base64",
            "data": str(data),
        }:
            source = {"type": "base64", "media_type": own.get("mime_type"), "data": data}
            return {"type": "image", "source": source}
        case (
            {"type": "image", "url": str(url)}
            | {"type": "image_url", "image_url": {"url": str(url)}}
            | {"type": "image_url" | "input_image", "image_url": str(url)}
        ):
            head, _, data = url.partition(";base64,")
            if data:
                source = {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}
            else:
                source = {"type": "url", "url": url}
            return {"type": "image", "source": source}
        case {"type": "text-plain", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "file" | "input_file"} if document := _document(own):
            return document
        case {"type": kind} if kind in MEDIA and "source" not in own:
            return {"type": "text", "text": line_of(own)}
        case _:
            return own


def _document(own: Json) -> Json | None:
    """Return a PDF in a form of LangChain or OpenAI as a document of the API, or None if it is another file."""
    file: Any = own.get("file")
    match own:
        case {"base64": str(data), "mime_type": "application/pdf"} | {
            "source_type": "base64",
            "data": str(data),
            "mime_type": "application/pdf",
        }:
            url = f"data:{PDF};base64,{data}"
        case {"file": {"file_data": str(url)}} if url.startswith(f"data:{PDF};base64,"):
            return convert_document(url, file)
        case {"type": "input_file", "file_data": str(url)} if url.startswith(f"data:{PDF};base64,"):
            return convert_document(url, own)
        case {"url": str(url), "mime_type": "application/pdf"}:
            return {"type": "document", "source": {"type": "url", "url": url}}
        case _:
            return None
    extras = own.get("extras")
    return convert_document(url, {**(extras if is_object(extras) else {}), **own})


def _assistant_blocks(message: AIMessage) -> Iterator[Json]:
    given: Any = message.content
    content: list[Any] = [given] if isinstance(given, str) else given
    inputs: dict[Any, Any] = {call["id"]: call["args"] for call in message.tool_calls}
    known = set[Any]()
    if message.response_metadata.get("model_provider") == "anthropic":
        content = [*map(_of_anthropic, content)]
    is_foreign = any(is_object(one) and one.get("type") in _OF_OTHERS for one in content)
    for block in map(_block, content):
        if block.get("type") in _CALLS:
            continue
        if is_foreign:
            # Its calls are in ``tool_calls``, and its reasoning is kept in the original.
            if block.get("text"):
                yield {"type": "text", "text": block["text"]}
        elif block.get("type") == "tool_use":
            known.add(block.get("id"))
            # While a reply is streamed, its block has only parts of the input.
            yield {**block, "input": inputs.get(block.get("id"), block.get("input") or {})}
        elif block.get("type") != "text" or block.get("text"):
            yield block
    for call in message.tool_calls:
        if call["id"] not in known:
            yield {
                "type": "tool_use",
                "id": call["id"],
                "name": call["name"],
                "input": call["args"],
            }
    for broken in message.invalid_tool_calls:
        if broken["id"] not in known and broken["id"] is not None:
            given = {ARGUMENTS: broken["args"]}
            name = broken["name"] or "unknown"
            yield {"type": "tool_use", "id": broken["id"], "name": name, "input": given}


def _of_anthropic(block: Any) -> Any:
    """Return a block of an answer that LangChain has in its own format (``v1``) as the block of the API.

    Its signatures are valid only for the content before them, so they must be known as thinking.
    """
    extras: Any = block.get("extras") if is_object(block) else None
    extras = extras if is_object(extras) else {}
    match block:
        case {"type": "reasoning"}:
            return {"type": "thinking", "thinking": block.get("reasoning") or "", **extras}
        case {"type": "non_standard", "value": dict()}:
            return block["value"]
        case {"type": "text", "annotations": _}:
            return {"type": "text", "text": block.get("text") or ""}
        case {"type": "tool_call"}:
            call = {"id": block.get("id"), "name": block.get("name"), "input": block.get("args")}
            return {"type": "tool_use", **call, **extras}
        case {"type": "server_tool_call", "name": "remote_mcp"}:
            names = {"name": extras.get("tool_name"), "server_name": extras.get("server_name")}
            given = {"id": block.get("id"), "input": block.get("args")}
            return {"type": "mcp_tool_use", **given, **names}
        case {"type": "server_tool_call", "name": name}:
            name = "code_execution" if name == "code_interpreter" else name
            given = {"id": block.get("id"), "name": name, "input": block.get("args")}
            return {"type": "server_tool_use", **given}
        case {"type": "server_tool_result"} if "block_type" in extras:
            kind = extras["block_type"]
            output: Any = block.get("output") or []
            given = {"tool_use_id": block.get("tool_call_id"), "content": output}
            failed = {"is_error": block.get("status") == "error"}
            return {"type": kind, **given, **(failed if kind == "mcp_tool_result" else {})}
        case _:
            return block


def files_of(messages: Sequence[BaseMessage]) -> dict[str, Json]:
    """Return the parts that a request has as they were given, by the text that is stored in their place."""
    return {
        _block(part)["text"]: part
        for message in messages
        for part in (() if isinstance(message.content, str) else message.content)
        if is_object(part) and part.get("type") != "text" and _block(part).get("type") == "text"
    }


def from_context(
    context: Context, is_anthropic: bool, files: Mapping[str, Json]
) -> Iterator[BaseMessage]:
    """Yield the messages of a request. Replies and files that are shown whole are those that LangChain gave."""
    for index, message in enumerate(context.messages):
        original = context.originals.get(index)
        if original is not None and original.format == FORMAT:
            yield from messages_from_dict([original.data])
        else:
            yield from from_message(message, is_anthropic, files)


def from_message(
    message: Mapping[str, Any], is_anthropic: bool, files: Mapping[str, Json] | None = None
) -> Iterator[BaseMessage]:
    """Yield a message of a request as messages of LangChain."""
    content = message["content"]
    blocks: list[Json] = (
        [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    )
    if message["role"] == "assistant":
        yield _ai_message(blocks, is_anthropic)
        return
    blocks = [_with_files(block, files) for block in blocks] if files else blocks
    blocks = blocks if is_anthropic else [_of_langchain(block) for block in blocks]
    for block in blocks:
        if block["type"] == "tool_result":
            yield ToolMessage(
                content=block.get("content") or "",
                tool_call_id=block["tool_use_id"],
                status="error" if block.get("is_error") else "success",
            )
    rest = [block for block in blocks if block["type"] != "tool_result"]
    if rest:
        kind = SystemMessage if message["role"] == "system" else HumanMessage
        is_text = all(block["type"] == "text" for block in rest)
        text = "\n\n".join(str(block.get("text")) for block in rest)
        yield kind(content=text if is_text and not is_anthropic else cast(Any, rest))


def _with_files(block: Json, files: Mapping[str, Json]) -> Json:
    if block["type"] == "tool_result" and is_list(parts := block.get("content")):
        return {**block, "content": [_with_files(part, files) for part in parts]}
    return files.get(str(block.get("text")), block) if block["type"] == "text" else block


def _of_langchain(block: Json) -> Json:
    """Return a block of the API in the form of LangChain, if models of others do not know it as it is."""
    match block:
        case {"type": "tool_result", "content": list()}:
            parts: list[Json] = block["content"]
            return {**block, "content": [*map(_of_langchain, parts)]}
        case {"type": "document", "source": {"type": "base64", "media_type": kind, "data": data}}:
            name = block.get("title") or "document.pdf"
            return {"type": "file", "base64": data, "mime_type": kind, "filename": name}
        case {"type": "document", "source": {"type": "url", "url": url}}:
            return {"type": "file", "url": url, "mime_type": PDF}
        case _:
            return block


def _ai_message(blocks: Sequence[Json], is_anthropic: bool) -> AIMessage:
    calls = [
        {"name": block["name"], "args": block["input"], "id": block["id"], "type": "tool_call"}
        for block in blocks
        if block["type"] == "tool_use"
    ]
    if is_anthropic:
        return AIMessage(content=cast(Any, list(blocks)), tool_calls=calls)
    text = "\n\n".join(str(b["text"]) for b in blocks if b["type"] == "text")
    return AIMessage(content=text, tool_calls=calls)


def without_thinking(message: AnyMessage) -> AnyMessage:
    """Return the message without its thinking blocks."""
    content: Any = message.content
    if not isinstance(message, AIMessage) or not is_list(content):
        return message
    kinds = {*THINKING, "reasoning"}
    kept = [b for b in content if not (is_object(b) and b.get("type") in kinds)]
    return message.model_copy(update={"content": kept})

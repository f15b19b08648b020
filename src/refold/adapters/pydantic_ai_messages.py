"""Messages of Pydantic AI in the form of the Messages API, and back."""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    DocumentUrl,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from refold.application.api.async_memory import AsyncConversationMemory
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.following import newest_history
from refold.application.api.results import Context, StoredMessage
from refold.domain.messages import Block
from refold.infrastructure.transcripts.transcript_source import arguments_of

Json = dict[str, Any]
PDF = "application/pdf"
FORMAT = "pydantic-ai"
"""Form of a stored message: a message of Pydantic AI."""


class GivenMessages:
    """A history in the form of the Messages API. A request with system prompts becomes two messages."""

    def __init__(self, history: Sequence[ModelMessage]) -> None:
        messages = [one for message in history for one in _split(message)]
        self.prompts = [
            part.content
            for message in messages
            for part in message.parts
            if isinstance(part, SystemPromptPart) and part.dynamic_ref is not None
        ]
        """System prompts that are made again for each run. They are no messages: the next run would have other ones."""
        self.files = {
            _key(_user_block(content)): content
            for message in messages
            for part in message.parts
            for content in _files(part)
        }
        """Files and other contents besides texts, by their blocks: a request has them as they were given."""
        self.messages: list[Json] = []
        self._from: list[ModelMessage | None] = []
        for message in messages:
            every = [*_messages(message)]
            self.messages += every
            # The last one has the form of the whole request.
            self._from += [*[None] * (len(every) - 1), *[message] * min(1, len(every))]

    def original(self, index: int) -> Json | None:
        """Return the form in which Pydantic AI has a message, or None if it has it with another one."""
        message = self._from[index]
        if message is None:
            return None
        data = ModelMessagesTypeAdapter.dump_python([message], mode="json")
        return {"format": FORMAT, "data": data[0]}


def _split(message: ModelMessage) -> list[ModelMessage]:
    """Return a request as one for each prompt, and one for results that follow each other.

    Pydantic AI joins requests that follow each other in the history of the next run, so it would be another history.
    """
    if isinstance(message, ModelResponse) or len(message.parts) < 2:
        return [message]
    groups: list[list[Any]] = [[]]
    before = ""
    for part in message.parts:
        kind = _kind_of(part)
        if kind and before and not kind == before == "result":
            groups.append([])
        groups[-1].append(part)
        before = kind or before
    return [replace(message, parts=parts) for parts in groups] if len(groups) > 1 else [message]


def _kind_of(part: Any) -> str:
    match part.part_kind:
        case "tool-return":
            return "result"
        case "retry-prompt" if part.tool_name is not None:
            return "result"
        case "user-prompt" | "retry-prompt" | "retry-feedback":
            return "prompt"
        case _:
            return ""


def _files(part: Any) -> Iterator[Any]:
    if part.part_kind == "tool-return":
        yield from part.files
    elif part.part_kind == "user-prompt" and not isinstance(part.content, str):
        yield from (one for one in part.content if not isinstance(one, str | CachePoint))


def _messages(message: ModelMessage) -> Iterator[Json]:
    if isinstance(message, ModelResponse):
        blocks = [block for part in message.parts for block in _answer_blocks(part)]
        yield {"role": "assistant", "content": blocks}
        return
    prompts = [part for part in message.parts if isinstance(part, SystemPromptPart)]
    lasting = [part.content for part in prompts if part.dynamic_ref is None]
    if lasting:
        yield {"role": "system", "content": "\n\n".join(lasting)}
    said = [block for part in message.parts for block in _request_blocks(part)]
    if said or not prompts:
        yield {"role": "user", "content": said}


def _answer_blocks(part: Any) -> Iterator[Block]:
    match part.part_kind:
        case "text":
            yield {"type": "text", "text": part.content}
        case "thinking":
            is_signed = part.signature and part.provider_name == "anthropic"
            signed = {"signature": part.signature} if is_signed else {}
            yield {"type": "thinking", "thinking": part.content, **signed}
        case "tool-call":
            arguments = arguments_of(part.args)
            yield {
                "type": "tool_use",
                "id": part.tool_call_id,
                "name": part.tool_name,
                "input": arguments,
            }
        case "file":
            yield {"type": "text", "text": _line(part.content)}
        case "speech" if part.audio is not None and not part.transcript:
            yield {"type": "text", "text": _line(part.audio)}
        case kind:
            yield {
                "type": "text",
                "text": f"[{kind}] {_text(getattr(part, 'content', None) or part)}",
            }


def _request_blocks(part: Any) -> Iterator[Block]:
    match part.part_kind:
        case "system-prompt":
            return
        case "user-prompt":
            content = [part.content] if isinstance(part.content, str) else part.content
            # A cache mark is no content, and its place in a compacted request is another.
            yield from (_user_block(one) for one in content if not isinstance(one, CachePoint))
        case "tool-return":
            is_error = part.outcome != "success"
            said: Any = part.model_response_str()
            if files := [*map(_user_block, part.files)]:
                said = [*([{"type": "text", "text": said}] if said else []), *files]
            yield _result(part.tool_call_id, said, is_error=is_error)
        case "retry-prompt" if part.tool_name is not None:
            yield _result(part.tool_call_id, part.model_response(), is_error=True)
        case "retry-prompt" | "retry-feedback":
            yield {"type": "text", "text": part.model_response()}
        case kind:
            if isinstance(content := getattr(part, "content", None), str):
                yield {"type": "text", "text": f"[{kind}] {content}"}


def _result(call_id: str, content: Any, *, is_error: bool) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return {**block, "is_error": True} if is_error else block


def _user_block(content: Any) -> Block:
    if isinstance(content, str):
        return {"type": "text", "text": content}
    if isinstance(content, ImageUrl):
        return {"type": "image", "source": {"type": "url", "url": content.url}}
    if isinstance(content, DocumentUrl):
        return {"type": "document", "source": {"type": "url", "url": content.url}}
    if isinstance(content, BinaryContent):
        is_image = content.media_type.startswith("image/")
        if not is_image and content.media_type != PDF:
            return {"type": "text", "text": _line(content)}
        source = {"type": "base64", "media_type": content.media_type, "data": content.base64}
        return {"type": "image" if is_image else "document", "source": source}
    if isinstance(text := getattr(content, "content", None), str):
        return {"type": "text", "text": text}
    return {"type": "text", "text": f"[{content.kind}] {_without_derived(content)!r}"}


def _without_derived(content: Any) -> Any:
    """Return a file without what Pydantic AI derives from its address when it reads the history back."""
    bare = copy.copy(content)
    for name in ("_media_type", "_identifier"):
        if hasattr(bare, name):
            setattr(bare, name, None)
    return bare


def _line(content: BinaryContent) -> str:
    """Return a line that names a file."""
    said = f"{content.media_type}, {len(content.data):,} bytes, {content.identifier}"
    return f"[{content.kind}] {said}"


def _key(block: Block) -> str:
    return json.dumps(block, sort_keys=True)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def from_context(context: Context, files: Mapping[str, Any]) -> list[ModelMessage]:
    """Return the messages of a request. Answers and files that are shown whole are those that Pydantic AI gave."""
    made: list[ModelMessage] = []
    names: dict[str, str] = {}
    for index, message in enumerate(context.messages):
        blocks = _blocks(message["content"])
        names |= {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
        original = context.originals.get(index)
        if original is not None and original.format == FORMAT:
            made += ModelMessagesTypeAdapter.validate_python([original.data])
        elif message["role"] == "assistant":
            made.append(ModelResponse(parts=[*_answer_parts(blocks)]))
        elif message["role"] == "system":
            made.append(_prompt(blocks))
        else:
            made.append(ModelRequest(parts=[*_request_parts(blocks, names, files)]))
    return made


def _blocks(content: Any) -> Sequence[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _answer_parts(blocks: Sequence[Block]) -> Iterator[Any]:
    for block in blocks:
        match block["type"]:
            case "thinking":
                signature = block.get("signature")
                text = str(block.get("thinking"))
                yield ThinkingPart(content=text, signature=signature, provider_name="anthropic")
            case "tool_use":
                yield ToolCallPart(block["name"], block["input"], tool_call_id=block["id"])
            case _:
                yield TextPart(content=str(block.get("text")))


def _request_parts(
    blocks: Sequence[Block], names: Mapping[str, str], files: Mapping[str, Any]
) -> Iterator[Any]:
    said: list[Any] = []
    for block in blocks:
        if block["type"] == "tool_result":
            call_id = block["tool_use_id"]
            outcome: Any = "failed" if block.get("is_error") else "success"
            content = _returned(block.get("content"), files)
            name = names.get(call_id, "unknown")
            yield ToolReturnPart(name, content, tool_call_id=call_id, outcome=outcome)
        else:
            said.append(_given(block, files))
    if said:
        is_text = all(isinstance(one, str) for one in said)
        yield UserPromptPart(content="\n\n".join(said) if is_text else said)


def _given(block: Block, files: Mapping[str, Any]) -> Any:
    file = files.get(_key(block)) if files else None
    return _user_content(block) if file is None else file


def _returned(content: Any, files: Mapping[str, Any]) -> Any:
    if isinstance(content, str) or content is None:
        return content or ""
    given = [_given(block, files) for block in content]
    if any(not isinstance(one, str) for one in given):
        return given
    return "\n".join(str(block.get("text") or json.dumps(block)) for block in content)


def _user_content(block: Block) -> Any:
    match block:
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            return ImageUrl(url=url)
        case {"type": "document", "source": {"type": "url", "url": str(url)}}:
            return DocumentUrl(url=url)
        case {
            "type": "image" | "document",
            "source": {"type": "base64", "data": str(data), "media_type": str(kind)},
        }:
            return BinaryContent.from_data_uri(f"data:{kind};base64,{data}")
        case _:
            return str(block.get("text") or json.dumps(block))


def stored_messages(
    conversation: ConversationMemory | AsyncConversationMemory,
) -> list[ModelMessage]:
    """Return the messages of a conversation as Pydantic AI gave them, to pass as ``message_history``.

    A message that was stored in other ways, or whose content was erased, is made from what is stored.
    It reads the log: with asyncio, call it in a thread.

    Raises:
        InvalidSetting: it is no conversation.
    """
    return newest_history(conversation, _history, lambda history: GivenMessages(history).messages)


def _history(every: Sequence[StoredMessage]) -> list[ModelMessage]:
    found: list[ModelMessage] = []
    names: dict[str, str] = {}
    for stored, following in zip_longest(every, every[1:]):
        blocks = stored.message.blocks()
        names |= {str(b["id"]): str(b["name"]) for b in blocks if b.get("type") == "tool_use"}
        original = stored.original
        if original is not None and original.format == FORMAT:
            found += ModelMessagesTypeAdapter.validate_python([original.data])
        elif stored.message.role == "assistant":
            found.append(ModelResponse(parts=[*_answer_parts(blocks)]))
        elif stored.message.role == "user":
            found.append(ModelRequest(parts=[*_request_parts(blocks, names, {})]))
        elif not stored.erased and not _has_prompts(following):
            found.append(_prompt(blocks))
    return found


def _prompt(blocks: Sequence[Block]) -> ModelRequest:
    text = "\n\n".join(str(block.get("text")) for block in blocks)
    return ModelRequest(parts=[SystemPromptPart(content=text)])


def _has_prompts(stored: StoredMessage | None) -> bool:
    """Return whether a message is stored with the system prompts before it, as one request."""
    original = stored.original if stored is not None and stored.message.role == "user" else None
    if original is None or original.format != FORMAT:
        return False
    return any(
        part["part_kind"] == "system-prompt" and not part.get("dynamic_ref")
        for part in original.data["parts"]
    )

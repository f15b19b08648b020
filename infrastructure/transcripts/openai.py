"""Convert content parts and tool definitions of the OpenAI chat API to Anthropic shape."""

from typing import Any

from refold.application.conversation.transcripts import (
    RecordedConversation,
    RecordedMessage,
    Skipped,
)
from refold.domain.messages import Block, Message
from refold.domain.value import build_unvalidated, replace

from .chats import (
    ROLES,
    Authors,
    Chat,
    extra_of,
    find_chats,
    has_system_message,
    speaks_anthropic,
    speaks_openai,
    tools_of,
    why_no_role,
)
from .conversation_draft import image_block, message_of, thinking_block, tool_use
from .transcript_source import (
    Content,
    Names,
    Reading,
    Source,
    arguments_of,
    as_blocks,
    as_content,
    as_list,
    as_object,
    moment,
    not_a_message,
    objects_in,
    text_block,
    text_or_none,
    usable_id,
)


def convert_content(value: Any) -> Content | None:
    """Convert a string or content parts to Anthropic content. Unknown parts are kept unchanged."""
    content = as_content(value)
    if content is None or isinstance(content, str):
        return content
    return tuple(_block(part) for part in content)


def convert_tool(tool: Any) -> dict[str, Any] | None:
    """Convert a tool definition to name, description and input_schema, or return None if it has no name."""
    outer = as_object(tool) or {}
    function = as_object(outer.get("function")) or outer
    if not isinstance(function.get("name"), str):
        return None
    if "input_schema" in function:
        return function
    converted: dict[str, Any] = {"name": function["name"]}
    if isinstance(function.get("description"), str):
        converted["description"] = function["description"]
    if isinstance(function.get("strict"), bool):
        converted["strict"] = function["strict"]
    schema = function.get("parameters")
    # OpenAI allows an empty schema for a function without parameters; the Messages API requires a type.
    converted["input_schema"] = {"type": "object", **(as_object(schema) or {})}
    return converted


def _block(part: Block) -> Block:
    match part:
        case {"type": "input_text" | "output_text", "text": str(text)}:
            return text_block(text)
        case {"type": "refusal", "refusal": str(text)}:
            return text_block(text)
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return _image(url)
        case {"type": "image_url" | "input_image", "image_url": str(url)}:
            return _image(url)
        case {"type": "image", "image": str(url)}:
            return _image(url)
        case {"type": "image", "data": str(data), "mimeType": str(media_type)}:
            return image_block(media_type, data)  # In results of MCP.
        case {"type": "file", "file": {"file_data": str(url)} as file}:
            return convert_document(url, file)
        case {"type": "input_file", "file_data": str(url)}:
            return convert_document(url, part)
        case _:
            return part


def convert_document(url: str, file: Block) -> Block:
    """Return a document block with its data. The file name becomes its title."""
    head, comma, data = url.partition(",")
    media_type = head.removeprefix("data:").split(";")[0] if comma else ""
    source = {
        "type": "base64",
        "media_type": media_type or "application/pdf",
        "data": data if comma else url,
    }
    named = file.get("filename")
    title = {"title": named} if isinstance(named, str) and named else {}
    return {"type": "document", "source": source, **title}


def _image(url: str) -> Block:
    """Return an image block by URL, or with its data if the URL contains it."""
    head, comma, data = url.partition(",")
    if not url.startswith("data:") or not comma or not head.endswith(";base64"):
        return {"type": "image", "source": {"type": "url", "url": url}}
    media_type = head.removeprefix("data:").split(";")[0]
    if media_type == "image/jpg":  # OpenAI accepts this alias, too.
        media_type = "image/jpeg"
    return image_block(media_type or "image/png", data)


def detect(source: Source) -> bool:
    """Return whether a source has something that only this API uses, or a system message among plain texts."""
    chats = find_chats(source).chats
    return bool(chats) and (speaks_openai(source) or _plain_with_system(chats))


def fits(source: Source) -> bool:
    """Return whether a source is a chat that is not purely in Anthropic shape."""
    chats = find_chats(source).chats
    return bool(chats) and (speaks_openai(source) or not speaks_anthropic(chats))


def read(source: Source) -> Reading:
    """Read the chats of a file, one conversation each."""
    found = find_chats(source)
    skipped = list(found.skipped)
    conversations = tuple(_conversation(chat, skipped) for chat in found.chats)
    return Reading(conversations=conversations, skipped=tuple(skipped))


def _plain_with_system(chats: tuple[Chat, ...]) -> bool:
    return has_system_message(chats) and not speaks_anthropic(chats)


def _conversation(chat: Chat, skipped: list[Skipped]) -> RecordedConversation:
    converter = MessageConverter(skipped, Authors(chat))
    for index, item in enumerate(chat.messages):
        converter.take(chat.place(index), index, item)
    if (answer := _response(chat)) is not None:
        converter.take(None, len(chat.messages), answer)
    tools = tuple(t for tool in tools_of(chat) if (t := convert_tool(tool)) is not None)
    if len(tools) < len(tools_of(chat)):
        skipped.append(Skipped(line=chat.place(0), reason="tool without a name", damage=True))
    return RecordedConversation(
        thread_id=chat.thread_id, messages=tuple(converter.messages), tools=tools
    )


def _response(chat: Chat) -> dict[str, Any] | None:
    """Return the answer to the recorded request, or None. It follows the messages of the request."""
    response = as_object(chat.envelope.get("response")) or {}
    for choice in objects_in(response.get("choices")):
        if (answer := as_object(choice.get("message"))) is not None:
            return {
                "role": "assistant",
                "id": response.get("id"),
                "model": response.get("model"),
                "timestamp": response.get("created"),
                "stop_reason": choice.get("finish_reason"),
                **answer,
            }
    return None


TAKEN = frozenset(
    [
        *("role", "content", "id", "timestamp", "model", "stop_reason", "refusal"),
        *("tool_calls", "function_call", "tool_call_id", "tool_call_ids"),
        *("thinking_blocks", "reasoning", "reasoning_content"),
    ]
)
"""Fields of a message that are converted, or skipped with a report."""


class MessageConverter:
    """Converts the messages of one chat in order, and pairs results that do not name a call."""

    def __init__(
        self, skipped: list[Skipped], authors: Authors | None = None, *, by_name: bool = False
    ) -> None:
        """Create a converter.

        ``authors`` are those of a recording; with None, the authors of user messages are unknown. If
        ``by_name``, a call without an id gets one made from its tool's name, which its result can find on
        its own; otherwise the id is made from its place.
        """
        self.messages: list[RecordedMessage] = []
        self._authors = authors
        self._skipped = skipped
        self._names = Names()
        self._open: dict[str, str] = {}
        """Tool names of the calls without a result, by id."""
        self._by_name = by_name
        self._found: set[str] = set()
        """Ids of calls that are answered but not among these messages."""

    @property
    def is_waiting(self) -> bool:
        """True if a call has no result yet."""
        return bool(self._open)

    def take(self, place: int | None, index: int, given: Any) -> None:
        """Convert one message."""
        item = as_object(given) or {}
        message = self.message(place, index, item)
        if message is None:
            is_known = text_or_none(item.get("role")) in ROLES
            problem = "content of an unknown kind" if is_known else why_no_role(item, ROLES)
            self._skipped.append(not_a_message(place, problem))
            return
        message_id = usable_id(item.get("id"))
        self.messages.append(
            build_unvalidated(
                RecordedMessage,
                message=replace(message, extra=extra_of(item, TAKEN)),
                key=self._names.take(message_id or f"message:{index}"),
                message_id=message_id,
                at=moment(item.get("timestamp")),
                line=place,
                model=text_or_none(item.get("model")),
                stop_reason=text_or_none(item.get("stop_reason")),
                original=None,
            )
        )

    def message(self, place: int | None, index: int, item: dict[str, Any]) -> Message | None:
        """Convert a message, or return None if its role or content has an unknown type."""
        content = convert_content(item.get("content"))
        match item.get("role"):
            case "system" | "developer" if content is not None:
                return message_of("system", content)
            case "user" if content is not None:
                author = self._authors.author(index, item) if self._authors else None
                return message_of("user", content, author)
            case "assistant":
                return self._answer(place, index, item, content)
            case "tool" | "function":
                return message_of("user", self._results(index, item, content))
            case _:
                return None

    def _answer(
        self, place: int | None, index: int, item: dict[str, Any], content: Content | None
    ) -> Message | None:
        if content is None and item.get("content") is not None:
            return None
        calls = self._calls(index, item)
        thinking = self._thinking(place, item)
        if content is None:
            refusal = text_or_none(item.get("refusal"))
            content = (text_block(refusal),) if refusal is not None else ()
        if calls or thinking:
            content = (*thinking, *as_blocks(content), *calls)
        return message_of("assistant", content)

    def _thinking(self, place: int | None, item: dict[str, Any]) -> list[Block]:
        """Return signed thinking blocks, as some gateways provide them, or reasoning in words."""
        if signed := objects_in(item.get("thinking_blocks")):
            return signed
        texts = (text_or_none(item.get(key)) for key in ("reasoning_content", "reasoning"))
        text = next(filter(None, texts), None)
        if text is None and item.get("reasoning"):
            reason = "reasoning of an unknown kind"
            self._skipped.append(Skipped(line=place, reason=reason))
        return [] if text is None else [thinking_block(text)]

    def _calls(self, index: int, item: dict[str, Any]) -> list[Block]:
        calls = objects_in(item.get("tool_calls"))
        if not calls and as_object(item.get("function_call")) is not None:
            calls = [{"function": item["function_call"]}]
        blocks = [_call(f"call_{index}_{number}", call) for number, call in enumerate(calls)]
        if self._by_name:
            used = {call["id"] for call in calls if call.get("id")}
            for call, block in zip(calls, blocks, strict=True):
                if not call.get("id"):
                    block["id"] = _unused(f"call_{block['name']}", used)
        if blocks:
            self._open = {block["id"]: block["name"] for block in blocks}
        return blocks

    def _results(
        self, index: int, item: dict[str, Any], content: Content | None
    ) -> tuple[Block, ...]:
        """Return result blocks. A result without a call id answers the oldest open call."""
        ids = [i for i in as_list(item.get("tool_call_ids")) or [] if isinstance(i, str) and i]
        if isinstance(one := item.get("tool_call_id"), str) and one:
            ids = [one]
        if not ids:
            ids = [self._oldest_open_id(index, item)]
        self._open = {i: name for i, name in self._open.items() if i not in ids}
        if isinstance(content, tuple):
            said: Any = list(content)
        else:
            said = content or ""
        return tuple({"type": "tool_result", "tool_use_id": i, "content": said} for i in ids)

    def _oldest_open_id(self, index: int, item: dict[str, Any]) -> str:
        """Return the id of the oldest open call, of the named tool if the result names one."""
        name = tool_named(item) if self._by_name else None
        if name is None:
            return next(iter(self._open), f"call_{index}")
        found = next((i for i, of in self._open.items() if of == name), None)
        return found or _unused(f"call_{name}", self._found)


def tool_named(item: dict[str, Any]) -> str | None:
    """Return the tool that a result names."""
    return text_or_none(item.get("name")) or text_or_none(item.get("tool_name"))


def _unused(wanted: str, used: set[str]) -> str:
    """Return an id that is not in ``used``, and add it to ``used``."""
    candidate, number = wanted, 2
    while candidate in used:
        candidate, number = f"{wanted}_{number}", number + 1
    used.add(candidate)
    return candidate


def _call(generated: str, call: dict[str, Any]) -> Block:
    call_id = call.get("id")
    function = as_object(call.get("function")) or as_object(call.get("custom")) or {}
    name = function.get("name")
    return tool_use(
        call_id if isinstance(call_id, str) and call_id else generated,
        name if isinstance(name, str) and name else "unknown",
        arguments_of(function.get("arguments", function.get("input"))),
    )

"""Checks of live messages and their blocks; messages of other APIs are refused with a conversion hint."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from refold.domain.errors import InvalidMessage
from refold.domain.messages import Block, source_problem
from refold.domain.value import is_list, is_object

_OPENAI = "this is the OpenAI format; convert the messages with refold.from_openai(messages) first"
_REPLY = "this is a whole reply of the OpenAI API; convert it with refold.from_openai(reply) first"
CHUNK = (
    "this is a chunk of a streamed reply; join the chunks, and convert the whole reply with "
    "refold.from_openai(reply)"
)
_EVENT = (
    "this is an event of a stream; append the whole reply, as stream.get_final_message() returns it"
)
_LANGCHAIN = (
    "this is the LangChain format; convert the messages with "
    "refold.from_openai(langchain_core.messages.convert_to_openai_messages(messages)) first"
)
_AI_SDK = (
    "this is the format of the AI SDK; give content blocks of the Messages API "
    "(tool_use, tool_result)"
)
_AI_SDK_PARTS = (
    "this is a message of the AI SDK; give role user or assistant and content, a string or blocks of "
    "the Messages API"
)
_OLLAMA = (
    "this is the format of Ollama; give each image as a content block: "
    '{"type": "image", "source": {"type": "base64", "media_type": …, "data": …}}'
)
_GEMINI = (
    "this is the Gemini format; give role user or assistant and content, a string or blocks of the "
    "Messages API"
)
_BEDROCK = (
    "this is the format of Bedrock Converse; give blocks of the Messages API, such as "
    '{"type": "text", "text": …}'
)

_KEYS: Mapping[str, str] = {
    "tool_calls": _OPENAI,
    "function_call": _OPENAI,
    "tool_call_id": _OPENAI,
    "tool_call_ids": _OPENAI,
    "refusal": _OPENAI,
    "audio": _OPENAI,
    "parts": _GEMINI,
    "images": _OLLAMA,
    "toolCalls": "this is not a message of the Messages API; give its calls as tool_use blocks",
}
"""Keys of a message whose content would be lost."""
_ROLES: Mapping[object, str] = {
    "tool": _OPENAI,
    "function": _OPENAI,
    "developer": _OPENAI,
    "model": _GEMINI,
    "human": _LANGCHAIN,
    "ai": _LANGCHAIN,
}
_ITEMS: Mapping[object, str] = {
    "human": _LANGCHAIN,
    "ai": _LANGCHAIN,
    "tool": _LANGCHAIN,
    "system": _LANGCHAIN,
    "function": _LANGCHAIN,
    "HumanMessage": _LANGCHAIN,
    "AIMessage": _LANGCHAIN,
    "AIMessageChunk": _LANGCHAIN,
    "ToolMessage": _LANGCHAIN,
    "SystemMessage": _LANGCHAIN,
    "constructor": _LANGCHAIN,
    "function_call": _OPENAI,
    "function_call_output": _OPENAI,
    "reasoning": _OPENAI,
    "message_start": _EVENT,
    "message_delta": _EVENT,
    "message_stop": _EVENT,
    "content_block_start": _EVENT,
    "content_block_delta": _EVENT,
    "content_block_stop": _EVENT,
}
"""Values of ``type`` of objects that have no role."""
_BLOCKS: Mapping[str, str] = {
    "image_url": _OPENAI,
    "input_text": _OPENAI,
    "output_text": _OPENAI,
    "summary_text": _OPENAI,
    "input_image": _OPENAI,
    "input_file": _OPENAI,
    "input_audio": _OPENAI,
    "refusal": _OPENAI,
    "file": _OPENAI,
    "function": _OPENAI,
    "function_call": _OPENAI,
    "function_call_output": _OPENAI,
    "tool_call": _LANGCHAIN,
    "non_standard": _LANGCHAIN,
    "tool-call": _AI_SDK,
    "tool-result": _AI_SDK,
    "tool-invocation": _AI_SDK,
}
_PARTS: Mapping[str, str] = {
    "toolUse": _BEDROCK,
    "toolResult": _BEDROCK,
    "inlineData": _GEMINI,
    "inline_data": _GEMINI,
    "functionCall": _GEMINI,
    "functionResponse": _GEMINI,
    "function_call": _GEMINI,
    "function_response": _GEMINI,
}
"""Keys of a part that has no type."""


def refuse_foreign(fields: Mapping[str, Any], place: str) -> None:
    """Raise if a message comes from another API and part of it would be lost.

    Raises:
        InvalidMessage: names the field and how to convert it.
    """
    if "role" not in fields and is_list(fields.get("choices")):
        raise InvalidMessage(f"{place}.choices", CHUNK if is_chunk(fields) else _REPLY)
    for key, what in _KEYS.items():
        if fields.get(key) and not _is_shown(key, fields):
            hint = _LANGCHAIN if _is_langchain(fields) else _hint_at_parts(fields) or what
            raise InvalidMessage(f"{place}.{key}", f"is not part of the Messages API: {hint}")
    item = _ITEMS.get(_text(fields.get("type")))
    if "role" not in fields and item:
        raise InvalidMessage(
            f"{place}.type", f"{fields['type']!r} is not a message of the Messages API: {item}"
        )


def is_chunk(reply: Mapping[str, Any]) -> bool:
    """Return whether a reply of the OpenAI API is a chunk of a stream."""
    choices = reply.get("choices")
    parts = [one for one in choices if is_object(one)] if is_list(choices) else []
    return reply.get("object") == "chat.completion.chunk" or any(
        "delta" in one and "message" not in one for one in parts
    )


def refuse_foreign_block(block: Block, place: str) -> None:
    """Raise if a content block comes from another API.

    Raises:
        InvalidMessage: names the type and how to convert it.
    """
    kind = _text(block.get("type"))
    if what := _BLOCKS.get(kind):
        raise InvalidMessage(
            f"{place}.type", f"{kind!r} is not a block of the Messages API: {what}"
        )
    if kind == "image" and "source" not in block and {"base64", "url", "image"} & block.keys():
        what = _AI_SDK if "image" in block else _LANGCHAIN
        raise InvalidMessage(f"{place}.source", f"is missing: {what}")


def hint_at_format(fields: Mapping[str, Any], role: object) -> str:
    """Return a hint at the API of a message without a usable role or content, or an empty string."""
    what = _ROLES.get(_text(role), "")
    if what == _OPENAI and _is_langchain(fields):
        what = _LANGCHAIN
    content = fields.get("content")
    first = content[0] if is_list(content) and content else None
    if is_object(first) and _BLOCKS.get(_text(first.get("type"))) == _AI_SDK:
        what = _AI_SDK
    return f": {what}" if what else ""


def hint_at_block_format(block: Mapping[str, Any]) -> str:
    """Return a hint at the API of a block without a type, or an empty string."""
    what = next((api for key, api in _PARTS.items() if key in block), "")
    if not what and isinstance(block.get("text"), str):
        what = 'a text block is {"type": "text", "text": …}'
    return f": {what}" if what else ""


def _is_shown(key: str, fields: Mapping[str, Any]) -> bool:
    """Return whether the field contains the images of an answer, which no API accepts as input."""
    return key == "images" and fields.get("role") == "assistant"


def _hint_at_parts(fields: Mapping[str, Any]) -> str:
    """Return the hint for ``parts``: parts of the AI SDK have a type, those of Gemini do not."""
    parts = fields.get("parts")
    typed = is_list(parts) and any(is_object(one) and "type" in one for one in parts)
    return _AI_SDK_PARTS if typed else ""


def _is_langchain(fields: Mapping[str, Any]) -> bool:
    return _text(fields.get("type")) in _ITEMS or "additional_kwargs" in fields


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


class UnknownBlockWarning(UserWarning):
    """A message has a block type that the Messages API is not known to accept in it.

    The block is stored unchanged and shown to the model as text. Each type is reported once.
    """


_told: set[str] = set()


def warn_of_unknown(kinds: Iterable[str]) -> None:
    """Warn of unknown block types, once in a process for each."""
    for kind in kinds:
        if kind not in _told:
            _told.add(kind)
            warnings.warn(
                f"a content block of the type {kind[:80]!r} is unknown: it is stored unchanged, and "
                "shown to the model as text. If the type is valid, this version of refold is too old",
                UnknownBlockWarning,
                stacklevel=2,
            )


def forget_reported() -> None:
    """Forget the reported types, so that each is reported again."""
    _told.clear()


def check_blocks(content: Sequence[Block], role: str, place: str) -> None:
    """Raise if blocks are invalid, alone or together, in any request.

    Raises:
        InvalidMessage: names the field, and for a block of another API the converter.
    """
    for index, block in enumerate(content):
        check_block(block, role, f"{place}[{index}]")
    # Calls of the program's own tools and of the provider's.
    calls = ((n, b) for n, b in enumerate(content) if str(b.get("type")).endswith("tool_use"))
    refuse_duplicate_ids((call.get("id"), f"{place}[{n}].id") for n, call in calls)


def check_block(block: Block, role: str, place: str) -> None:
    """Raise if a block is invalid in any request.

    Raises:
        InvalidMessage: names the field, and for a block of another API the converter.
    """
    kind = str(block.get("type"))
    refuse_foreign_block(block, place)
    for field, check, wanted in _REQUIRED.get(kind, ()):
        if not check(block.get(field)):
            raise InvalidMessage(f"{place}.{field}", f"must be {wanted}")
    allowed = _ROLE_OF.get(kind)
    if allowed is not None and role != allowed:
        raise InvalidMessage(
            f"{place}.type", f"{kind} belongs in {allowed} messages, not in {role}"
        )
    if (problem := source_problem(block)) is not None:
        raise InvalidMessage(f"{place}.{problem.path}", f"must be {problem.wanted}")
    inside = block.get("content")
    if kind == "tool_result" and is_list(inside):
        for index, part in enumerate(inside):
            _check_part(part, f"{place}.content[{index}]")


def refuse_duplicate_ids(ids: Iterable[tuple[object, str]]) -> None:
    """Raise if two calls of a message have the same id: a result could belong to either.

    ``ids``: each id with its location; values that are not ids are ignored.

    Raises:
        InvalidMessage: names the second location and the first.
    """
    known: dict[str, str] = {}
    for call_id, place in ids:
        if not isinstance(call_id, str) or not call_id:
            continue
        if call_id in known:
            raise InvalidMessage(
                place,
                f"{call_id!r} is the id of two calls, here and in {known[call_id]}: use a different id for each",
            )
        known[call_id] = place


def is_id(value: object) -> bool:
    """Return whether a value is a text that can be an id."""
    return isinstance(value, str) and bool(value)


def _check_part(part: object, place: str) -> None:
    if not is_object(part):
        kind = f"a value of type {type(part).__name__}"
        raise InvalidMessage(place, f"must be a content block, not {kind}")
    if not is_id(part.get("type")):
        raise InvalidMessage(f"{place}.type", f"is missing{hint_at_block_format(part)}")
    if part["type"] in _ROLE_OF:
        raise InvalidMessage(f"{place}.type", f"{part['type']} cannot be in a tool_result")
    check_block(part, "user", place)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_result(value: object) -> bool:
    return value is None or isinstance(value, str | list)


_Check = tuple[str, Callable[[object], bool], str]
_REQUIRED: Mapping[str, tuple[_Check, ...]] = {
    "text": (("text", _is_text, "a string"),),
    "thinking": (("thinking", _is_text, "a string"),),
    "tool_use": (
        ("id", is_id, "the id of the call"),
        ("name", is_id, "the name of the tool"),
        ("input", is_object, "an object"),
    ),
    "tool_result": (
        ("tool_use_id", is_id, "the id of the call it answers"),
        ("content", _is_result, "a string or a list of blocks"),
    ),
}
_ROLE_OF = {
    "tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
}

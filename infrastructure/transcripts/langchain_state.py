"""Convert the state of LangChain and LangGraph threads, as JSON, to Anthropic shape."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from refold.domain.messages import Author, Block, Role
from refold.domain.originals import Original

from .conversation_draft import (
    ConversationDraft,
    author_of,
    reading_of,
    result_block,
    thinking_block,
)
from .openai import convert_content
from .transcript_source import (
    Content,
    Reading,
    Source,
    arguments_of,
    as_blocks,
    as_list,
    as_object,
    image_block,
    moment,
    not_a_message,
    objects_in,
    text_or_none,
    tool_use,
    usable_id,
)

FORMAT = "langchain"
"""Form in which the adapter of LangChain stores messages, too."""
_KINDS: dict[str, Role] = {
    "human": "user",
    "ai": "assistant",
    "tool": "user",
    "function": "user",
    "system": "system",
    "developer": "system",
}
_CLASSES = {
    "HumanMessage": "human",
    "AIMessage": "ai",
    "ToolMessage": "tool",
    "FunctionMessage": "function",
    "SystemMessage": "system",
}


class _State(NamedTuple):
    """Messages of a thread at one time."""

    place: int | None
    messages: list[Any]
    at: str
    thread: str | None
    title: str | None


def fits(source: Source) -> bool:
    """Return whether the file has messages with LangChain's types, in a state or by themselves."""
    return bool(source.once(_find_states))


def _find_states(source: Source) -> list[_State]:
    return list(_states_in(source))


def _states_in(source: Source) -> Iterator[_State]:
    listed = as_list(source.document) if source.is_document else None
    given = list(enumerate(listed)) if listed else [(one.line, one.value) for one in source.records]
    if _are_messages([value for _, value in given]):
        yield _State(None, [value for _, value in given], "", None, None)
        return
    for place, value in given:
        state = as_object(value) or {}
        values = as_object(state.get("values")) or as_object(state.get("channel_values")) or state
        messages = as_list(values.get("messages"))
        if messages and _are_messages(messages):
            at = text_or_none(state.get("created_at")) or text_or_none(state.get("ts")) or ""
            title = text_or_none(values.get("title"))
            yield _State(None if len(given) == 1 else place, messages, at, _thread(state), title)


def _are_messages(values: list[Any]) -> bool:
    known = sum(_kind(as_object(value) or {}) is not None for value in values)
    return bool(values) and known * 2 >= len(values)


def _kind(message: dict[str, Any]) -> str | None:
    """Return the type of a message, in any of the forms in which LangChain writes it."""
    kind = message.get("type")
    if kind == "constructor":
        path = as_list(message.get("id")) or [""]
        return _CLASSES.get(str(path[-1]).removesuffix("Chunk"))
    if not isinstance(kind, str) or "role" in message or "content" not in _fields(message):
        return None
    name = kind.removesuffix("MessageChunk").lower() if kind.endswith("MessageChunk") else kind
    return name if name in _KINDS else None


def _fields(message: dict[str, Any]) -> dict[str, Any]:
    return as_object(message.get("kwargs")) or as_object(message.get("data")) or message


def _thread(state: dict[str, Any]) -> str | None:
    config = as_object((as_object(state.get("config")) or {}).get("configurable"))
    places = (state, state.get("checkpoint"), state.get("metadata"), config)
    ids = (usable_id((as_object(place) or {}).get("thread_id")) for place in places)
    return next((one for one in ids if one is not None), None)


def read(source: Source) -> Reading:
    """Read one conversation for each thread. Of several states the newest form of a message counts.

    Messages that a later state lacks, because they were summarised or trimmed, are kept.
    """
    threads: dict[str, _Thread] = {}
    for state in sorted(source.once(_find_states), key=lambda state: state.at):
        name = state.thread or source.stem
        threads.setdefault(name, _Thread(name)).add(state)
    return reading_of(thread.read() for thread in threads.values())


class _Thread:
    """The messages of a thread, from the oldest state to the newest."""

    def __init__(self, name: str) -> None:
        self._draft = ConversationDraft(name)
        self._messages: dict[str, tuple[int | None, dict[str, Any]]] = {}

    def add(self, state: _State) -> None:
        """Add a state that is newer than those before."""
        self._draft.label = state.title or self._draft.label
        for index, value in enumerate(state.messages):
            message = as_object(value)
            place = index if state.place is None else state.place
            if message is None or _kind(message) is None:
                self._draft.skipped.append(not_a_message(place, "no message of LangChain"))
                continue
            key = usable_id(_fields(message).get("id")) or f"message:{index}"
            self._messages[key] = (place, message)

    def read(self) -> ConversationDraft:
        """Return the conversation."""
        for key, (place, message) in self._messages.items():
            self._take(key, place, message)
        return self._draft

    def _take(self, key: str, place: int | None, message: dict[str, Any]) -> None:
        fields, kind = _fields(message), _kind(message) or ""
        content = _content(fields.get("content"))
        if content is None:
            self._draft.skipped.append(not_a_message(place, "content of an unknown kind"))
            return
        author: Author | None = None
        match kind:
            case "ai":
                content = self._answer(place, fields, content)
            case "tool" | "function":
                content = (self._result(fields, content),)
            case "human":
                author = author_of(content)
            case _:
                pass
        metadata = as_object(fields.get("response_metadata")) or {}
        plain = {name: one for name, one in fields.items() if name != "type"}
        self._draft.append(
            place,
            _KINDS[kind],
            content,
            given_id=usable_id(fields.get("id")),
            key=key,
            at=moment(metadata.get("created_at")) or moment(metadata.get("created")),
            author=author,
            model=text_or_none(metadata.get("model_name")) or text_or_none(metadata.get("model")),
            original=Original(format=FORMAT, data={"type": kind, "data": {**plain, "type": kind}}),
        )

    def _answer(self, place: int | None, fields: dict[str, Any], content: Content) -> Content:
        blocks = [block for block in as_blocks(content) if block.get("type") != "tool_call"]
        has_thoughts = any(block.get("type") == "thinking" for block in blocks)
        more = as_object(fields.get("additional_kwargs")) or {}
        reasoning = more.get("reasoning_content") or more.get("reasoning")
        if not has_thoughts and (text := text_or_none(reasoning)) is not None:
            blocks.insert(0, thinking_block(text))
        in_content = {str(block.get("id")) for block in blocks if block.get("type") == "tool_use"}
        for block in blocks:
            if block.get("type") == "tool_use":
                block["id"] = self._draft.call_id(str(block.get("id")))
        calls = [
            *objects_in(fields.get("tool_calls")),
            *objects_in(fields.get("invalid_tool_calls")),
        ]
        for number, call in enumerate(calls):
            given = usable_id(call.get("id")) or f"call_{place}_{number}"
            if given not in in_content:
                name = text_or_none(call.get("name")) or "unknown"
                call_id = self._draft.call_id(given)
                blocks.append(tool_use(call_id, name, arguments_of(call.get("args"))))
        return content if blocks == as_blocks(content) else tuple(blocks)

    def _result(self, fields: dict[str, Any], content: Content) -> Block:
        given = usable_id(fields.get("tool_call_id")) or usable_id(fields.get("name")) or "unknown"
        is_error = fields.get("status") == "error"
        return result_block(self._draft.answered(given), content, is_error=is_error)


def _content(value: Any) -> Content | None:
    content = convert_content(value)
    return content if content is None or isinstance(content, str) else tuple(map(_block, content))


def _block(block: Block) -> Block:
    match block:
        case {"type": "reasoning", "reasoning": str(text)}:
            return thinking_block(text)
        case {"type": "image", "base64": str(data)}:
            return image_block(block.get("mime_type") or "image/png", data)
        case {"type": "image", "url": str(url)}:
            return {"type": "image", "source": {"type": "url", "url": url}}
        case _:
            return dict(block)

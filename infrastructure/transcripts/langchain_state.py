"""Convert the state of LangChain and LangGraph threads, as JSON, to Anthropic shape."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from refold.domain.messages import Author, Block, Role
from refold.domain.originals import Original

from .conversation_draft import (
    ConversationDraft,
    author_of,
    image_block,
    joined,
    reading_of,
    result_block,
    thinking_block,
    tool_use,
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
    moment,
    not_a_message,
    objects_in,
    text_or_none,
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


_SIGNS = ("type", "values", "channel_values", "checkpoint", "messages")
"""Fields, one of which each message and state has."""
_IN_CONTENT = ("tool_call", "function_call", "invalid_tool_call", "tool_call_chunk")
"""Types of blocks that repeat a call, which most messages have among their calls as well."""


class _State(NamedTuple):
    """Messages of a thread at one time."""

    place: int | None
    messages: list[Any]
    at: str
    step: int
    thread: str | None
    title: str | None


def fits(source: Source) -> bool:
    """Return whether the file has messages with LangChain's types, in a state or by themselves."""
    return source.has_field(*_SIGNS) and bool(source.once(_find_states))


def _find_states(source: Source) -> list[_State]:
    return list(_states_in(source))


def _states_in(source: Source) -> Iterator[_State]:
    listed = as_list(source.document) if source.is_document else None
    given = list(enumerate(listed)) if listed else [(one.line, one.value) for one in source.records]
    if _are_messages([value for _, value in given]):
        yield _State(None, [value for _, value in given], "", 0, None, None)
        return
    for place, value in given:
        state = as_object(value) or {}
        saved = as_object(state.get("checkpoint")) or {}
        found = (state.get("values"), state.get("channel_values"), saved.get("channel_values"))
        values = next(filter(None, map(as_object, found)), state)
        messages = as_list(values.get("messages"))
        if messages and _are_messages(messages):
            times = (state.get("created_at"), state.get("ts"), saved.get("ts"))
            at = next(filter(None, map(text_or_none, times)), "")
            step = (as_object(state.get("metadata")) or {}).get("step")
            yield _State(
                None if len(given) == 1 else place,
                messages,
                at,
                step if isinstance(step, int) else 0,
                _thread(state),
                text_or_none(values.get("title")),
            )


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
    for state in sorted(source.once(_find_states), key=lambda state: (state.at, state.step)):
        name = state.thread or source.stem
        threads.setdefault(name, _Thread(name)).add(state)
    return reading_of(thread.read() for thread in threads.values())


class _Thread:
    """The messages of a thread, from the oldest state to the newest."""

    def __init__(self, name: str) -> None:
        self._draft = ConversationDraft(name)
        self._messages: dict[str, tuple[int | None, dict[str, Any]]] = {}
        self._times: dict[str, str] = {}
        """Times of the first states of several that have a message, by key."""

    def add(self, state: _State) -> None:
        """Add a state that is newer than those before."""
        self._draft.label = state.title or self._draft.label
        repeats = Counter[str]()
        for index, value in enumerate(state.messages):
            message = as_object(value)
            place = index if state.place is None else state.place
            if message is None or _kind(message) is None:
                self._draft.skipped.append(not_a_message(place, "no message of LangChain"))
                continue
            key = usable_id(_fields(message).get("id")) or f"message:{index}"
            if state.place is not None:  # Another state can have it at another index.
                key = usable_id(_fields(message).get("id")) or _digest(message, repeats)
                self._times.setdefault(key, state.at)
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
                is_summary = _more(fields).get("lc_source") == "summarization"
                author = "program" if is_summary else author_of(content)
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
            at=moment(metadata.get("created_at"))
            or moment(metadata.get("created"))
            or moment(self._times.get(key)),
            author=author,
            model=text_or_none(metadata.get("model_name")) or text_or_none(metadata.get("model")),
            original=Original(format=FORMAT, data={"type": kind, "data": {**plain, "type": kind}}),
        )

    def _answer(self, place: int | None, fields: dict[str, Any], content: Content) -> Content:
        given = as_blocks(content)
        calls = _calls_of(fields, given)
        by_id = {str(call.get("id")): call for call in calls}
        blocks = [_whole_call(one, by_id) for one in given if one.get("type") not in _IN_CONTENT]
        has_thoughts = any(block.get("type") == "thinking" for block in blocks)
        text = _reasoning(_more(fields))
        if not has_thoughts and text is not None:
            blocks.insert(0, thinking_block(text))
        in_content = {str(block.get("id")) for block in blocks if block.get("type") == "tool_use"}
        for block in blocks:
            if block.get("type") == "tool_use":
                block["id"] = self._draft.call_id(str(block.get("id")))
        for number, call in enumerate(calls):
            given_id = usable_id(call.get("id")) or f"call_{place}_{number}"
            if given_id not in in_content:
                name = text_or_none(call.get("name")) or "unknown"
                call_id = self._draft.call_id(given_id)
                blocks.append(tool_use(call_id, name, arguments_of(call.get("args"))))
        return content if blocks == as_blocks(content) else tuple(blocks)

    def _result(self, fields: dict[str, Any], content: Content) -> Block:
        given = usable_id(fields.get("tool_call_id")) or usable_id(fields.get("name")) or "unknown"
        is_error = fields.get("status") == "error"
        return result_block(self._draft.answered(given), content, is_error=is_error)


def _more(fields: dict[str, Any]) -> dict[str, Any]:
    return as_object(fields.get("additional_kwargs")) or {}


def _digest(message: dict[str, Any], repeats: Counter[str]) -> str:
    """Return a key for a message without an id: its content, and how often its state had that before."""
    written = json.dumps(message, sort_keys=True)
    digest = hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    repeats[digest] += 1
    return f"{digest}#{repeats[digest]}"


def _calls_of(fields: dict[str, Any], blocks: list[Block]) -> list[dict[str, Any]]:
    """Return the calls of an answer, wherever the version of LangChain puts them."""
    calls = [*objects_in(fields.get("tool_calls")), *objects_in(fields.get("invalid_tool_calls"))]
    if not calls:
        calls = [*_provider_calls(_more(fields))]
    known = {str(call.get("id")) for call in calls}
    for block in blocks:
        given = block.get("call_id") or block.get("id")
        if block.get("type") in _IN_CONTENT and str(given) not in known:
            args = block.get("args", block.get("arguments"))
            calls.append({"id": given, "name": block.get("name"), "args": args})
    return calls


def _provider_calls(more: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the calls in the form of the provider. Old versions have no other form."""
    for call in objects_in(more.get("tool_calls")):
        function = as_object(call.get("function")) or {}
        yield {
            "id": call.get("id"),
            "name": function.get("name"),
            "args": function.get("arguments"),
        }
    if (only := as_object(more.get("function_call"))) is not None:
        # Its result names the function and no call.
        name = only.get("name")
        yield {"id": name, "name": name, "args": only.get("arguments")}


def _whole_call(block: Block, calls: dict[str, dict[str, Any]]) -> Block:
    """Return a block. A call that was streamed gets its arguments, of which it has the text only."""
    call = calls.get(str(block.get("id")))
    if block.get("type") != "tool_use" or "partial_json" not in block:
        return block
    args = block["partial_json"] if call is None else call.get("args")
    left = {key: one for key, one in block.items() if key not in ("partial_json", "index")}
    return {**left, "input": arguments_of(args)}


def _reasoning(more: dict[str, Any]) -> str | None:
    given = more.get("reasoning_content") or more.get("reasoning")
    return text_or_none(given) or _summary(as_object(given) or {})


def _summary(reasoning: dict[str, Any]) -> str | None:
    texts = [str(part.get("text") or "") for part in objects_in(reasoning.get("summary"))]
    return text_or_none(joined(texts))


def _content(value: Any) -> Content | None:
    content = convert_content(value)
    if content is None or isinstance(content, str):
        return content
    return tuple(_block(block) for block in content if not _is_sealed(block))


def _is_sealed(block: Block) -> bool:
    """Return whether a block is reasoning without words. It stays in the form of LangChain."""
    return block.get("type") == "reasoning" and not (block.get("reasoning") or _summary(block))


def _block(block: Block) -> Block:
    match block:
        case {"type": "reasoning", "reasoning": str(text)}:
            return thinking_block(text)
        case {"type": "reasoning"}:
            return thinking_block(_summary(block) or "")
        case {"type": "reasoning_content", "reasoning_content": {"text": str(text)} as thought}:
            signature = text_or_none(thought.get("signature"))
            return thinking_block(text) | ({"signature": signature} if signature else {})
        case {"type": "image", "url": str(url)}:
            return {"type": "image", "source": {"type": "url", "url": url}}
        case {"type": "image" | "file" | "media", "base64": str(data)} | {
            "type": "image" | "file" | "media", "data": str(data)
        }:  # fmt: skip
            return _shown(block, data)
        case _:
            return dict(block)


def _shown(block: Block, data: str) -> Block:
    kind = str(block.get("mime_type") or ("image/png" if block["type"] == "image" else ""))
    if kind.startswith("image/"):
        return image_block(kind, data)
    if kind != "application/pdf":
        return dict(block)
    source = {"type": "base64", "media_type": kind, "data": data}
    return {"type": "document", "source": source}

"""Convert event streams of Agent TARS to Anthropic shape: a JSON list, JSON lines, or an object with the list."""

import json
from typing import Any

from refold.domain.messages import Author, Block
from refold.domain.value import replace

from .conversation_draft import (
    ConversationDraft,
    author_of,
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
    text_block,
    text_or_none,
    usable_id,
)

_SIGNS = ("user_message", "assistant_message", "agent_run_start", "session_start")
_FIRST = 20
"""Number of events that are looked at to recognise a stream."""
_OTHER = {
    "agent_run_start": "beginning of a run",
    "agent_run_end": "end of a run",
    "plan_start": "plan",
    "plan_update": "plan",
    "plan_finish": "plan",
    "system": "message of the program",
    "assistant_streaming_message": "part of a message that follows",
    "assistant_streaming_thinking_message": "part of a message that follows",
    "assistant_streaming_tool_call": "part of a message that follows",
    "final_answer_streaming": "part of a message that follows",
}


def fits(source: Source) -> bool:
    """Return whether one of the first events shows that the file is a stream."""
    first = [as_object(value) or {} for _, value in _events(source)[:_FIRST]]
    return any(one.get("type") in _SIGNS and {"id", "timestamp"} <= one.keys() for one in first)


def _events(source: Source) -> list[tuple[int, Any]]:
    """Return the events with their lines or indexes."""
    if not source.is_document:
        return [(record.line, record.value) for record in source.records]
    listed = as_list(source.document) or as_list((as_object(source.document) or {}).get("events"))
    return list(enumerate(listed or [source.document]))


def read(source: Source) -> Reading:
    """Read the conversation of a stream. An answer and its calls become one message."""
    stream = _Stream(source.stem)
    for place, value in _events(source):
        event = as_object(value)
        if event is None:
            stream.draft.skipped.append(not_a_message(place, "an event that is no object"))
        else:
            stream.take(place, event)
    stream.end()
    return reading_of([stream.draft])


class _Stream:
    """Reads events in order."""

    def __init__(self, stem: str) -> None:
        self.draft = ConversationDraft(stem)
        self._model: str | None = None
        self._thoughts: list[Block] = []
        """Reasoning before an answer."""
        self._thought: tuple[int, dict[str, Any]] = (0, {})
        """The newest event of it."""
        self._answer: tuple[int, dict[str, Any]] | None = None
        """Index and event of an answer that was not followed by a result or other words yet."""
        self._announced: set[str] = set()
        """Ids of calls that an answer has, and no event of a call yet."""

    def take(self, place: int, event: dict[str, Any]) -> None:
        """Add one event."""
        kind, draft = event.get("type"), self.draft
        match kind:
            case "user_message":
                self._said(place, event, None)
            case "environment_input":
                self._said(place, event, "program")
            case "assistant_thinking_message":
                self._reasoned(place, event)
            case "assistant_message" | "final_answer":
                self._answered(place, event)
            case "tool_call":
                self._called(place, event)
            case "tool_result":
                self._returned(place, event)
            case _:
                if kind == "agent_run_start":
                    self._model = text_or_none(event.get("model")) or self._model
                reason = _OTHER.get(str(kind), "record of another type")
                draft.skip(place, reason, kind)

    def end(self) -> None:
        """Add reasoning of an answer that was interrupted."""
        if self._thoughts:
            place, event = self._thought
            self._append(place, event, "assistant", tuple(self._take_thoughts()))

    def _end_other(self, event: dict[str, Any]) -> None:
        """Add reasoning of an answer that came before, or never, if an event belongs to another one."""
        if _are_apart(self._thought[1], event):
            self.end()

    def _reasoned(self, place: int, event: dict[str, Any]) -> None:
        """Add reasoning to its answer, which most versions write before the reasoning, and some after it."""
        text = text_or_none(event.get("content"))
        if text is None:
            self.draft.skip(place, "reasoning without words")
            return
        block = thinking_block(text)
        index, answer = self._answer or (None, event)
        if index is None or _are_apart(answer, event):
            self._end_other(event)
            self._thoughts.append(block)
            self._thought = (place, event)
            return
        recorded = self.draft.messages[index]
        blocks = recorded.message.blocks() if recorded.message.content else ()
        if block in blocks:
            self.draft.skip(place, "event, which a message has again", event.get("type"))
            return
        before = [one for one in blocks if one["type"] == "thinking"]
        content = (*before, block, *blocks[len(before) :])
        message = replace(recorded.message, content=content)
        self.draft.messages[index] = replace(recorded, message=message)

    def _said(self, place: int, event: dict[str, Any], author: Author | None) -> None:
        content = convert_content(event.get("content"))
        if content is None:
            self.draft.skipped.append(not_a_message(place, "content of an unknown kind"))
            return
        self.end()
        self._append(place, event, "user", content, author or author_of(content))

    def _answered(self, place: int, event: dict[str, Any]) -> None:
        content = convert_content(event.get("content") or "")
        calls = [
            (
                usable_id(call.get("id")) or f"call_{place}_{number}",
                as_object(call.get("function")) or {},
            )
            for number, call in enumerate(objects_in(event.get("toolCalls")))
        ]
        if content is None:
            self.draft.skipped.append(not_a_message(place, "content of an unknown kind"))
            return
        self._end_other(event)
        self._announced = {given for given, _ in calls}
        blocks = [*self._take_thoughts(), *as_blocks(content)]
        for given, function in calls:
            name = text_or_none(function.get("name")) or "unknown"
            arguments = arguments_of(function.get("arguments"))
            blocks.append(tool_use(self.draft.call_id(given), name, arguments))
        # Answers to the same request of a stream can have no words.
        self._append(
            place, event, "assistant", content if blocks == as_blocks(content) else tuple(blocks)
        )
        self._answer = (len(self.draft.messages) - 1, event)

    def _called(self, place: int, event: dict[str, Any]) -> None:
        """Add a call that no answer has. The others come twice."""
        given = usable_id(event.get("toolCallId")) or f"call_{place}"
        if given in self._announced:
            self._announced.discard(given)
            self.draft.skip(place, "event, which a message has again", "tool_call")
            return
        name = text_or_none(event.get("name")) or "unknown"
        block = tool_use(self.draft.call_id(given), name, arguments_of(event.get("arguments")))
        self._append(place, event, "assistant", (*self._take_thoughts(), block))

    def _returned(self, place: int, event: dict[str, Any]) -> None:
        given = usable_id(event.get("toolCallId")) or "unknown"
        error = text_or_none(event.get("error"))
        content = _content(event.get("content") if error is None else event.get("content") or error)
        block = result_block(self.draft.answered(given), content, is_error=error is not None)
        self._append(place, event, "user", (block,))

    def _append(
        self,
        place: int,
        event: dict[str, Any],
        role: Any,
        content: Content,
        author: Author | None = None,
    ) -> None:
        self._answer = None
        self.draft.append(
            place,
            role,
            content,
            given_id=usable_id(event.get("id")),
            at=moment(event.get("timestamp")),
            author=author,
            model=self._model,
        )

    def _take_thoughts(self) -> list[Block]:
        thoughts, self._thoughts = self._thoughts, []
        return thoughts


def _are_apart(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two events name different answers."""
    ids = {usable_id(event.get("messageId")) for event in (one, other)} - {None}
    return len(ids) == 2


def _content(value: Any) -> Content:
    """Return the content of a result. A value that is no text and no list of parts becomes JSON."""
    if isinstance(value, str):
        return value
    parts = as_list(value)
    if parts is not None and all("type" in (as_object(part) or {}) for part in parts):
        return convert_content(parts) or ()
    return (text_block(json.dumps(value, ensure_ascii=False)),)

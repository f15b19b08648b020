"""Convert session files of the Gemini CLI to Anthropic shape: one JSON object, or the same as JSON lines."""

from typing import Any

from refold.application.conversation.transcripts import (
    RecordedConversation,
    RecordedMessage,
    Skipped,
)
from refold.domain.messages import Author, Block, Message, said

from .conversation_draft import joined, thinking_block
from .transcript_source import (
    Content,
    Names,
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
    text_block,
    text_or_none,
    thread_id,
    tool_use,
    usable_id,
)

_KINDS = ("user", "gemini", "info", "error", "warning")
_Place = tuple[int, dict[str, Any]]
"""Line or index of a record, and the record."""

_OF_THE_PROGRAM = ("<session_context>", "<system-reminder>", "This is the Gemini CLI. ")
"""Beginnings of what the program says. Versions before session_context say the last one."""


def fits(source: Source) -> bool:
    """Return whether the file begins with the header of a session, or is one."""
    value = as_object(source.records[0].value) if source.records else None
    return value is not None and "sessionId" in value and "projectHash" in value


def read(source: Source) -> Reading:
    """Read the conversation of a session. A call and its result stand in one record, and become two messages."""
    session, skipped = _Session(source.stem), list[Skipped]()
    for place, record in _records(source, skipped):
        session.take(place, record, skipped)
    conversation = RecordedConversation(
        thread_id=thread_id(_session_id(source) or source.stem), messages=tuple(session.messages)
    )
    found = (conversation,) if session.messages else ()
    return Reading(conversations=found, skipped=tuple(skipped))


def _session_id(source: Source) -> str | None:
    return usable_id((as_object(source.records[0].value) or {}).get("sessionId"))


def _records(source: Source, skipped: list[Skipped]) -> list[_Place]:
    """Return the records of messages. A record that is written again replaces the earlier one."""
    header = as_object(source.records[0].value) or {}
    listed = as_list(header.get("messages"))
    given: list[tuple[int, Any]] = list(enumerate(listed or ()))
    if listed is None or len(source.records) > 1:
        given += [(record.line, record.value) for record in source.records[1:]]
    found: dict[str, _Place] = {}
    for place, value in given:
        record = as_object(value)
        if record is None:
            skipped.append(Skipped(line=place, reason="record that is no object", damage=True))
            continue
        key = usable_id(record.get("id")) or f"place:{place}"
        found[key] = (found[key][0] if key in found else place, record)
    return list(found.values())


class _Session:
    """The messages of a session in file order."""

    def __init__(self, stem: str) -> None:
        self.messages: list[RecordedMessage] = []
        self._stem = stem
        self._names = Names()

    def take(self, place: int, record: dict[str, Any], skipped: list[Skipped]) -> None:
        """Add the messages of one record."""
        kind = record.get("type")
        if kind not in ("user", "gemini"):
            reason = "message of the program" if kind in _KINDS else "record of another type"
            skipped.append(Skipped(line=place, reason=reason, detail=ascii(kind)[1:-1][:80]))
            return
        content = _content(record.get("content"))
        if content is None:
            skipped.append(not_a_message(place, "content of an unknown kind"))
            return
        if kind == "user":
            self._append(
                place, record, Message(role="user", content=content, author=_author(content))
            )
            return
        thoughts = map(_thought, objects_in(record.get("thoughts")))
        calls = objects_in(record.get("toolCalls"))
        blocks = (*thoughts, *as_blocks(content), *(_call(call, place) for call in calls))
        if blocks:
            self._append(place, record, Message(role="assistant", content=blocks))
        results = tuple(_result(call, place) for call in calls)
        if results:
            self._append(place, record, Message(role="user", content=results), ":results")

    def _append(
        self, place: int, record: dict[str, Any], message: Message, behind: str = ""
    ) -> None:
        given = usable_id(record.get("id"))
        self.messages.append(
            RecordedMessage(
                message=message,
                key=self._names.take(f"{given or f'message:{place}'}{behind}"),
                message_id=None if behind else given,
                at=moment(record.get("timestamp")),
                line=place,
                model=text_or_none(record.get("model")) if message.role == "assistant" else None,
            )
        )


def _author(content: Content) -> Author:
    # The program appends the files that a person names with @ to the person's message.
    words = said(Message(role="user", content=content)).lstrip()
    return "program" if words.startswith(_OF_THE_PROGRAM) else "person"


def _content(value: Any) -> Content | None:
    """Return a text unchanged, and parts as blocks. A part of an unknown kind is kept as it is."""
    if isinstance(value, str):
        return value
    if as_object(value) is not None:
        value = [value]
    parts = as_list(value)
    if parts is None:
        return "" if value is None else None
    return tuple(_part(part) for part in parts)


def _part(part: Any) -> Block:
    match part:
        case str():
            return text_block(part)
        case {"text": str(text)}:
            return text_block(text)
        case {"inlineData": {"data": str(data), "mimeType": str(kind)}}:
            return image_block(kind, data)
        case _:
            return {"type": "unknown", **(as_object(part) or {})}


def _thought(thought: dict[str, Any]) -> Block:
    parts = (thought.get("subject"), thought.get("description"))
    return thinking_block(joined(part for part in parts if isinstance(part, str)))


def _call(call: dict[str, Any], place: int) -> Block:
    name = text_or_none(call.get("name")) or "unknown"
    return tool_use(_id_of(call, place), name, arguments_of(call.get("args")))


def _id_of(call: dict[str, Any], place: int) -> str:
    return usable_id(call.get("id")) or f"call_{place}"


def _result(call: dict[str, Any], place: int) -> Block:
    texts = list(_result_texts(call.get("result"))) or [str(call.get("resultDisplay") or "")]
    result: Block = {
        "type": "tool_result",
        "tool_use_id": _id_of(call, place),
        "content": "\n".join(texts),
    }
    if call.get("status") in ("error", "cancelled"):
        result["is_error"] = True
    return result


def _result_texts(result: Any) -> list[str]:
    if isinstance(result, str):
        return [result]
    texts: list[str] = []
    for part in objects_in(result):
        response = as_object((as_object(part.get("functionResponse")) or {}).get("response")) or {}
        found = (response.get("output"), response.get("error"), part.get("text"))
        texts += [text for text in found if isinstance(text, str)]
    return texts

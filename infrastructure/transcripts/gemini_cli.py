"""Convert session files of the Gemini CLI to Anthropic shape: one JSON object, or the same as JSON lines."""

import json
import re
from itertools import zip_longest
from typing import Any

from refold.application.conversation.transcripts import (
    RecordedConversation,
    RecordedMessage,
    RecordedSummary,
    Skipped,
)
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import Author, Block, Message, said

from .conversation_draft import image_block, joined, thinking_block, tool_use
from .transcript_source import (
    Content,
    Names,
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
    thread_id,
    usable_id,
)

_KINDS = ("user", "gemini", "info", "error", "warning")
_Place = tuple[int, dict[str, Any]]
"""Line or index of a record, and the record."""

_OF_THE_PROGRAM = (
    "<session_context>",
    "<system-reminder>",
    "<hook_context>",
    "This is the Gemini CLI. ",
    "Here is the user's editor context as a JSON object",
)
"""Beginnings of what the program says. Versions before session_context say that this is the Gemini CLI."""
_SNAPSHOT = "<state_snapshot>"
"""Beginning of the summary that takes the place of older messages."""
_ACKNOWLEDGED = "Got it. Thanks for the additional context!"
"""Answer to a summary, which the program gives in the name of the model."""
_MASKED = "<tool_output_masked>"
"""Sign of a result that the program shortened in its own history."""
_TAKEN_OUT = lazy_pattern(r"[\u200b-\u200f\ufeff]|<!--.*?-->", re.DOTALL)
_ENDED = ("success", "error", "cancelled")
_NEW = object()
"""Arguments of a call that was not there before."""
_PDF = "application/pdf"


def fits(source: Source) -> bool:
    """Return whether the file begins with the header of a session, or is one."""
    value = as_object(source.records[0].value) if source.records else None
    return value is not None and "sessionId" in value and "projectHash" in value


def read(source: Source) -> Reading:
    """Read the conversation of a session. A call and its result stand in one record, and become two messages."""
    journal = _Journal()
    header = as_object(source.records[0].value) or {}
    listed = as_list(header.get("messages"))
    for index, value in enumerate(listed or ()):
        journal.take(index, value)
    if listed is None or len(source.records) > 1:
        for line in source.records[1:]:
            journal.take(line.line, line.value)
    session = _Session(journal, of_agent=header.get("kind") == "subagent")
    records = [*journal.found.values()]
    for (place, record), following in zip_longest(records, records[1:]):
        session.take(place, record, following and following[1])
    conversation = RecordedConversation(
        thread_id=thread_id(usable_id(header.get("sessionId")) or source.stem),
        messages=tuple(session.messages),
        summaries=tuple(session.summaries),
    )
    found = (conversation,) if session.messages else ()
    return Reading(conversations=found, skipped=tuple(journal.skipped))


class _Journal:
    """The records of messages. One that is written again replaces the earlier one, in its place."""

    def __init__(self) -> None:
        self.found: dict[str, _Place] = {}
        self.skipped: list[Skipped] = []
        self.has_changes = False
        """True for the versions that write their history again when they shorten it."""

    def take(self, place: int, value: Any) -> None:
        """Add a record: a message, or a change of the session, which can have messages as well."""
        record = as_object(value)
        if record is None:
            self.skip(place, "record that is no object", damage=True)
        elif (change := as_object(record.get("$set"))) is not None:
            self.has_changes = True
            for number, message in enumerate(objects_in(change.get("messages"))):
                self._put_context(place, f"place:{place}:{number}", message)
            if not as_list(change.get("messages")):
                self.skip(place, "change of the header", "$set")
        elif "$rewindTo" in record:
            self.skip(place, "step back; the messages that it took back are kept", "$rewindTo")
        else:
            key = usable_id(record.get("id")) or f"place:{place}"
            first, earlier = self.found.get(key, (place, {}))
            self.found[key] = (first, _with_results(record, earlier))

    def skip(self, place: int, reason: str, detail: object = "", *, damage: bool = False) -> None:
        """Note that something was left out."""
        detail = ascii(str(detail))[1:-1][:80]
        self.skipped.append(Skipped(line=place, reason=reason, detail=detail, damage=damage))

    def _put_context(self, place: int, name: str, message: dict[str, Any]) -> None:
        """Add a message of the context at one time, which can be shorter than what was recorded before."""
        key = usable_id(message.get("id")) or name
        first, earlier = self.found.get(key, (place, {}))
        if key not in self.found or _extent(message) > _extent(earlier):
            self.found[key] = (first, _with_results(message, earlier))


def _extent(record: dict[str, Any]) -> tuple[int, int, int]:
    calls = objects_in(record.get("toolCalls"))
    answered = sum(call.get("result") is not None for call in calls)
    return answered, len(calls), sum(map(len, _texts(record)))


def _with_results(record: dict[str, Any], earlier: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the results of its calls as they were before the program shortened them."""
    before = {str(one.get("id")): one.get("result") for one in objects_in(earlier.get("toolCalls"))}
    calls = objects_in(record.get("toolCalls"))
    if not any(before.values()) or not any(_MASKED in str(one.get("result")) for one in calls):
        return record
    kept = [
        {**one, "result": before.get(str(one.get("id"))) or one["result"]}
        if _MASKED in str(one.get("result"))
        else one
        for one in calls
    ]
    return {**record, "toolCalls": kept}


class _Session:
    """The messages of a session in file order."""

    def __init__(self, journal: _Journal, *, of_agent: bool) -> None:
        """Create an empty session. In that of a sub-agent another agent writes what a person writes elsewhere."""
        self.messages: list[RecordedMessage] = []
        self.summaries: list[RecordedSummary] = []
        self._skip = journal.skip
        self._skipped = journal.skipped
        self._of_agent = of_agent
        self._writes_again = journal.has_changes
        self._names = Names()
        self._said: set[str] = set()
        """Texts of all messages."""
        self._calls: dict[str, str] = {}
        """Names of the calls, by id."""
        self._inputs: dict[str, Any] = {}
        """Their arguments."""
        self._answered: set[str] = set()
        records = [record for _, record in journal.found.values()]
        self._answered_apart = {
            str(one.get("id")) for record in records for one in _parts(record, "functionResponse")
        }

    def take(self, place: int, record: dict[str, Any], following: dict[str, Any] | None) -> None:
        """Add the messages of one record, unless the program wrote its history again with it."""
        kind = record.get("type")
        if kind not in ("user", "gemini"):
            reason = "message of the program" if kind in _KINDS else "record of another type"
            self._skip(place, reason, kind)
            return
        if (content := _content(record.get("content"))) is None:
            self._skipped.append(not_a_message(place, "content of an unknown kind"))
            return
        texts = _texts(record)
        if texts and texts[0].startswith(_SNAPSHOT) and kind == "user":
            self._take_summary(place, record, texts)
        elif texts == [_ACKNOWLEDGED] and self.summaries:
            self._skip(place, "summary by the recording tool; the original is before it")
        elif self._is_copy(record) or (
            kind == "user" and following and self._is_known(record) and self._is_copy(following)
        ):
            self._skip(place, "message that was written again for the context")
        elif kind == "user":
            self._take_user(place, record, content)
        else:
            self._take_answer(place, record, content)
        self._said.update(texts)

    def _is_copy(self, record: dict[str, Any]) -> bool:
        """Return whether the program wrote an answer again. Answers of a model name the model."""
        is_answer = record.get("type") == "gemini" and text_or_none(record.get("model")) is None
        return self._writes_again and is_answer and self._is_known(record)

    def _is_known(self, record: dict[str, Any]) -> bool:
        ids = [str(one.get("id")) for one in _calls_of(record)]
        texts = _texts(record)
        has_all = all(one in self._calls for one in ids) and self._said.issuperset(texts)
        return bool(ids or texts) and has_all

    def _take_summary(self, place: int, record: dict[str, Any], texts: list[str]) -> None:
        text = "\n".join(texts)
        if self.messages:
            self.summaries.append(
                RecordedSummary(
                    position=len(self.messages),
                    text=text,
                    key=usable_id(record.get("id")),
                    at=moment(record.get("timestamp")),
                )
            )
        self._skip(place, "summary by the recording tool; the original is before it")

    def _take_user(self, place: int, record: dict[str, Any], content: Content) -> None:
        answers = _parts(record, "functionResponse")
        if not answers:
            author = "program" if self._of_agent else _author(content)
            message = Message(role="user", content=content, author=author)
            self._append(place, record, message)
            return
        blocks: list[Block] = []
        for answer in answers:
            if (call_id := self._call_of(answer)) in self._answered:
                # Newer versions write the results a second time, as a message.
                self._skip(place, "result, which a call has as well")
                continue
            self._answered.add(call_id)
            blocks.append(_answer(call_id, answer))
        said = [block for block in as_blocks(content) if "functionResponse" not in block]
        if blocks or said:
            self._append(place, record, Message(role="user", content=(*blocks, *said)))

    def _call_of(self, answer: dict[str, Any]) -> str:
        """Return the call of a result. Without an id it is the oldest open one of that name."""
        if (given := usable_id(answer.get("id"))) is not None:
            return given
        named = [one for one, name in self._calls.items() if name == answer.get("name")]
        is_open = (one for one in named if one not in self._answered)
        return next(is_open, named[-1] if named else "unknown")

    def _take_answer(self, place: int, record: dict[str, Any], content: Content) -> None:
        calls = _with_ids(objects_in(record.get("toolCalls")), place)
        thoughts = [*map(_thought, objects_in(record.get("thoughts")))]
        given = as_blocks(content)
        said = [block for block in given if "functionCall" not in block]
        if thoughts:  # The parts of an answer have the same thoughts in another form.
            said = [block for block in said if block.get("type") != "thinking"]
        known = {str(one.get(key)) for one in calls for key in ("id", "name")}
        apart = [
            one
            for one in _parts(record, "functionCall")
            if str(one.get("id") or one.get("name")) not in known
        ]
        used = [*calls, *_with_ids(apart, place, len(calls))]
        # A call and its result can be in two records, and the call in both.
        new = [one for one in used if self._inputs.get(one["id"], _NEW) != one.get("args")]
        results = [
            self._result_of(one)
            for one in calls
            if self._has_result(one) and (one in new or one["id"] not in self._answered)
        ]
        self._calls.update((one["id"], str(one.get("name"))) for one in new)
        self._inputs.update((one["id"], one.get("args")) for one in new)
        if blocks := (*thoughts, *said, *map(_call, new)):
            self._append(place, record, Message(role="assistant", content=blocks))
        elif not results:
            self._skip(place, "message without words")
        if results:
            message = Message(role="user", content=tuple(results))
            self._append(place, record, message, ":results")

    def _has_result(self, call: dict[str, Any]) -> bool:
        """Return whether a call was answered. One that still ran when the session ended was not."""
        if call.get("result") or call.get("resultDisplay"):
            return True
        return call.get("status", "success") in _ENDED and str(call.get("id")) not in (
            self._answered_apart
        )

    def _result_of(self, call: dict[str, Any]) -> Block:
        call_id = str(call["id"])
        self._answered.add(call_id)
        result = _result(call_id, call.get("result"), call.get("resultDisplay"))
        is_error = call.get("status") in ("error", "cancelled")
        return {**result, "is_error": True} if is_error else result

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


def _parts(record: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Return the parts of one kind in the content of a record, such as calls of functions."""
    found = [as_object(part.get(kind)) for part in objects_in(record.get("content"))]
    return [part for part in found if part is not None]


def _calls_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all calls and results in a record, which have the ids of calls."""
    parts = (*_parts(record, "functionCall"), *_parts(record, "functionResponse"))
    return [*objects_in(record.get("toolCalls")), *parts]


def _texts(record: dict[str, Any]) -> list[str]:
    """Return the texts of a record, without reasoning and what the program takes out of an answer."""
    texts = [
        _TAKEN_OUT.sub("", str(block.get("text"))).strip()
        for block in as_blocks(_content(record.get("content")) or "")
        if block.get("type") == "text"
    ]
    return [text for text in texts if text]


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
        case {"text": str(text), "thought": True}:
            return thinking_block(text)
        case {"text": str(text)}:
            return text_block(text)
        case {"inlineData": {"data": str(data), "mimeType": str(kind)}} if kind == _PDF:
            source = {"type": "base64", "media_type": kind, "data": data}
            return {"type": "document", "source": source}
        case {"inlineData": {"data": str(data), "mimeType": str(kind)}} if _is_image(kind):
            return image_block(kind, data)
        case _:
            return {"type": "unknown", **(as_object(part) or {})}


def _is_image(kind: str) -> bool:
    return kind.startswith("image/")


def _thought(thought: dict[str, Any]) -> Block:
    parts = (thought.get("subject"), thought.get("description"))
    return thinking_block(joined(part for part in parts if isinstance(part, str)))


def _call(call: dict[str, Any]) -> Block:
    name = text_or_none(call.get("name")) or "unknown"
    return tool_use(str(call["id"]), name, arguments_of(call.get("args")))


def _with_ids(calls: list[dict[str, Any]], place: int, first: int = 0) -> list[dict[str, Any]]:
    """Return the calls of a record, each with an id."""
    made = (f"call_{place}_{number}" if number else f"call_{place}"
            for number in range(first, first + len(calls)))  # fmt: skip
    return [
        {**call, "id": usable_id(call.get("id")) or name}
        for call, name in zip(calls, made, strict=True)
    ]


def _result(call_id: str, given: Any, shown: Any = None) -> Block:
    """Return the result of a call: what the model was given, or else what was shown to the person."""
    parts = as_list(given) or ([given] if given else [])
    texts = list(filter(str.strip, map(_result_text, parts)))
    if not texts and shown:
        texts = [shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)]
    pictures = [block for part in parts for block in _pictures(part)]
    content: Any = "\n".join(texts)
    if pictures:
        content = [*as_blocks(content), *pictures]
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def _answer(call_id: str, answer: dict[str, Any]) -> Block:
    result = _result(call_id, [{"functionResponse": answer}])
    failed = "error" in (as_object(answer.get("response")) or {})
    return {**result, "is_error": True} if failed else result


def _result_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    whole = as_object(part) or {}
    if isinstance(whole.get("text"), str):
        return str(whole["text"])
    answer = as_object(whole.get("functionResponse"))
    if answer is None:
        return "" if whole.keys() & {"inlineData", "fileData"} else _as_text(whole)
    response = as_object(answer.get("response")) or {}
    said = [response[name] for name in ("output", "error") if response.get(name)]
    return "\n".join(map(_as_text, said)) if said or "output" in response else _as_text(response)


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if value else ""


def _pictures(part: Any) -> list[Block]:
    """Return images and documents of a result, which stand next to its text or inside of it."""
    whole = as_object(part) or {}
    inside = objects_in((as_object(whole.get("functionResponse")) or {}).get("parts"))
    blocks = [_part(one) for one in (whole, *inside) if "inlineData" in one]
    return [block for block in blocks if block.get("type") in ("image", "document")]

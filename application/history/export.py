"""Export a conversation as messages or events, and read one long message in parts."""

import re
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias, get_args

from refold.application.api.results import USUAL_CHARACTERS
from refold.application.conversation.addresses import address_of, position_in
from refold.application.conversation.stream_places import read_back
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.projections.fates import Fate
from refold.application.recall.hits import ContextVisibility
from refold.application.recall.recall_query import whole_number
from refold.application.runtime.core import Core
from refold.domain.errors import ConversationGone, InvalidSetting
from refold.domain.events import MessageAppended
from refold.domain.messages import Message
from refold.domain.text_cuts import last_mark
from refold.domain.value import Value

from .moments import At, version_at

LEAST_CHARACTERS, MOST_CHARACTERS = 100, 1_000_000


class TextPart(Value, frozen=True):
    """A part of the text of a message, word for word."""

    thread_id: str
    position: int
    version: int
    """Version of the conversation right after the message was appended."""
    message_id: str
    address: str
    role: str
    at: str
    """Time when the message was written or, if unknown, logged: ISO 8601, UTC."""
    text: str
    start: int
    stop: int
    """First character after this part, which begins at character ``start``."""
    length: int
    """Number of characters of the whole text."""
    next: int | None
    """Value of ``start`` for the next part, or None at the end."""
    fate: Fate
    erased: bool


def read_part(
    core: Core,
    thread_id: str,
    where: str | int,
    start: int = 0,
    max_characters: int = USUAL_CHARACTERS,
) -> TextPart:
    """Return a part of a message from character ``start`` on.

    ``where`` is an address or a position. The part has at most ``max_characters`` characters (100
    to 1,000,000) and ends at a line break if one is near.

    Raises:
        ForeignAddress, InvalidAddress, UnknownMessage: there is no such message in this conversation.
        InvalidSetting: ``start`` or ``max_characters`` is out of range; the error names the limits.
        ConversationGone: the whole conversation was erased.
    """
    most = whole_number("max_characters", max_characters, LEAST_CHARACTERS, MOST_CHARACTERS)
    stored = read_back(core, thread_id, position_in(thread_id, where))
    text = stored.text
    whole_number("start", start, 0, max(0, len(text)))
    stop = _end(text, start, most)
    return TextPart(
        thread_id=thread_id,
        position=stored.position,
        version=stored.version,
        message_id=stored.message_id,
        address=address_of(thread_id, stored.position),
        role=stored.message.role,
        at=stored.at,
        text=text[start:stop],
        start=start,
        stop=stop,
        length=len(text),
        next=stop if stop < len(text) else None,
        fate=ContextVisibility(core.log.load(thread_id)).fate(
            stored.position, erased=stored.erased
        ),
        erased=stored.erased,
    )


def _end(text: str, start: int, most: int) -> int:
    stop = min(len(text), start + most)
    if stop == len(text):
        return stop
    return last_mark(text, ("\n",), start + most * 4 // 5, stop)[1]


ExportFormat: TypeAlias = Literal["jsonl", "anthropic", "events"]
EXPORT_FORMATS: tuple[str, ...] = get_args(ExportFormat)

AT_ONCE = 500
"""Number of events in memory at a time."""


def export(
    core: Core, thread_id: str, format: ExportFormat, at: At | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the conversation as JSON objects, as it is now or as it was at ``at``.

    ``jsonl`` gives one object for each original message, with its position, time and id.
    ``anthropic`` gives a single object with the ``messages``, and a leading system message as
    ``system``. ``events`` gives one object for each event, with its version, time, stored name and
    all of its fields. No format contains compacted or shortened messages; an erased message is
    exported as its marker.

    Raises:
        ConversationGone: it was erased; only its ``events`` can be exported.
        InvalidSetting: there is no such format or version, or the time has no time zone.
    """
    if format not in EXPORT_FORMATS:
        wanted = f"must be one of {', '.join(EXPORT_FORMATS)}, not {format!r}"
        raise InvalidSetting(f"format: {wanted}", setting="format", value=format)
    state = core.log.load(thread_id).state
    last = state.version if at is None else version_at(core, thread_id, at)
    logged = _events(core, thread_id, last)
    if format == "events":
        return map(_as_event, logged)
    if state.erased:
        raise ConversationGone(thread_id)
    if format == "jsonl":
        return (_as_line(item, event) for item, event in _messages(logged))
    return iter([_as_request(event for _, event in _messages(logged))])


def stored_name(event: object) -> str:
    """Return the name of this kind of event in the log."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()


def _events(core: Core, thread_id: str, last: int) -> Iterator[LoggedEvent]:
    for first in range(1, last + 1, AT_ONCE):
        yield from core.log.read(thread_id, first, min(first + AT_ONCE - 1, last))


def _messages(logged: Iterator[LoggedEvent]) -> Iterator[tuple[LoggedEvent, MessageAppended]]:
    for item in logged:
        if isinstance(item.event, MessageAppended):
            yield item, item.event


def _as_event(logged: LoggedEvent) -> dict[str, Any]:
    return {
        "version": logged.version,
        "at": logged.at,
        "name": stored_name(logged.event),
        "fields": logged.event.model_dump(mode="json"),
    }


def _as_line(logged: LoggedEvent, event: MessageAppended) -> dict[str, Any]:
    written = event.written_at.isoformat().replace("+00:00", "Z") if event.written_at else None
    line = {
        "position": event.position,
        "at": written or logged.at,
        "role": event.message.role,
        "content": _content(event.message),
        "message_id": event.message_id,
    }
    known = {
        "model": event.model,
        "stop_reason": event.stop_reason,
        "author": event.message.author,
        "extra": event.message.extra,
        "original": original.model_dump() if (original := event.whole_original) else None,
    }
    return {**line, **{name: value for name, value in known.items() if value is not None}}


def _content(message: Message) -> Any:
    """Return the content as plain JSON data, whose lists can be extended."""
    return message.content if isinstance(message.content, str) else list(message.content)


def _as_request(events: Iterator[MessageAppended]) -> dict[str, Any]:
    messages = [{"role": e.message.role, "content": _content(e.message)} for e in events]
    # The API accepts a system message only before all other messages.
    if messages and messages[0]["role"] == "system":
        return {"system": messages[0]["content"], "messages": messages[1:]}
    return {"messages": messages}

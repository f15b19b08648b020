"""Hand a conversation out as messages or events, and one long message part by part."""

import re
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias, get_args

from refold.application.conversation.addresses import address_of, position_in
from refold.application.conversation.stream_places import read_back
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.projections.fates import Fate
from refold.application.recall.hits import Sight
from refold.application.recall.recall_query import whole_number
from refold.application.runtime.core import Core
from refold.domain.errors import ConversationGone, InvalidSetting
from refold.domain.events import MessageAppended
from refold.domain.text_cuts import last_mark
from refold.domain.value import Value

from .moments import At, version_at

USUAL_CHARACTERS = 8_000
LEAST_CHARACTERS, MOST_CHARACTERS = 100, 1_000_000


class TextPart(Value, frozen=True):
    """A part of what a message says, word for word."""

    thread_id: str
    position: int
    version: int
    """Of the conversation when the message was appended."""
    message_id: str
    address: str
    role: str
    at: str
    """When it was written, or else logged: ISO 8601, UTC."""
    text: str
    start: int
    stop: int
    """Characters ``start`` up to but not including ``stop`` of all that it says."""
    length: int
    """How many there are."""
    next: int | None
    """Ask again with ``start`` here for what follows; None: this is the end."""
    fate: Fate
    erased: bool


def read_part(
    core: Core,
    thread_id: str,
    where: str | int,
    start: int = 0,
    max_characters: int = USUAL_CHARACTERS,
) -> TextPart:
    """A part of the message at an address or a position, from character ``start`` on: at most
    ``max_characters`` long (100 to 1,000,000), and up to the end of a line where one is near.

    Raises:
        ForeignAddress, InvalidAddress, UnknownMessage: there is no such message in this conversation.
        InvalidSetting: ``start`` or ``max_characters`` cannot be; says how long the message is.
        ConversationGone: the conversation was erased as a whole.
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
        fate=Sight(core.log.load(thread_id)).fate(stored.position, erased=stored.erased),
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
"""Events in memory at a time."""


def export(
    core: Core, thread_id: str, format: ExportFormat, at: At | None = None
) -> Iterator[dict[str, Any]]:
    """The conversation as JSON objects, as it is or as it was at ``at``.

    ``jsonl``: one for each original message, with its position, time and id. ``anthropic``: a single
    one with the ``messages``, and a leading system message as ``system``. ``events``: one for each
    event, with its version, time, stored name and all of its fields. Nothing is compacted or shortened
    in any of them; of an erased message only its marker is left.

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
    """The name that events of this kind have in the log."""
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
        "content": event.message.content,
        "message_id": event.message_id,
    }
    known = {
        "model": event.model,
        "stop_reason": event.stop_reason,
        "author": event.message.author,
        "extra": event.message.extra,
    }
    return {**line, **{name: value for name, value in known.items() if value is not None}}


def _as_request(events: Iterator[MessageAppended]) -> dict[str, Any]:
    messages = [{"role": e.message.role, "content": e.message.content} for e in events]
    # The API has no place for a system message but the one before all others.
    if messages and messages[0]["role"] == "system":
        return {"system": messages[0]["content"], "messages": messages[1:]}
    return {"messages": messages}

"""Use case: hand a conversation out, as its messages or as everything that happened to it."""

import re
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias, get_args

from refold.domain.errors import ConversationGone, InvalidSetting
from refold.domain.events import MessageAppended

from .core import Core
from .event_log import LoggedEvent
from .time_travel.moments import At, version_at

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

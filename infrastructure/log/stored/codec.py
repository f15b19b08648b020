"""Names and shapes of stored events: the only place where stored bytes become domain events."""

import json
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json

from refold.domain import events, frames, remembering
from refold.domain.conversation import Conversation
from refold.domain.json_data import is_object
from refold.domain.messages import Message

from .upcasting import UPCASTERS, Json, Upcaster

# These names and shapes are in people's files: add, never rename. A golden file pins each of them.
NAMES: Mapping[str, type[events.Event]] = MappingProxyType(
    {
        "message_appended": events.MessageAppended,
        "compaction_requested": events.CompactionRequested,
        "compaction_performed": events.CompactionPerformed,
        "compaction_failed": events.CompactionFailed,
        "compaction_reverted": events.CompactionReverted,
        "summary_superseded": events.SummarySuperseded,
        "tool_content_offloaded": events.ToolContentOffloaded,
        "messages_condensed": events.MessagesCondensed,
        "user_content_shortened": events.UserContentShortened,
        "message_pinned": events.MessagePinned,
        "message_unpinned": events.MessageUnpinned,
        "notes_flushed": remembering.NotesFlushed,
        "memories_chosen": remembering.MemoriesChosen,
        "conversation_labelled": events.ConversationLabelled,
        "message_erased": events.MessageErased,
        "conversation_erased": events.ConversationErased,
        "conversation_forked": events.ConversationForked,
        "request_frame_changed": frames.RequestFrameChanged,
        "event_lost": events.EventLost,
    }
)
SNAPSHOT = "conversation_snapshot"
SHAPES: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(NAMES, 1),
        "message_appended": 2,
        "compaction_requested": 4,
        "compaction_performed": 4,
        "compaction_failed": 2,
        "notes_flushed": 2,
        "memories_chosen": 2,
        SNAPSHOT: 5,
    }
)

_MESSAGE_DEFAULTS: Json = {
    name: field.default
    for name, field in events.MessageAppended.model_fields.items()
    if not field.is_required()
}
_MESSAGE_APPENDED = "message_appended"
_NAME_OF = {cls: name for name, cls in NAMES.items()}


class CodecError(ValueError):
    """A stored event has a name, shape or fields that this version of refold cannot read."""


class NewerShape(CodecError):
    """A stored event has a name or shape of a newer version of refold."""


def encode(event: events.Event | Conversation) -> tuple[str, int, bytes]:
    """The stored name, shape and payload of an event or a snapshot."""
    name = SNAPSHOT if isinstance(event, Conversation) else _NAME_OF[type(event)]
    # A default may change one day, and old events must keep their meaning: they are stored in full.
    # Those of a message are "nothing" and stay, and messages are what a log is full of.
    brief = name == "message_appended"
    try:
        payload = event.model_dump_json(exclude_defaults=brief).encode()
    except PydanticSerializationError:
        # Lone surrogates have no UTF-8; JSON can escape them.
        payload = json.dumps(event.model_dump(exclude_defaults=brief), default=str).encode()
    return name, SHAPES[name], payload


def decode(
    name: str,
    shape: int,
    payload: bytes,
    *,
    shapes: Mapping[str, int] = SHAPES,
    upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS,
) -> events.Event:
    """The event that a payload holds, brought up to the newest shape.

    Raises:
        NewerShape: the name or shape is not known yet.
        CodecError: the fields do not make an event.
    """
    if name not in NAMES or shape > shapes[name]:
        raise NewerShape(f"event {name!r} in shape {shape} is newer than this version of refold")
    fields = _fields(payload)
    if name == _MESSAGE_APPENDED and shape == shapes[name]:
        return _message_appended(fields)
    while shape < shapes[name]:
        if (name, shape) not in upcasters:
            raise CodecError(f"event {name!r} has no shape {shape}")
        fields = upcasters[name, shape](fields)
        shape += 1
    if name == _MESSAGE_APPENDED:
        return _message_appended(fields)
    try:
        return NAMES[name].model_validate(fields)
    except ValidationError as error:
        raise CodecError(f"event {name!r} cannot be read: {error}") from error


def key_of(name: str, payload: bytes) -> str | None:
    """The idempotency key of a message that was stored with one; nothing else of it is looked at.

    Raises:
        CodecError: the payload is no object.
    """
    if name != _MESSAGE_APPENDED or b'"key"' not in payload:
        return None
    key = _fields(payload).get("key")
    return key if isinstance(key, str) else None


def decode_snapshot(shape: int, payload: bytes) -> Conversation | None:
    """The state that a snapshot holds; None if it is of another shape: then it is not used."""
    if shape != SHAPES[SNAPSHOT]:
        return None
    try:
        return Conversation.model_validate_json(payload)
    except ValidationError:
        return None


def _fields(payload: bytes) -> Json:
    try:
        fields: object = from_json(payload)
    except ValueError:
        fields = _lenient(payload)
    if not is_object(fields):
        raise CodecError("the payload is not a JSON object")
    return fields


def _lenient(payload: bytes) -> object:
    try:
        return json.loads(payload)
    except ValueError as error:
        raise CodecError(f"the payload is not JSON: {error}") from error


def _message_appended(fields: Json) -> events.MessageAppended:
    # Most events are messages, and the digest has shown these bytes to be the ones that a validated
    # event was stored as; validating the content again would double the cost of every load.
    try:
        message = fields["message"]
        content = message["content"]
        content = content if isinstance(content, str) else tuple(content)
        fields["message"] = Message.trusted(
            {
                "role": message["role"],
                "content": content,
                "author": message.get("author"),
                "extra": message.get("extra"),
                "unknown": tuple(message.get("unknown", ())),
            }
        )
        if "written_at" in fields:
            fields["written_at"] = datetime.fromisoformat(fields["written_at"])
        return events.MessageAppended.trusted({**_MESSAGE_DEFAULTS, **fields})
    except (KeyError, TypeError, ValueError) as error:
        raise CodecError(f"event 'message_appended' cannot be read: {error!r}") from error

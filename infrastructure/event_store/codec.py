"""Names and shapes of stored events, upcasters of older shapes, and decoding of stored bytes."""

import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from types import MappingProxyType
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from refold.domain import events
from refold.domain.conversation import Conversation
from refold.domain.late_model import late_classes
from refold.domain.messages import Message
from refold.domain.originals import Original
from refold.domain.value import (
    V,
    build_unvalidated,
    fields_of,
    from_stored,
    is_object,
    plain_fields,
    replace,
    stated_fields,
)

from .plain_shapes import CodecError, NewerShape, Unusual, read_plain

Json = dict[str, Any]
Upcaster = Callable[[Json], Json]
"""A function that converts the fields of an event from shape n to shape n + 1."""

# Policy fields that shape 2 added to compactions, with the values that events of shape 1 were made with.
# They are written out because today's defaults may change, and the meaning of old events must not.
POLICY_DEFAULTS_OF_SHAPE_1: Mapping[str, Any] = MappingProxyType(
    {
        "keep_tokens": 0,
        "keep_turns": 0,
        "whole_turn_share": 0.5,
        "summary_tier": 0.1,
        "condensed_tier": 0.35,
        "whole_tier": 0.55,
        "whole_last": 10,
        "offload_tokens": 1000,
        "enough_freed_tokens": 15000,
        "enough_freed_share": 0.1,
        "condensed_characters": 200,
        "summary_tries": 3,
        "repairs": 1,
        "most_calls": 24,
        "split_share": 0.5,
        "split_slack": 1.2,
        "split_prefix_share": 0.4,
        "split_prefix_least": 0.15,
        "chunk_share": 0.4,
        "chunk_least": 0.15,
        "chunk_large": 0.1,
        "chunk_slack": 1.2,
        "oversized_share": 0.5,
        "rebuild_after": 5,
        "rebuild_over_tokens": 1000,
        "leaf_tokens": 1000,
        "ledger_share": 0.1,
        "ledger_tokens": 6000,
        "failures_kept": 8,
        "failure_characters": 240,
        "breaker_after": 3,
    }
)


def _upcast_policy(fields: Json) -> Json:
    policy = {k: v for k, v in fields["policy"].items() if k != "summary_share"}
    return {**fields, "policy": {**POLICY_DEFAULTS_OF_SHAPE_1, **policy}}


def _upcast_requested(fields: Json) -> Json:
    return {**_upcast_policy(fields), "split_at": None, "rebuilds": False, "owner": None}


def _upcast_performed(fields: Json) -> Json:
    return {
        **_upcast_policy(fields),
        "split_at": None,
        "text_tokens": 0,
        "target_tokens": None,
        "effective": True,
        "generation": 0,
        "ledger": [],
        "ledger_shown": 0,
        "leaf": None,
        "omitted": [],
        "block": None,
        "model_calls": 1,
    }


def _upcast_failed(fields: Json) -> Json:
    return {**fields, "model_calls": 0}


# The same for fields that shape 3 added.
POLICY_DEFAULTS_OF_SHAPE_2: Mapping[str, Any] = MappingProxyType(
    {"archive_over": None, "archive_buffer": 20, "topics_kept": 0, "topics_shown": 0}
)


def _upcast_policy_3(fields: Json) -> Json:
    return {**fields, "policy": {**POLICY_DEFAULTS_OF_SHAPE_2, **fields["policy"]}}


def _upcast_performed_3(fields: Json) -> Json:
    return {**_upcast_policy_3(fields), "topics": [], "topics_shown": 0}


# The same for fields that shape 4 added.
POLICY_DEFAULTS_OF_SHAPE_3: Mapping[str, Any] = MappingProxyType(
    {"rebuild_over_share": 1.5, "first_summary_after": None}
)


def _upcast_policy_4(fields: Json) -> Json:
    return {**fields, "policy": {**POLICY_DEFAULTS_OF_SHAPE_3, **fields["policy"]}}


def _upcast_performed_4(fields: Json) -> Json:
    return {
        **_upcast_policy_4(fields),
        "given_in_part": [],
        "topics_ask": True,
        "ledger": [{**line, "under": [], "cut": 0, "author": None} for line in fields["ledger"]],
    }


# The same for fields that shape 5 added: there was no index.
POLICY_DEFAULTS_OF_SHAPE_4: Mapping[str, Any] = MappingProxyType(
    {"index_share": 0.0, "index_tokens": 0}
)


def _upcast_policy_5(fields: Json) -> Json:
    return {**fields, "policy": {**POLICY_DEFAULTS_OF_SHAPE_4, **fields["policy"]}}


def _upcast_performed_5(fields: Json) -> Json:
    return {
        **_upcast_policy_5(fields),
        "index": [],
        "index_shown": 0,
        "index_left_out": 0,
        "ledger": [{**line, "was": "", "reason": "", "rejected": []} for line in fields["ledger"]],
    }


def _upcast_performed_6(fields: Json) -> Json:
    return {**fields, "earlier": []}


def _unchanged(fields: Json) -> Json:
    return fields


def _upcast_condensed(fields: Json) -> Json:
    return {**fields, "tail": 0}


def _upcast_flushed(fields: Json) -> Json:
    return {**fields, "taken_at": None}


def _upcast_chosen(fields: Json) -> Json:
    own = {"thread_id": None, "kind": "message", "start": 0, "stop": 0}
    memories = [{**memory, **own} for memory in fields["memories"]]
    return {**fields, "memories": memories, "rewritten": []}


UPCASTERS: Mapping[tuple[str, int], Upcaster] = MappingProxyType(
    {
        # Shape 2 may include the author, extra fields and unknown blocks, shape 3 the form of another API.
        ("message_appended", 1): _unchanged,
        ("message_appended", 2): _unchanged,
        ("compaction_requested", 1): _upcast_requested,
        ("compaction_requested", 2): _upcast_policy_3,
        ("compaction_requested", 3): _upcast_policy_4,
        ("compaction_requested", 4): _upcast_policy_5,
        ("compaction_performed", 1): _upcast_performed,
        ("compaction_performed", 2): _upcast_performed_3,
        ("compaction_performed", 3): _upcast_performed_4,
        ("compaction_performed", 4): _upcast_performed_5,
        ("compaction_performed", 5): _upcast_performed_6,
        ("compaction_failed", 1): _upcast_failed,
        ("compaction_reverted", 1): _unchanged,  # Shape 2 may also say that lines were recalled.
        ("messages_condensed", 1): _upcast_condensed,
        ("notes_flushed", 1): _upcast_flushed,
        ("memories_chosen", 1): _upcast_chosen,
    }
)


# Users' files contain these names and shapes: add classes, but never rename one. A golden file pins
# each of them.
NAMES: Mapping[str, type[events.Event]] = MappingProxyType(
    {re.sub(r"\B([A-Z])", r"_\1", cls.__name__).lower(): cls for cls in get_args(events.Event)}
)
"""Stored name of each event: its class name in snake case."""
SNAPSHOT = "conversation_snapshot"
SHAPES: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(NAMES, 1),
        "message_appended": 3,
        "compaction_requested": 5,
        "compaction_performed": 6,
        "compaction_failed": 2,
        "compaction_reverted": 2,
        "messages_condensed": 2,
        "notes_flushed": 2,
        "memories_chosen": 2,
        SNAPSHOT: 7,
    }
)

PACKED: Mapping[str, int] = MappingProxyType({"compaction_performed": 6})
"""Events whose JSON is compressed, and the shape since which it is.

A compaction stores every line that it keeps, and most of its JSON are the same names and words again.
"""
_LEVEL = 4
"""Level of compression. It takes half the time of the usual 6, and stores 7 % more."""
LARGEST = 64 * 1024 * 1024
"""Maximum number of bytes of compressed JSON. It keeps damaged bytes from using all memory."""
MOST_PLAIN = 32
"""Values of a class that are read without its validator, which takes long to build but is faster then."""
MOST_WRITTEN = 4
"""Events of a class that are written without its serializer. Large events take more milliseconds without it."""
_read: Counter[type] = Counter()
_written: Counter[type] = Counter()
MESSAGE_APPENDED = "message_appended"
NAME_OF = {cls: name for name, cls in NAMES.items()}


def prepare() -> None:
    """Prepare digests, the fields of messages and the writer of JSON, whose first use in a process is slow."""
    sha256()
    for cls in (events.MessageAppended, Message):
        fields_of(cls)
    to_json(None)


def encode(event: events.Event | Conversation) -> tuple[str, int, bytes]:
    """Return the stored name, shape and payload of an event or a snapshot."""
    name = SNAPSHOT if isinstance(event, Conversation) else NAME_OF[type(event)]
    # Defaults may change and old events must keep their meaning, so all fields are stored. The
    # defaults of a message mean "nothing" and never change; leaving them out saves space, because a
    # log consists mostly of messages.
    try:
        payload = _json_of(event)
    except PydanticSerializationError:
        # Lone surrogates have no UTF-8 form, but JSON can escape them.
        brief = name == MESSAGE_APPENDED
        payload = json.dumps(event.model_dump(exclude_defaults=brief), default=str).encode()
    return name, SHAPES[name], pack(name, SHAPES[name], payload)


def _json_of(event: events.Event | Conversation) -> bytes:
    """Return the JSON that pydantic writes. The first events of a class are written without its serializer."""
    if isinstance(event, events.MessageAppended):
        return _message_json(event)
    cls = type(event)
    if cls in late_classes and _is_among(MOST_WRITTEN, _written, cls):
        return to_json(plain_fields(event), inf_nan_mode="null")
    return event.model_dump_json().encode()


def _message_json(event: events.MessageAppended) -> bytes:
    """Return the JSON that pydantic would write, in a third of the time: the types are known here."""
    fields = stated_fields(event)
    fields["message"] = stated_fields(event.message)
    if event.original is not None:
        fields["original"] = stated_fields(event.original)
    return to_json(fields, inf_nan_mode="null")


def pack(name: str, shape: int, fields: bytes) -> bytes:
    """Return the payload that stores the JSON of an event."""
    return zlib.compress(fields, _LEVEL) if is_packed(name, shape) else fields


def unpack(name: str, shape: int, payload: bytes) -> bytes:
    """Return the JSON that a payload stores.

    Raises:
        CodecError: the payload is not what ``pack`` returns.
    """
    if not is_packed(name, shape):
        return payload
    reader = zlib.decompressobj()
    try:
        fields = reader.decompress(payload, LARGEST)
    except zlib.error as error:
        raise CodecError(f"the payload cannot be decompressed: {error}") from error
    if not reader.eof or reader.unused_data:
        raise CodecError("the payload is cut off, too large, or has other bytes after it")
    return fields


def is_packed(name: str, shape: int) -> bool:
    """Return whether the JSON of an event of this shape is compressed."""
    return name in PACKED and shape >= PACKED[name]


def check_known(name: str, shape: int, shapes: Mapping[str, int] = SHAPES) -> None:
    """Raise ``NewerShape`` if this version cannot decode events with this name and shape yet."""
    if name not in NAMES or shape > shapes[name]:
        raise NewerShape(f"event {name!r} in shape {shape} is newer than this version of refold")


def decode(
    name: str,
    shape: int,
    payload: bytes,
    *,
    shapes: Mapping[str, int] = SHAPES,
    upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS,
) -> events.Event:
    """Decode a payload into an event of the newest shape.

    Raises:
        NewerShape: the name or shape is not known yet.
        CodecError: the fields are not valid for the event.
    """
    check_known(name, shape, shapes)
    fields = _fields(unpack(name, shape, payload))
    while shape < shapes[name]:
        if (name, shape) not in upcasters:
            raise CodecError(f"event {name!r} has no shape {shape}")
        fields = upcasters[name, shape](fields)
        shape += 1
    if name == MESSAGE_APPENDED:
        return message_appended(fields)
    if event := _few(NAMES[name], fields):
        return event
    try:
        return _in_plain_zone(NAMES[name].model_validate(fields))
    except ValidationError as error:
        raise CodecError(f"event {name!r} cannot be read: {error}") from error


def _in_plain_zone(event: events.Event) -> events.Event:
    """Return the event with the time zone that ``read_plain`` gives: read models compare texts of events."""
    if not isinstance(event, events.CompactionRequested):
        return event
    if (at := event.requested_at).utcoffset() == timedelta():
        return replace(event, requested_at=at.replace(tzinfo=UTC))
    return event


def key_of(name: str, payload: bytes) -> str | None:
    """Return the idempotency key of a stored message, or None. No other field is checked.

    Raises:
        CodecError: the payload is not a JSON object.
    """
    if name != MESSAGE_APPENDED or b'"key"' not in payload:
        return None
    key = _fields(payload).get("key")
    return key if isinstance(key, str) else None


def decode_snapshot(shape: int, payload: bytes) -> Conversation | None:
    """Decode the state in a snapshot. Return None for a snapshot of another shape, which is not used."""
    if shape != SHAPES[SNAPSHOT]:
        return None
    try:
        state = _few(Conversation, _fields(payload)) if Conversation in late_classes else None
        return state or Conversation.model_validate_json(payload)
    except (CodecError, ValidationError):
        return None


def _is_among(first: int, counted: Counter[type], cls: type) -> bool:
    counted[cls] += 1
    return counted[cls] <= first


def _few(cls: type[V], fields: Json) -> V | None:
    """Return one of the first values of a class, or None if its validator exists or is needed."""
    if cls not in late_classes or not _is_among(MOST_PLAIN, _read, cls):
        return None
    try:
        return read_plain(cls, fields)
    except Unusual:
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


def stored_message(fields: Mapping[str, Any]) -> Message:
    """Return the message with these stored fields, which a digest has proved."""
    content, given = fields["content"], fields.get
    return from_stored(
        Message,
        {
            "role": fields["role"],
            "content": content if isinstance(content, str) else tuple(content),
            "author": given("author"),
            "extra": given("extra"),
            "unknown": tuple(given("unknown", ())),
        },
    )


def message_appended(fields: dict[str, Any]) -> events.MessageAppended:
    """Return the event with the stored fields of a message, which are changed.

    Most events are messages. A digest has proved that these are the fields of a validated event, and to
    validate them again would double the cost of every load.

    Raises:
        CodecError: the fields are not those of a message.
    """
    try:
        fields["message"] = stored_message(fields["message"])
        if (original := fields.get("original")) is not None:
            kind, data = original["format"], original["data"]
            fields["original"] = build_unvalidated(Original, format=kind, data=data)
        if "written_at" in fields:
            fields["written_at"] = datetime.fromisoformat(fields["written_at"])
        return from_stored(events.MessageAppended, fields)
    except (KeyError, TypeError, ValueError) as error:
        raise CodecError(f"event 'message_appended' cannot be read: {error!r}") from error

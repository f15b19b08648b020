"""The stored bytes of every event: what was written once is read for ever, and written the same."""

import json
import zlib
from typing import Any

import pytest

from refold.domain.conversation import Conversation
from refold.domain.events import Event
from refold.domain.value import is_list, is_object
from refold.infrastructure.event_store import codec
from refold.infrastructure.event_store.codec import (
    NAMES,
    SHAPES,
    SNAPSHOT,
    decode,
    decode_snapshot,
    encode,
    pack,
    unpack,
)
from refold.infrastructure.event_store.plain_shapes import CodecError, NewerShape
from tests.support.golden_events import EVENTS, SNAPSHOTS
from tests.support.golden_files import FOLDER, golden_json


def described(*examples: Event | Conversation) -> dict[str, Any]:
    """What a golden file holds: name, shape, and of each example its JSON and what that means.

    Compressed bytes differ between versions of zlib, so the JSON in them is what is compared.
    """
    name, shape, _ = encode(examples[0])
    return {
        "topic": name,
        "shape": shape,
        "examples": [
            {"payload": unpack(*encode(e)).decode("utf-8"), "means": meaning(e)} for e in examples
        ],
    }


def meaning(value: Event | Conversation) -> Any:
    """All fields with their values, defaults as well: a changed default is a changed meaning."""
    return json.loads(json.dumps(value.model_dump(), default=lambda at: at.isoformat()))


def golden(name: str, *examples: Event | Conversation) -> dict[str, Any]:
    found: dict[str, Any] = golden_json(
        f"events/{name}.{SHAPES[name]}.json", lambda: described(*examples)
    )
    return found


@pytest.mark.parametrize("name", list(EVENTS))
def test_an_event_is_stored_as_the_golden_bytes(name: str) -> None:
    assert described(*EVENTS[name]) == golden(name, *EVENTS[name])


@pytest.mark.parametrize("name", list(EVENTS))
def test_the_golden_bytes_are_read_as_the_event(name: str) -> None:
    stored = golden(name, *EVENTS[name])
    for example, event in zip(stored["examples"], EVENTS[name], strict=True):
        payload = pack(name, stored["shape"], example["payload"].encode())
        read = decode(stored["topic"], stored["shape"], payload)
        assert read == event
        assert meaning(read) == example["means"]


def test_a_snapshot_is_stored_as_the_golden_bytes_and_read_back() -> None:
    stored = golden(SNAPSHOT, *SNAPSHOTS)
    assert described(*SNAPSHOTS) == stored
    for example, state in zip(stored["examples"], SNAPSHOTS, strict=True):
        assert decode_snapshot(stored["shape"], example["payload"].encode()) == state


SPARSE_FIELDS = {
    "lengths",
    "notes_to",
    "notes_at",
    "notes_versions",
    "memories_tokens",
    "memories_at",
    "erased",
}
"""Fields of snapshots that had their default in the full example before there was a test of it."""
OLDER = [(name, shape) for name in EVENTS for shape in range(1, SHAPES[name])]


@pytest.mark.parametrize(("name", "shape"), OLDER)
def test_the_golden_bytes_of_an_older_shape_keep_their_meaning(name: str, shape: int) -> None:
    stored = json.loads((FOLDER / "events" / f"{name}.{shape}.json").read_text("utf-8"))
    brought_up = golden_json(f"older/{name}.{shape}.json", lambda: _brought_up(name, shape, stored))
    assert _brought_up(name, shape, stored) == brought_up
    for example, means in zip(stored["examples"], brought_up, strict=True):
        assert holds(means, {k: v for k, v in example["means"].items() if k != "policy"})


def holds(newer: Any, older: Any) -> bool:
    """Whether everything that was said is still said, where more may be said beside it."""
    if is_object(older):
        return all(name in newer and holds(newer[name], older[name]) for name in older)
    if is_list(older):
        # A tuple of facts may have more of them at its end.
        return len(newer) >= len(older) and all(map(holds, newer, older))
    return bool(newer == older)


def _brought_up(name: str, shape: int, stored: dict[str, Any]) -> list[Any]:
    payloads = [pack(name, shape, example["payload"].encode()) for example in stored["examples"]]
    return [meaning(decode(name, shape, payload)) for payload in payloads]


def test_every_name_and_shape_has_its_golden_file() -> None:
    files = {path.name for path in (FOLDER / "events").glob("*.json")}
    newest = {f"{n}.{shape}.json" for n, shape in SHAPES.items()}
    expected = newest | {f"{n}.{shape}.json" for n, shape in OLDER}
    assert files == expected
    assert set(EVENTS) == set(NAMES)


def test_full_examples_leave_no_field_at_its_default() -> None:
    for full, _ in EVENTS.values():
        assert full.model_dump(exclude_defaults=True).keys() == type(full).model_fields.keys()


def test_the_full_snapshot_leaves_no_field_at_its_default() -> None:
    full, _ = SNAPSHOTS
    given = full.model_dump(exclude_defaults=True).keys()
    missing = Conversation.model_fields.keys() - given - SPARSE_FIELDS
    assert not missing, f"put events into _HISTORY of tests/support/golden_events.py for {missing}"


def renamed(fields: dict[str, Any]) -> dict[str, Any]:
    """From shape 1, in which a label was called ``name``, to 2."""
    return {"title": fields["name"]}


def shouted(fields: dict[str, Any]) -> dict[str, Any]:
    """From shape 2, in which it was called ``title``, to 3."""
    return {"label": fields["title"].upper()}


LABEL = "conversation_labelled"
PLANTED = {LABEL: 3, "message_appended": 2}
STEPS = {(LABEL, 1): renamed, (LABEL, 2): shouted}


@pytest.mark.parametrize(
    ("shape", "payload"),
    [(1, b'{"name":"parser"}'), (2, b'{"title":"parser"}'), (3, b'{"label":"PARSER"}')],
)
def test_old_shapes_are_brought_up_step_by_step(shape: int, payload: bytes) -> None:
    event = decode(LABEL, shape, payload, shapes=PLANTED, upcasters=STEPS)
    assert meaning(event) == {"label": "PARSER"}


def test_messages_are_brought_up_as_well() -> None:
    def with_size(fields: dict[str, Any]) -> dict[str, Any]:
        return {**fields, "tokens": 7}

    payload = b'{"position":0,"message_id":"m0","message":{"role":"user","content":"hi"}}'
    steps = {("message_appended", 1): with_size}
    event = decode("message_appended", 1, payload, shapes=PLANTED, upcasters=steps)
    assert meaning(event)["tokens"] == 7


@pytest.mark.parametrize(("name", "shape"), [(LABEL, 2), ("thing_of_tomorrow", 1), (SNAPSHOT, 1)])
def test_an_unknown_name_or_a_newer_shape_is_told_as_such(name: str, shape: int) -> None:
    with pytest.raises(NewerShape, match="newer than this version"):
        decode(name, shape, b"{}")


@pytest.mark.parametrize("shape", [0, -1])
def test_a_shape_that_never_was_is_an_error_of_the_codec(shape: int) -> None:
    with pytest.raises(CodecError):
        decode(LABEL, shape, b'{"label":"x"}')


def test_a_stream_of_another_zlib_is_read_as_the_same_event() -> None:
    event = EVENTS["compaction_performed"][1]
    fields = unpack(*encode(event))
    assert decode("compaction_performed", 6, zlib.compress(fields, 0)) == event
    assert decode("compaction_performed", 6, zlib.compress(fields, 9)) == event


@pytest.mark.parametrize(
    ("before", "after", "stop"),
    [(b"", b"", 0), (b"", b"", -1), (b"", b"x", None), (b"x", b"", None)],
)
def test_compressed_bytes_that_were_changed_are_an_error_of_the_codec(
    before: bytes, after: bytes, stop: int | None
) -> None:
    name, shape, payload = encode(EVENTS["compaction_performed"][1])
    with pytest.raises(CodecError):
        decode(name, shape, before + payload[:stop] + after)
    with pytest.raises(CodecError):
        decode(name, shape, zlib.compress(payload))


def test_compressed_bytes_that_claim_too_much_are_an_error_of_the_codec(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, shape, payload = encode(EVENTS["compaction_performed"][1])
    monkeypatch.setattr(codec, "LARGEST", len(unpack(name, shape, payload)) - 1)
    with pytest.raises(CodecError, match="too large"):
        decode(name, shape, payload)


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        (LABEL, b""),
        (LABEL, b"not json"),
        (LABEL, b"[]"),
        (LABEL, b"\xff\xfe"),
        (LABEL, b'{"label":5}'),
        (LABEL, b'{"label":"x","colour":"red"}'),
        ("message_appended", b"{}"),
        ("message_appended", b'{"message":5}'),
        ("message_appended", b'{"message":{"role":"user"}}'),
        ("compaction_failed", b'{"attempt_id":"a"}'),
    ],
)
def test_bytes_that_make_no_event_are_an_error_of_the_codec(name: str, payload: bytes) -> None:
    with pytest.raises(CodecError):
        decode(name, 1, payload)


@pytest.mark.parametrize(
    ("shape", "payload"),
    [
        (SHAPES[SNAPSHOT] + 1, b"{}"),
        (SHAPES[SNAPSHOT] - 1, b"{}"),
        (SHAPES[SNAPSHOT], b"not json"),
        (SHAPES[SNAPSHOT], b'{"version":"x"}'),
        (SHAPES[SNAPSHOT], b'{"no_such_field":"good"}'),
    ],
)
def test_a_snapshot_that_cannot_be_read_is_not_used(shape: int, payload: bytes) -> None:
    assert decode_snapshot(shape, payload) is None

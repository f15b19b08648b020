"""Stored JSON that is read without pydantic: it gives what the validators give, or is left to them."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from refold.domain.conversation import Conversation
from refold.domain.events import Event, MessageAppended
from refold.domain.value import Value, is_list, is_object, plain_fields
from refold.infrastructure.event_store import codec
from refold.infrastructure.event_store.codec import MOST_PLAIN, MOST_WRITTEN, decode, encode
from refold.infrastructure.event_store.plain_shapes import Unusual, read_plain
from tests.support.golden_events import EVENTS, SNAPSHOTS

EXAMPLES: dict[str, Event | Conversation] = {
    f"{name}-{number}": example
    for name, examples in {**EVENTS, "snapshot": SNAPSHOTS}.items()
    if name != "message_appended"
    for number, example in enumerate(examples)
}
ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    10**30,
    1.5,
    "",
    "text",
    "1",
    "2026-01-01",
    [],
    [1],
    {},
    {"a": 1},
)


def validated(cls: type[Value], fields: object) -> Value | None:
    try:
        return cls.model_validate_json(json.dumps(fields))
    except ValidationError:
        return None


def plain(cls: type[Value], fields: object) -> Value | None:
    try:
        return read_plain(cls, fields)
    except Unusual:
        return None


def changes(fields: Any) -> Iterator[Any]:
    """Yield the JSON with each part replaced, left out or added to, one at a time."""
    yield from ODD
    if is_object(fields):
        yield {**fields, "unknown": 1}
        for name, part in fields.items():
            yield {key: value for key, value in fields.items() if key != name}
            for changed in changes(part):
                yield {**fields, name: changed}
    elif is_list(fields):
        yield list(fields[1:])
        yield [*fields, *fields]
        for place, part in enumerate(fields[:2]):
            for changed in changes(part):
                yield [*fields[:place], changed, *fields[place + 1 :]]


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_what_was_stored_is_read_as_the_validator_reads_it(name: str) -> None:
    example = EXAMPLES[name]
    fields = json.loads(example.model_dump_json())
    read = read_plain(type(example), fields)
    assert read == example
    # Fields have the same order, so that an event that is stored again has the same bytes.
    assert read.model_dump_json() == type(example).model_validate(fields).model_dump_json()


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_what_is_odd_is_read_as_the_validator_reads_it_or_left_to_it(name: str) -> None:
    example, read = EXAMPLES[name], 0
    for fields in changes(json.loads(example.model_dump_json())):
        value = plain(type(example), fields)
        if value is not None:
            read += 1
            allowed = validated(type(example), fields)
            assert allowed is not None, fields
            assert value.model_dump_json() == allowed.model_dump_json(), fields
    assert read or len(type(example).model_fields) == 0


@pytest.mark.parametrize("number", range(len(EVENTS["message_appended"])))
def test_a_message_is_stored_as_pydantic_writes_it(number: int) -> None:
    event = EVENTS["message_appended"][number]
    try:
        written = event.model_dump_json(exclude_defaults=True)
    except PydanticSerializationError:  # Lone surrogates have no UTF-8 form.
        written = json.dumps(event.model_dump(exclude_defaults=True), default=str)
    assert encode(event) == ("message_appended", 3, written.encode())


def test_numbers_and_characters_of_a_message_are_stored_as_pydantic_writes_them() -> None:
    odd: list[Any] = [
        '\u2028 \x00\x1f"\\/é😀',
        1.0,
        1e30,
        10**25,
        1e-7,
        float("inf"),
        None,
        [True, {}],
    ]
    event = MessageAppended.model_validate(
        {
            "position": 0,
            "message_id": "m",
            "message": {"role": "user", "content": [{"type": "text", "text": "a", "odd": odd}]},
            "tokens": 1,
            "original": {"format": "f", "data": odd},
        }
    )
    assert encode(event)[2] == event.model_dump_json(exclude_defaults=True).encode()


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_the_first_events_are_stored_as_pydantic_writes_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = EXAMPLES[name]
    usual = encode(example)
    monkeypatch.setattr(codec, "late_classes", {type(example)})
    monkeypatch.setattr(codec, "_written", Counter[type]())
    written: list[object] = []

    def counted(value: Value) -> dict[str, Any]:
        written.append(value)
        return plain_fields(value)

    monkeypatch.setattr(codec, "plain_fields", counted)
    assert [encode(example) for _ in range(MOST_WRITTEN + 2)] == [usual] * (MOST_WRITTEN + 2)
    assert len(written) == MOST_WRITTEN


def test_fields_are_those_of_pydantic() -> None:
    for example in EXAMPLES.values():
        assert json.dumps(plain_fields(example), default=str) == json.dumps(
            example.model_dump(), default=str
        )


def test_after_the_first_ones_events_are_read_by_the_validator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    event = EVENTS["compaction_failed"][0]
    read: list[object] = []

    def counted(cls: type[Value], fields: object) -> Value:
        read.append(fields)
        return read_plain(cls, fields)

    monkeypatch.setattr(codec, "read_plain", counted)
    monkeypatch.setattr(codec, "late_classes", {type(event)})
    monkeypatch.setattr(codec, "_read", Counter[type]())
    for _ in range(MOST_PLAIN + 3):
        assert decode(*encode(event)) == event
    assert len(read) == MOST_PLAIN


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_the_validator_gives_a_value_with_the_same_text(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read models know the last event that they contain by its text."""
    if (example := EXAMPLES[name]) in SNAPSHOTS:
        return
    stored = encode(example)
    monkeypatch.setattr(codec, "late_classes", {type(example)})
    monkeypatch.setattr(codec, "_read", Counter[type]())
    first = repr(decode(*stored))
    monkeypatch.setattr(codec, "late_classes", set[type]())
    assert repr(decode(*stored)) == first


def test_a_validator_that_exists_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    event = EVENTS["compaction_failed"][0]
    assert type(event).model_validate(event.model_dump()) == event
    monkeypatch.delattr(codec, "read_plain")
    assert decode(*encode(event)) == event

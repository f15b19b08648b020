"""The stored JSON of a message is the one that pydantic writes for its event."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.domain.events import MessageAppended
from refold.domain.messages import Message
from refold.domain.originals import Original
from refold.infrastructure.event_store.codec import decode, encode
from refold.infrastructure.event_store.plain_shapes import CodecError

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
BLOCKS = st.dictionaries(TEXTS, JSON, max_size=4)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant", "system"]),
    content=TEXTS | st.lists(BLOCKS, max_size=3).map(tuple),
    author=st.sampled_from([None, "person", "program", "tool"]),
    extra=st.none() | BLOCKS,
    unknown=st.lists(TEXTS, max_size=2).map(tuple),
)
EVENTS = st.builds(
    MessageAppended,
    position=st.integers(0, 2**40),
    message_id=TEXTS,
    message=MESSAGES,
    tokens=st.integers(0, 2**40),
    thinking_tokens=st.integers(0, 3),
    key=st.none() | TEXTS,
    written_at=st.none()
    | st.datetimes(datetime(1, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC)),
    model=st.none() | TEXTS,
    stop_reason=st.none() | TEXTS,
    stale_thinking=st.booleans(),
    owner=st.none() | TEXTS,
    conversation_owner=st.none() | TEXTS,
    original=st.none() | st.builds(Original, format=TEXTS, data=JSON),
)


@given(EVENTS)
def test_a_message_is_stored_as_pydantic_writes_it(event: MessageAppended) -> None:
    name, shape, payload = encode(event)
    assert payload == event.model_dump_json(exclude_defaults=True).encode()
    assert decode(name, shape, payload) == event


@given(EVENTS)
def test_a_lone_surrogate_is_escaped(event: MessageAppended) -> None:
    odd = event.model_copy(update={"message_id": "\ud800"})
    name, shape, payload = encode(odd)
    assert b"\\ud800" in payload
    assert decode(name, shape, payload) == odd


@pytest.mark.parametrize("missing", ["position", "message_id", "message", "tokens"])
def test_a_message_without_a_field_cannot_be_read(missing: str) -> None:
    message = Message(role="user", content="hi")
    whole = MessageAppended(position=0, message_id="m", message=message, tokens=3)
    name, shape, payload = encode(whole)
    fields = {key: value for key, value in json.loads(payload).items() if key != missing}
    with pytest.raises(CodecError, match=missing):
        decode(name, shape, json.dumps(fields).encode())

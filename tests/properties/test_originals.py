"""The foreign form of a message comes back exactly, whatever it has in common with its content."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refold
from refold.domain.originals import Original
from tests.support.builders import text, tool_use

TEXTS = st.one_of(
    st.sampled_from(
        [
            "a text of more than twenty characters",
            "另一段超过二十个字符的文字，用来检验引用是否正确无误",
            "short",
            "$ref",
        ]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
)
NAMES = st.one_of(st.sampled_from(["$ref", "$json", "$plain", "style", "text"]), TEXTS)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS).filter(
        lambda one: one not in (float("inf"), float("-inf"))
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=12,
)


@st.composite
def messages(draw: st.DrawFn) -> tuple[Any, Any]:
    """A content, and a form that shares values of it, at times as JSON in a text."""
    inputs = draw(st.lists(st.dictionaries(NAMES, JSON, max_size=3), max_size=2))
    said = draw(st.lists(TEXTS, max_size=2))
    blocks = [*map(text, said), *(tool_use(f"c{n}", **{"in": one}) for n, one in enumerate(inputs))]
    content = draw(st.one_of(st.just(blocks), TEXTS))
    written = [json.dumps({"in": one}, separators=(",", ":")) for one in inputs]
    written += [json.dumps({"in": one}, ensure_ascii=False) for one in inputs]
    shared = st.sampled_from([content, *blocks, *inputs, *said, *written])
    form = draw(
        st.recursive(st.one_of(shared, JSON), lambda one: st.dictionaries(NAMES, one, max_size=4))
    )
    return content, form


@given(messages())
def test_what_was_shrunk_comes_back_exactly(given: tuple[Any, Any]) -> None:
    content, form = given
    shrunk = Original(format="f", data=form).shrink(content)
    stored = json.loads(json.dumps(shrunk.data))
    back = Original(format="f", data=stored).restore(content)
    assert json.dumps(back.data) == json.dumps(form)


@given(messages())
def test_a_log_gives_the_form_back_and_no_other_message_has_one(given: tuple[Any, Any]) -> None:
    _, form = given
    with refold.open(":memory:", telemetry=False) as memory:
        conversation = memory.conversation("t")
        conversation.append(
            [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "content": [{"type": "text", "text": "a text of more than twenty characters"}],
                    "original": {"format": "f", "data": form},
                },
            ]
        )
        first, second = conversation.messages()
        assert first.original is None
        assert second.original is not None
        assert json.dumps(second.original.data) == json.dumps(form)


@pytest.mark.parametrize("shares", [True, False])
def test_only_what_the_message_does_not_have_is_stored(shares: bool) -> None:
    said = "the answer, which is long " * 20
    form = Original(format="f", data={"id": "msg_1", "content": said})
    shrunk = form.shrink([text(said)] if shares else [text("other")])
    assert (len(json.dumps(shrunk.data)) < 80) == shares

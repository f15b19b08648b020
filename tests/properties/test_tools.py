"""Whatever a model sends, a tool answers; whatever a record says, it stays quoted, and at home."""

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import refold
from refold.application.agent_tools.tool_names import (
    EDITS,
    EXPAND_SUMMARY,
    QUERY_HISTORY,
    READ_OFFLOADED,
    RECALL_MEMORY,
)
from refold.application.agent_tools.tool_scope import EditMode
from refold.application.api.memory import Memory
from refold.domain.value import is_object
from tests.support.effort import one_in
from tests.support.hostile_texts import ALL
from tests.support.tool_talks import HOSTILE, allowed_by, filled, unquoted

FOREIGN = "Geheimnis4711"
NAMES = (RECALL_MEMORY, QUERY_HISTORY, EXPAND_SUMMARY, READ_OFFLOADED)

texts = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        (
            ALL,
            HOSTILE,
            FOREIGN,
            "port",
            "refold://foreign/0",
            "refold://t/3",
            "7",
            "widget_3",
            "",
            " ",
        )
    ),
)
addresses = texts.filter(bool) | st.sampled_from(("refold://foreign/0", "refold://t/3", "5"))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)
arguments = st.sampled_from(
    (
        "query",
        "limit",
        "roles",
        "tools",
        "since",
        "start",
        "stop",
        "ids",
        "text",
        "address",
        "thread",
    )
)
nearly = st.dictionaries(arguments, anything | st.integers(0, 60), max_size=5)
fitting: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    RECALL_MEMORY: st.fixed_dictionaries(
        {"query": texts.filter(bool)},
        optional={
            "limit": st.integers(1, 20),
            "roles": st.lists(st.sampled_from(("user", "assistant", "tool")), max_size=2),
            "tools": st.lists(st.sampled_from(("bash", "x")), max_size=2),
        },
    ),
    QUERY_HISTORY: st.fixed_dictionaries(
        {},
        optional={
            "start": st.integers(0, 60),
            "stop": st.integers(0, 60),
            "text": texts,
            "ids": st.lists(addresses, max_size=2),
            "limit": st.integers(1, 50),
        },
    ),
    EXPAND_SUMMARY: st.fixed_dictionaries({}, optional={"start": st.integers(0, 60)}),
    READ_OFFLOADED: st.fixed_dictionaries(
        {"address": addresses}, optional={"start": st.integers(0, 2_000)}
    ),
}


@cache
def memory() -> Memory:
    """A log with two conversations, one of them out of reach; lives as long as the tests."""
    opened = refold.open(":memory:", window=8_000)
    filled(opened, "t", 15)
    foreign = opened.conversation("foreign")
    for n in range(6):
        foreign.append(
            {"role": "user", "content": f"{FOREIGN} {n}: the port of widget_{n} is {n}."}
        )
        foreign.append({"role": "assistant", "content": f"{FOREIGN} noted."})
    foreign.compact(force=True)
    return opened


def count(text: str) -> int:
    return memory()._core.counter.count_text(text)  # pyright: ignore[reportPrivateUsage]


def asks_for_something(name: str, given_: Any) -> bool:
    """What no schema can say at its top level, where models' APIs take no alternatives."""
    if name != RECALL_MEMORY:
        return True
    return bool(given_.get("query") or given_.get("topic", "").strip())


def without_nulls(given_: Any) -> Any:
    """The arguments that are not null: null stands for what is left out."""
    if not is_object(given_):
        return given_
    return {key: value for key, value in given_.items() if value is not None}


@given(st.sampled_from(NAMES) | texts, anything | nearly)
def test_no_input_of_any_shape_breaks_a_tool(name: str, given_: object) -> None:
    tools = memory().conversation("t").tools()
    answer = tools.call(name, given_)
    assert answer.text
    assert "Traceback" not in answer.text
    assert count(answer.text) <= 4_000
    if name in tools:
        told = without_nulls(given_)
        fine = allowed_by(tools[name].input_schema, told) and asks_for_something(name, told)
        wrong = "its arguments are wrong" in answer.text.partition("\n")[0] and answer.is_error
        assert fine is not wrong, answer.text


@given(
    st.sampled_from(EDITS),
    st.sampled_from(("propose", "allow")),
    anything
    | st.dictionaries(
        st.sampled_from(("text", "kind", "message", "target")),
        texts | st.sampled_from(("fact", "refold://foreign/0", "refold://edited/0", "1")),
        max_size=2,
    ),
)
def test_no_input_breaks_a_tool_that_edits_or_reaches_another_conversation(
    name: str, edits: EditMode, given_: object
) -> None:
    conversation, foreign = memory().conversation("edited"), memory().conversation("foreign")
    if not conversation.version or conversation.messages()[-1].erased:
        conversation.append({"role": "user", "content": "The port of widget_3 is 5403."})
    before, known = foreign.version, conversation.version
    answer = conversation.tools(edits=edits).call(name, given_)
    assert answer.text
    assert "Traceback" not in answer.text
    assert foreign.version == before
    assert not answer.is_error or conversation.version == known, "a refused call was stored"
    for proposal in conversation.proposals():
        assert proposal.text.isprintable() or name == "pin"
        conversation.refuse(proposal.edit_id)


@given(st.data())
def test_a_call_that_fits_the_schema_is_answered_within_its_room_and_from_home(
    data: st.DataObject,
) -> None:
    name = data.draw(st.sampled_from(NAMES))
    called = data.draw(fitting[name])
    tools = memory().conversation("t").tools()
    answer = tools.call(name, called)
    assert count(answer.text) <= 4_000
    said = answer.text.replace(json.dumps(called, ensure_ascii=False), "")
    if FOREIGN not in json.dumps(called):
        assert FOREIGN not in said, "a text of another conversation"


@given(
    st.lists(
        st.text(max_size=60) | st.sampled_from((HOSTILE, ALL, "```", "`````\n")),
        min_size=1,
        max_size=4,
    )
)
@one_in(3)
def test_what_a_record_says_is_never_outside_of_its_fence(parts: list[str]) -> None:
    said = "\n".join(f"≪{n}≫{part}≪{n}≫" for n, part in enumerate(parts))
    with tempfile.TemporaryDirectory() as folder, refold.open(Path(folder) / "a.db") as opened:
        conversation = opened.conversation("t")
        conversation.append({"role": "user", "content": f"zebra {said}"})
        conversation.append({"role": "assistant", "content": f"{said} zebra"})
        tools = opened.tools("t")
        for answer in (
            tools[RECALL_MEMORY](query="zebra"),
            tools[QUERY_HISTORY](),
            tools[READ_OFFLOADED](address="0"),
        ):
            assert "≪0≫" in answer
            assert "≪" not in unquoted(answer)
            assert "≫" not in unquoted(answer)

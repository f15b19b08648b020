"""Tool definitions that a program passes with every request: checked once, and never shared with the caller."""

import copy
import json
from collections.abc import Iterator
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refold
from refold.application.agent_tools import definitions
from refold.application.agent_tools.definitions import definitions_of
from refold.application.rendering.kept_tools import KeptTools, keep_tools
from refold.domain.errors import InvalidMessage
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}
LOOK: dict[str, Any] = {"name": "look", "description": "Looks.", "input_schema": SCHEMA}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@pytest.fixture
def conversation(tmp_path: Path) -> Iterator[refold.ConversationMemory]:
    with refold.open(tmp_path / "a.db", scrub_megabytes=0) as memory:
        made = memory.conversation("t")
        made.append({"role": "user", "content": "Look at it."})
        yield made


def test_equal_definitions_are_checked_and_counted_once(
    conversation: refold.ConversationMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = list[str]()
    check, count = definitions.check_tool, EstimatingTokenCounter.count_tools

    def checked(*given: Any) -> None:
        work.append("checked")
        check(*given)

    def counted(counter: EstimatingTokenCounter, tools: Any) -> int:
        work.append("counted")
        return count(counter, tools)

    monkeypatch.setattr(definitions, "check_tool", checked)
    monkeypatch.setattr(EstimatingTokenCounter, "count_tools", counted)
    name = "looks_once"  # Other tests use other tools.
    for _ in range(5):
        conversation.context(tools=[{**copy.deepcopy(LOOK), "name": name}])
    assert work == ["checked", "counted"]
    conversation.context(tools=[{**copy.deepcopy(LOOK), "name": "looks_again"}])
    assert work == ["checked", "counted"] * 2


def test_what_the_caller_changes_afterwards_is_in_the_next_request_alone(
    conversation: refold.ConversationMemory,
) -> None:
    tools = [copy.deepcopy(LOOK)]
    first = conversation.context(tools=tools)
    tools[0]["input_schema"]["properties"]["depth"] = {"type": "integer"}
    second = conversation.context(tools=tools)
    assert first.tools == [LOOK]
    assert second.tools == tools
    assert second.tokens > first.tokens


def test_a_returned_definition_belongs_to_the_caller(
    conversation: refold.ConversationMemory,
) -> None:
    returned = conversation.context(tools=[LOOK])
    returned.tools[0]["input_schema"]["properties"].clear()
    returned.tools.clear()
    assert conversation.context(tools=[LOOK]).tools == [LOOK]
    assert LOOK["input_schema"] == SCHEMA


@given(JSON, JSON)
def test_only_equal_json_is_taken_for_the_same(one: Any, other: Any) -> None:
    kept = [
        definitions_of([{**LOOK, "input_schema": {**SCHEMA, "default": v}}]) for v in (one, other)
    ]
    same = json.dumps(one) == json.dumps(other)
    assert (kept[0] is kept[1]) is same


@given(JSON)
def test_copies_are_equal_and_apart(value: Any) -> None:
    tools = [{**LOOK, "input_schema": {**SCHEMA, "default": value}}]
    kept = KeptTools.of(tools)
    first, second = keep_tools(kept).copies(), keep_tools(tools).copies()
    assert first == second == [*kept]
    assert json.dumps(first[0]["name"]) == '"look"'
    first[0]["input_schema"].clear()
    assert kept.copies() == second


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({1: "x"}, ".default"),
        ([{2: "x"}], ".default[0]"),
        (float("nan"), ".default"),
        (object(), ".default"),
        ({1, 2}, ".default"),
        (b"x", ".default"),
    ],
)
def test_what_json_cannot_represent_is_refused_with_its_place(value: Any, place: str) -> None:
    for _ in range(2):
        with pytest.raises(InvalidMessage) as caught:
            definitions_of([{**LOOK, "input_schema": {**SCHEMA, "default": value}}])
        assert caught.value.field == f"tools[0].input_schema{place}"


def test_mappings_and_tuples_become_plain_json() -> None:
    schema = MappingProxyType({**SCHEMA, "required": ("path",)})
    [made] = definitions_of([MappingProxyType({**LOOK, "input_schema": schema})])
    assert made == {**LOOK, "input_schema": {**SCHEMA, "required": ["path"]}}


class Text(str):
    __slots__ = ()


class Number(float):
    __slots__ = ()


class Colour(str, Enum):  # noqa: UP042 - Programs have both kinds.
    RED = "red"


class Size(StrEnum):
    LARGE = "large"


class Level(IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Text("words"), "words"),
        (Text("häuser \ud83d\ude00"), "häuser \U0001f600"),
        (Colour.RED, "red"),
        (Size.LARGE, "large"),
        (Level.HIGH, 3),
        (Number(1.5), 1.5),
        ({Text("key"): [Colour.RED]}, {"key": ["red"]}),
    ],
)
def test_special_kinds_of_texts_and_numbers_become_plain_ones(
    conversation: refold.ConversationMemory, value: Any, plain: Any
) -> None:
    tools = [{**LOOK, "name": Text("look"), "input_schema": {**SCHEMA, "default": value}}]
    wanted = [{**LOOK, "input_schema": {**SCHEMA, "default": plain}}]
    for _ in range(2):
        made = conversation.context(tools=tools).tools
        assert made == wanted
        assert repr(made) == repr(wanted)


@pytest.mark.parametrize(("kind", "plain"), [("float64", 1.5), ("str_", "ab")])
def test_numbers_and_texts_of_numpy_are_not_mistaken_for_their_bytes(kind: str, plain: Any) -> None:
    def define(value: Any) -> KeptTools:
        return keep_tools(definitions_of([{**LOOK, "input_schema": {**SCHEMA, "default": value}}]))

    numpy = pytest.importorskip("numpy")
    given = getattr(numpy, kind)(plain)
    assert repr(define(given).copies()) == repr(define(plain).copies())
    raw = given.tobytes()
    for other in (raw, bytearray(raw), numpy.frombuffer(raw, numpy.int64)[0]):
        with pytest.raises(InvalidMessage):
            define(other)


def test_many_definitions_do_not_fill_the_memory() -> None:
    for number in range(200):
        definitions_of([{**LOOK, "name": f"look_{number}"}])
    assert len(definitions._kept) <= 32  # pyright: ignore[reportPrivateUsage]

"""What may come in as a message, and the field that is named when it may not."""

import math
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import BaseModel

from refold.application.conversation.parsing import (
    DEEPEST,
    LONGEST_THREAD_ID,
    read_author,
    read_messages,
    read_thread_id,
)
from refold.domain.errors import InvalidMessage, InvalidThreadId
from refold.domain.messages import Message
from refold.domain.value import replace
from tests.support.builders import assistant, calls, results, text, tool_result, tool_use, user

Fields = dict[str, Any]


def said(content: object, role: str = "user") -> Fields:
    return {"role": role, "content": content}


def block(role: str = "user", **fields: Any) -> Fields:
    return said([fields], role)


def nested(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


def called_with(value: object) -> Fields:
    return block("assistant", type="tool_use", id="a", name="n", input={"v": value})


CONTENT = "message.content"
INPUT = f"{CONTENT}[0].input.v"
LOOP: list[Any] = []
LOOP.append(LOOP)

WRONG: list[tuple[object, str]] = [
    ("hello", "message"),
    (None, "message"),
    (5, "message"),
    (b"hello", "message"),
    ({1, 2}, "message"),
    (Ellipsis, "message"),
    ({}, "message.role"),
    ({"content": "x"}, "message.role"),
    (said("x", "tool"), "message.role"),
    ({"role": ["user"], "content": "x"}, "message.role"),
    ({"role": "user"}, CONTENT),
    (said(""), CONTENT),
    (said("", "system"), CONTENT),
    (said([]), CONTENT),
    (said(None), CONTENT),
    (said(5), CONTENT),
    (said({"type": "text", "text": "x"}), CONTENT),
    (said(b"x"), CONTENT),
    (said({1}), CONTENT),
    (said(["x"]), f"{CONTENT}[0]"),
    (said([text("x"), None]), f"{CONTENT}[1]"),
    (said([text("x"), {"text": "y"}]), f"{CONTENT}[1].type"),
    (block(type=""), f"{CONTENT}[0].type"),
    (block(type=5), f"{CONTENT}[0].type"),
    (block(type="text"), f"{CONTENT}[0].text"),
    (block(type="text", text=5), f"{CONTENT}[0].text"),
    (block("assistant", type="thinking"), f"{CONTENT}[0].thinking"),
    (block("assistant", type="tool_use", name="n", input={}), f"{CONTENT}[0].id"),
    (block("assistant", type="tool_use", id="", name="n", input={}), f"{CONTENT}[0].id"),
    (block("assistant", type="tool_use", id="a", input={}), f"{CONTENT}[0].name"),
    (block("assistant", type="tool_use", id="a", name="n"), f"{CONTENT}[0].input"),
    (block("assistant", type="tool_use", id="a", name="n", input="{}"), f"{CONTENT}[0].input"),
    (block(type="tool_result", content="x"), f"{CONTENT}[0].tool_use_id"),
    (block(type="tool_result", tool_use_id="a", content=5), f"{CONTENT}[0].content"),
    (block(**tool_use("a")), f"{CONTENT}[0].type"),
    (block(type="thinking", thinking="x"), f"{CONTENT}[0].type"),
    (block(type="redacted_thinking", data="x"), f"{CONTENT}[0].type"),
    (block("assistant", **tool_result("a")), f"{CONTENT}[0].type"),
    (block("system", **tool_result("a")), f"{CONTENT}[0].type"),
    (called_with(math.nan), INPUT),
    (called_with(math.inf), INPUT),
    (called_with([1.0, -math.inf]), f"{INPUT}[1]"),
    (called_with(b"x"), INPUT),
    (called_with({"w": {1}}), f"{INPUT}.w"),
    (called_with(datetime(2026, 1, 1)), INPUT),
    (called_with(Decimal(1)), INPUT),
    (called_with({5: "x"}), INPUT),
]


@pytest.mark.parametrize(("given", "field"), WRONG, ids=lambda v: repr(v)[:60])
def test_what_is_wrong_is_named_by_its_path(given: object, field: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        read_messages(given)
    assert caught.value.field == field
    assert str(caught.value) == f"{field}: {caught.value.problem}"
    assert isinstance(caught.value, ValueError)


def test_of_several_messages_the_wrong_one_is_named() -> None:
    with pytest.raises(InvalidMessage) as caught:
        read_messages([said("x"), said([text("x"), text("")]), block(type="text", text=None)])
    assert caught.value.field == "messages[2].content[0].text"


@pytest.mark.parametrize("bad", [nested(DEEPEST + 1), LOOP])
def test_nesting_without_end_is_refused(bad: object) -> None:
    with pytest.raises(InvalidMessage, match=f"deeper than {DEEPEST} levels"):
        read_messages(called_with(bad))


def test_deep_but_finite_data_is_taken() -> None:
    [taken] = read_messages(called_with(nested(DEEPEST - 10)))
    assert taken.message.blocks()[0]["input"] == {"v": nested(DEEPEST - 10)}


@pytest.mark.parametrize("blank", ["", " ", "\n\t", None, 5, b"t", ["t"]])
def test_a_thread_id_is_required_and_the_error_says_how_to_pass_one(blank: object) -> None:
    with pytest.raises(ValueError, match=r'memory\.conversation\("thread-42"\)') as caught:
        read_thread_id(blank)
    assert isinstance(caught.value, InvalidThreadId)


@pytest.mark.parametrize("bad", ["a\nb", "a\0", "\ud800", "x" * (LONGEST_THREAD_ID + 1)])
def test_an_unusable_thread_id_is_refused(bad: str) -> None:
    with pytest.raises(InvalidThreadId):
        read_thread_id(bad)


@pytest.mark.parametrize("good", ["t", "对话 1", "a/b:c", " x ", "x" * LONGEST_THREAD_ID])
def test_a_thread_id_is_taken_as_it_is(good: str) -> None:
    assert read_thread_id(good) == good


def read(given: object) -> Message:
    [taken] = read_messages(given)
    return taken.message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (said("hello"), user("hello")),
        (said("  "), user("  ")),
        (said([text("hello")]), user(text("hello"))),
        (said((text("hello"),)), user(text("hello"))),
        (MappingProxyType(said("hello")), user("hello")),
        (user("hello"), user("hello")),
        (calls("a", "b"), calls("a", "b")),
        (said("", "assistant"), assistant("")),
        (said([], "assistant"), assistant()),
        (block(**tool_result("a", None)), user(tool_result("a", None))),
        (block(type="tool_result", tool_use_id="a"), user({"type": "tool_result", "tool_use_id": "a"})),
        (block(type="new_in_2030", data=[1, None, True, 1.5]),
         replace(user({"type": "new_in_2030", "data": [1, None, True, 1.5]}), unknown=("new_in_2030",))),
        (block(type="text", text="x", cache_control={"type": "ephemeral"}),
         user({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}})),
        (said("\ud83d"), user("\ud83d")),
    ],
    ids=lambda v: repr(v)[:60],
)  # fmt: skip
def test_a_message_is_taken_as_it_came(given: object, message: Message) -> None:
    assert read(given) == message


def test_a_tuple_inside_becomes_a_list_as_in_json() -> None:
    assert read(called_with((1, (2,)))).blocks()[0]["input"] == {"v": [1, [2]]}


def test_what_was_given_can_change_later_without_harm() -> None:
    given = said([tool_result("a", [text("x")])])
    message = read(given)
    given["content"][0]["content"][0]["text"] = "changed"
    assert message == user(tool_result("a", [text("x")]))


def test_several_messages_are_read_in_order() -> None:
    both = [calls("a"), results("a")]
    assert [taken.message for taken in read_messages(both)] == both
    assert read_messages([]) == []
    assert [taken.message for taken in read_messages(tuple(both))] == both


class SdkText(BaseModel):
    """A block as the SDK gives it: fields that the server did not send are unset."""

    type: str = "text"
    text: str
    citations: list[str] | None = None


class SdkToolUse(BaseModel):
    type: str = "tool_use"
    id: str
    name: str
    input: dict[str, Any]


class SdkMessage(BaseModel):
    id: str
    role: str = "assistant"
    content: list[SdkText | SdkToolUse]
    model: str
    stop_reason: str | None = None
    usage: dict[str, int] = {}


ANSWER = SdkMessage(
    id="msg_1",
    role="assistant",
    content=[
        SdkText(type="text", text="hi"),
        SdkToolUse(type="tool_use", id="a", name="bash", input={"cmd": "ls"}),
    ],
    model="claude-x",
    stop_reason="tool_use",
)


def test_an_object_of_the_sdk_is_read_with_its_origin_and_without_unset_fields() -> None:
    [taken] = read_messages(ANSWER)
    assert taken.message == assistant(text("hi"), tool_use("a", cmd="ls"))
    assert taken[1:4] == ("msg_1", "claude-x", "tool_use")


def test_objects_of_the_sdk_inside_a_content_list_are_read() -> None:
    assert read(said(ANSWER.content, "assistant")) == assistant(text("hi"), tool_use("a", cmd="ls"))


def test_objects_of_the_sdk_deep_inside_are_read() -> None:
    inner = said([tool_result("a", [SdkText(type="text", text="found")])])
    assert read(inner) == user(tool_result("a", [text("found")]))


class DumpsBytes:
    """Not of the SDK, but with a ``model_dump`` that gives what JSON cannot hold."""

    def model_dump(self, **options: object) -> Mapping[str, object]:
        del options
        return {"type": "text", "text": b"x"}


def test_what_an_object_dumps_is_checked_as_well() -> None:
    with pytest.raises(InvalidMessage) as caught:
        read_messages(said([DumpsBytes()]))
    assert caught.value.field == "message.content[0].text"


def test_two_halves_of_a_character_become_it_because_json_cannot_tell_them_apart() -> None:
    pair = "\ud83d\udc4d"
    assert read(said(pair)) == user("👍")
    assert read(called_with({pair: [pair, "\udc4d\ud83d"]})).blocks()[0]["input"] == {
        "v": {"👍": ["👍", "\udc4d\ud83d"]}
    }


def test_the_author_is_that_of_what_the_user_role_says() -> None:
    given = [
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "content": [tool_use("a")]},
        {"role": "user", "content": [tool_result("a")]},
        {"role": "user", "content": "A skill.", "author": "program"},
        {"role": "user", "content": "From elsewhere.", "author": {"name": "Ann"}},
    ]
    taken = [item.message.author for item in read_messages(given, author="person")]
    assert taken == ["person", None, None, "program", "person"]
    assert [item.message.author for item in read_messages(given)] == [None] * 3 + ["program", None]


@pytest.mark.parametrize("author", ["user", "", 5, ["person"]])
def test_an_author_that_is_not_known_is_refused(author: object) -> None:
    with pytest.raises(InvalidMessage, match="author: must be one of person, program, tool"):
        read_author(author)

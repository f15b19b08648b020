"""Threads of LangGraph as JSON: messages keep their ids, and the form in which LangChain has them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.transcript_files import contents, keys, only, read_json, read_text, result, text


def said(kind: str, number: int, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": kind, "id": f"m{number}", "content": content, "additional_kwargs": {}, **more}


def call(call_id: str, args: Any) -> dict[str, Any]:
    return {"name": "look", "args": args, "id": call_id, "type": "tool_call"}


MESSAGES = [
    said("system", 0, "Be brief"),
    said("human", 1, [text("What is it?"), {"type": "image", "base64": "QQ==", "mime_type": "image/png"}]),
    said("ai", 2, "", additional_kwargs={"reasoning_content": "Hm"}, tool_calls=[call("c1", {"by": 2})],
         invalid_tool_calls=[{**call("c2", "{by"), "type": "invalid_tool_call"}],
         response_metadata={"model_name": "m"}),
    said("tool", 3, "seen", tool_call_id="c1", name="look", status="success"),
    said("tool", 4, "no JSON", tool_call_id="c2", name="look", status="error"),
    said("ai", 5, "A hedgehog.", tool_calls=[], invalid_tool_calls=[]),
]  # fmt: skip
SAID = [
    "Be brief",
    [text("What is it?"),
     {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}}],
    [{"type": "thinking", "thinking": "Hm"},
     {"type": "tool_use", "id": "c1", "name": "look", "input": {"by": 2}},
     {"type": "tool_use", "id": "c2", "name": "look", "input": {"_arguments": "{by"}}],
    [result("c1", "seen")],
    [result("c2", "no JSON") | {"is_error": True}],
    "A hedgehog.",
]  # fmt: skip
CLASSES = {
    "system": "SystemMessage",
    "human": "HumanMessage",
    "ai": "AIMessage",
    "tool": "ToolMessage",
}


def state(messages: list[Any], at: str = "2026-01-25T09:00:00+00:00") -> dict[str, Any]:
    values = {"messages": messages, "title": "A picture"}
    return {"values": values, "next": [], "created_at": at, "checkpoint": {"thread_id": "t-1"}}


@pytest.mark.parametrize("form", ["state", "list", "dicts", "constructors", "lines"])
def test_messages_are_read_in_every_form(tmp_path: Path, form: str) -> None:
    dicts = [{"type": one["type"], "data": one} for one in MESSAGES]
    made = [
        {"lc": 1, "type": "constructor", "kwargs": one,
         "id": ["langchain", "schema", "messages", CLASSES[one["type"]]]}
        for one in MESSAGES
    ]  # fmt: skip
    written = {
        "state": json.dumps(state(MESSAGES)),
        "list": json.dumps(MESSAGES),
        "dicts": json.dumps({"messages": dicts}),
        "constructors": json.dumps({"channel_values": {"messages": made}}),
        "lines": "".join(json.dumps(one) + "\n" for one in MESSAGES),
    }[form]
    talk = read_text(tmp_path, written)
    assert talk.format == "langchain"
    assert contents(only(talk)) == SAID
    assert keys(only(talk)) == ["m0", "m1", "m2", "m3", "m4", "m5"]
    assert talk.skipped == ()


def test_names_and_models_and_authors(tmp_path: Path) -> None:
    one = only(read_json(tmp_path, state(MESSAGES)))
    assert (one.thread_id, one.label) == ("t-1", "A picture")
    assert [m.message.author for m in one.messages] == [None, "person", None, None, None, None]
    assert [m.model for m in one.messages if m.model] == ["m"]


def test_the_form_of_langchain_is_kept(tmp_path: Path) -> None:
    originals = [m.original for m in only(read_json(tmp_path, state(MESSAGES))).messages]
    for original, message in zip(originals, MESSAGES, strict=True):
        assert original is not None
        assert (original.format, original.data["type"]) == ("langchain", message["type"])
        assert original.data["data"] == message


def test_several_states_of_a_thread_are_one_conversation(tmp_path: Path) -> None:
    edited = {**MESSAGES[5], "content": "A porcupine."}
    newest = state([*MESSAGES[4:5], edited], at="2026-01-25T10:00:00+00:00")
    talk = read_json(tmp_path, [newest, state(MESSAGES)])
    assert contents(only(talk)) == [*SAID[:5], "A porcupine."]


def test_what_is_no_message_is_named(tmp_path: Path) -> None:
    talk = read_json(tmp_path, state([*MESSAGES[:2], {"type": "remove", "id": "m1"}, 7]))
    assert contents(only(talk)) == SAID[:2]
    assert sum(one.damage for one in talk.skipped) == 2

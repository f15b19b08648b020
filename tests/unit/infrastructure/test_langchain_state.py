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


def test_a_dump_of_a_checkpoint_is_read(tmp_path: Path) -> None:
    saved = {"v": 1, "ts": "2026-01-25T09:00:00+00:00", "channel_values": {"messages": MESSAGES}}
    config = {"configurable": {"thread_id": "t-2", "checkpoint_ns": ""}}
    talk = read_json(tmp_path, {"config": config, "checkpoint": saved, "metadata": {"step": 3}})
    assert only(talk).thread_id == "t-2"
    assert contents(only(talk)) == SAID


def test_states_without_times_are_in_the_order_of_their_steps(tmp_path: Path) -> None:
    half = {**MESSAGES[5], "content": "A hedge"}
    older = {"values": {"messages": [*MESSAGES[:5], half]}, "metadata": {"step": 1}}
    newer = {"values": {"messages": [MESSAGES[5]]}, "metadata": {"step": 2}}
    assert contents(only(read_json(tmp_path, [newer, older]))) == SAID


def test_a_message_of_several_states_has_the_time_of_the_first(tmp_path: Path) -> None:
    later = "2026-01-25T10:00:00+00:00"
    one = only(read_json(tmp_path, [state(MESSAGES, at=later), state(MESSAGES[:2])]))
    hours = [m.at and m.at.hour for m in one.messages]
    assert hours == [9, 9, 10, 10, 10, 10]
    assert [m.at for m in only(read_json(tmp_path, state(MESSAGES))).messages] == [None] * 6


def test_messages_without_ids_that_a_later_state_lacks_are_kept(tmp_path: Path) -> None:
    bare = [{key: one for key, one in m.items() if key != "id"} for m in MESSAGES]
    later = state([*bare[4:], said("human", 6, "Thanks")], at="2026-01-25T10:00:00+00:00")
    assert contents(only(read_json(tmp_path, [state(bare), later]))) == [*SAID, "Thanks"]


@pytest.mark.parametrize(
    "answer",
    [
        said("ai", 2, [{"type": "tool_use", "id": "c1", "name": "look", "input": {}, "index": 1,
                        "partial_json": '{"by": 2}'}], tool_calls=[call("c1", {"by": 2})]),
        said("ai", 2, [{"type": "function_call", "id": "fc", "call_id": "c1", "name": "look",
                        "arguments": '{"by": 2}'}], tool_calls=[call("c1", {"by": 2})]),
        said("ai", 2, [{"type": "tool_call", "id": "c1", "name": "look", "args": {"by": 2}}]),
        said("ai", 2, "", additional_kwargs={"tool_calls": [
            {"id": "c1", "function": {"name": "look", "arguments": '{"by": 2}'}}]}),
    ],
    ids=["streamed", "responses", "standard", "provider"],
)  # fmt: skip
def test_a_call_is_read_once_with_its_arguments_wherever_it_is(
    tmp_path: Path, answer: dict[str, Any]
) -> None:
    talk = read_json(tmp_path, state([MESSAGES[0], answer]))
    assert contents(only(talk))[1] == [
        {"type": "tool_use", "id": "c1", "name": "look", "input": {"by": 2}}
    ]


@pytest.mark.parametrize(
    "answer",
    [
        said("ai", 2, [{"type": "reasoning", "summary": [{"text": "Hm"}]}, text("Yes")]),
        said("ai", 2, [{"type": "reasoning", "summary": []}, {"type": "reasoning", "reasoning": "Hm"},
                       text("Yes")]),
        said("ai", 2, [{"type": "reasoning_content", "reasoning_content": {"text": "Hm"}}, text("Yes")]),
        said("ai", 2, "Yes", additional_kwargs={"reasoning": {"summary": [{"text": "Hm"}]}}),
    ],
)  # fmt: skip
def test_reasoning_is_read_in_every_form(tmp_path: Path, answer: dict[str, Any]) -> None:
    talk = read_json(tmp_path, state([MESSAGES[0], answer]))
    assert contents(only(talk))[1] == [{"type": "thinking", "thinking": "Hm"}, text("Yes")]


@pytest.mark.parametrize(
    ("part", "kind", "media"),
    [
        ({"type": "image", "source_type": "base64", "data": "QQ=="}, "image", "image/png"),
        ({"type": "media", "data": "QQ==", "mime_type": "image/jpeg"}, "image", "image/jpeg"),
        ({"type": "file", "base64": "QQ==", "mime_type": "application/pdf"}, "document",
         "application/pdf"),
    ],
)  # fmt: skip
def test_pictures_and_documents_are_read_in_every_form(
    tmp_path: Path, part: dict[str, Any], kind: str, media: str
) -> None:
    source = {"type": "base64", "media_type": media, "data": "QQ=="}
    talk = read_json(tmp_path, state([said("human", 1, [part])]))
    assert contents(only(talk)) == [[{"type": kind, "source": source}]]


def test_a_summary_of_langchain_is_written_by_a_program(tmp_path: Path) -> None:
    summary = said(
        "human", 1, "So far: a hedgehog.", additional_kwargs={"lc_source": "summarization"}
    )
    (message,) = only(read_json(tmp_path, state([summary]))).messages
    assert message.message.author == "program"


def test_ids_that_are_no_texts_do_not_end_the_reading(tmp_path: Path) -> None:
    blocks: list[Any] = [{"type": "tool_call", "id": {}, "name": "look", "args": {}}]
    odd = said("ai", 2, blocks, tool_calls=[{**call("c1", {}), "id": []}])
    assert len(only(read_json(tmp_path, state([MESSAGES[0], odd]))).messages) == 2

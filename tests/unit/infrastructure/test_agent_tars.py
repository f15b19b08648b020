"""Event streams of Agent TARS: a call that is told twice is read once, and its result is found."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.transcript_files import contents, keys, only, read_text, reasons, result, text

BEGIN = 1750233827616


def event(kind: str, number: int, **fields: Any) -> dict[str, Any]:
    return {"id": f"e{number}", "type": kind, "timestamp": BEGIN + number, **fields}


def asked(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def use(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


EVENTS = [
    event("agent_run_start", 0, sessionId="s", model="doubao"),
    event("user_message", 1, content="Open it"),
    event("environment_input", 2, content=[
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}}]),
    event("assistant_thinking_message", 3, content="A page, I think."),
    event("assistant_message", 4, content="", toolCalls=[asked("c", "go", '{"url": "x"}')]),
    event("tool_call", 5, toolCallId="c", name="go", arguments={"url": "x"}),
    event("tool_result", 6, toolCallId="c", name="go", content={"ok": True}),
    event("assistant_message", 7, content="Once more.", toolCalls=[asked("c", "go", "{}")]),
    event("tool_call", 8, toolCallId="c", name="go", arguments={}),
    event("tool_result", 9, toolCallId="c", name="go", content="", error="timeout"),
    event("tool_call", 10, toolCallId="d", name="look", arguments={"deep": 1}),
    event("tool_result", 11, toolCallId="d", name="look", content=[text("seen")]),
    event("plan_update", 12, steps=[]),
    event("assistant_streaming_message", 13, content="Do"),
    event("assistant_message", 14, content="Done."),
]  # fmt: skip
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}}
SAID = [
    "Open it",
    [PICTURE],
    [{"type": "thinking", "thinking": "A page, I think."}, use("c", "go", url="x")],
    [result("c", [text('{"ok": true}')])],
    [text("Once more."), use("c#2", "go")],
    [result("c#2", "timeout") | {"is_error": True}],
    [use("d", "look", deep=1)],
    [result("d", [text("seen")])],
    "Done.",
]


@pytest.mark.parametrize("form", ["list", "lines", "object"])
def test_a_stream_becomes_messages(tmp_path: Path, form: str) -> None:
    written = {
        "list": json.dumps(EVENTS),
        "lines": "".join(json.dumps(one) + "\n" for one in EVENTS),
        "object": json.dumps({"events": EVENTS}, indent=1),
    }[form]
    talk = read_text(tmp_path, written)
    assert talk.format == "agent-tars"
    assert contents(only(talk)) == SAID
    assert keys(only(talk)) == ["e1", "e2", "e4", "e6", "e7", "e9", "e10", "e11", "e14"]
    assert sorted(reasons(talk)) == [
        "beginning of a run",
        "event, which a message has again",
        "event, which a message has again",
        "part of a message that follows",
        "plan",
    ]


def test_who_said_it_and_when_and_with_which_model(tmp_path: Path) -> None:
    messages = only(read_text(tmp_path, json.dumps(EVENTS))).messages
    assert [m.message.author for m in messages[:2]] == ["person", "program"]
    assert [m.model for m in messages[:3]] == [None, None, "doubao"]
    assert messages[0].at is not None
    assert messages[0].at.isoformat() == "2025-06-18T08:03:47.617000+00:00"


def test_a_log_of_one_request_is_a_chat(tmp_path: Path) -> None:
    request = {"model": "m", "messages": [{"role": "system", "content": "Be brief"},
                                          {"role": "user", "content": "Hi"}]}  # fmt: skip
    written = json.dumps({"provider": "p", "request": request, "baseURL": "u"}, indent=1)
    talk = read_text(tmp_path, written, name="llm-request.jsonl")
    assert talk.format == "openai"
    assert contents(only(talk)) == ["Be brief", "Hi"]


def test_events_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    odd: list[Any] = [*EVENTS[:2], 7, event("user_message", 3, content=5), event("dream", 4)]
    talk = read_text(tmp_path, json.dumps(odd))
    assert contents(only(talk)) == ["Open it"]
    assert sum(one.damage for one in talk.skipped) == 2
    assert "record of another type" in reasons(talk)


def test_pictures_in_results_of_mcp_are_kept(tmp_path: Path) -> None:
    seen = [text("a page"), {"type": "image", "data": "QQ==", "mimeType": "image/png"}]
    talk = read_text(
        tmp_path, json.dumps([*EVENTS[:6], event("tool_result", 6, toolCallId="c", content=seen)])
    )
    assert contents(only(talk))[-1] == [result("c", [text("a page"), PICTURE])]


def test_a_picture_without_words_is_shown_by_a_person(tmp_path: Path) -> None:
    shown = EVENTS[2] | {"type": "user_message"}
    (message,) = only(read_text(tmp_path, json.dumps([shown]))).messages
    assert message.message.author == "person"


@pytest.mark.parametrize("first", ["system", "environment_input", "assistant_message"])
def test_a_stream_may_begin_with_any_event(tmp_path: Path, first: str) -> None:
    talk = read_text(tmp_path, json.dumps([event(first, 0, content="Ready"), *EVENTS[1:2]]))
    assert talk.format == "agent-tars"
    assert contents(only(talk))[-1] == "Open it"


THOUGHT = {"type": "thinking", "thinking": "A page, I think."}


def thought(number: int, **more: Any) -> dict[str, Any]:
    return event("assistant_thinking_message", number, content="A page, I think.", **more)


@pytest.mark.parametrize("ids", [{}, {"messageId": "x"}], ids=["without ids", "with ids"])
def test_reasoning_that_follows_an_answer_belongs_to_it(
    tmp_path: Path, ids: dict[str, str]
) -> None:
    call = asked("c", "go", "{}")
    told = [
        event("user_message", 1, content="Open it"),
        event("assistant_message", 2, content="", toolCalls=[call], messageId="x"),
        thought(3, **ids),
        thought(4, **ids),
        event("tool_call", 5, toolCallId="c", name="go", arguments={}),
        event("tool_result", 6, toolCallId="c", name="go", content="ok"),
        event("assistant_message", 7, content="Done.", messageId="y"),
    ]
    talk = read_text(tmp_path, json.dumps(told))
    assert contents(only(talk)) == [
        "Open it",
        [THOUGHT, use("c", "go")],
        [result("c", "ok")],
        "Done.",
    ]
    assert reasons(talk) == ["event, which a message has again"] * 2


def test_reasoning_of_another_answer_waits_for_it(tmp_path: Path) -> None:
    told = [
        event("assistant_message", 1, content="One", messageId="x"),
        thought(2, messageId="y"),
        event("assistant_message", 3, content="Two", messageId="y"),
    ]
    assert contents(only(read_text(tmp_path, json.dumps(told)))) == ["One", [THOUGHT, text("Two")]]


def test_reasoning_without_an_answer_is_kept(tmp_path: Path) -> None:
    words = [event("user_message", n, content="Open it") for n in (1, 3)]
    told = [words[0], thought(2), words[1], thought(4)]
    talk = only(read_text(tmp_path, json.dumps(told)))
    assert contents(talk) == ["Open it", [THOUGHT], "Open it", [THOUGHT]]
    assert keys(talk) == ["e1", "e2", "e3", "e4"]


def test_parts_of_the_reasoning_that_follow_an_answer_stay_in_their_order(tmp_path: Path) -> None:
    told = [
        event("assistant_message", 1, content="One", messageId="x"),
        *(event("assistant_thinking_message", n, content=f"Step {n}") for n in (2, 3)),
    ]
    steps = [{"type": "thinking", "thinking": f"Step {n}"} for n in (2, 3)]
    assert contents(only(read_text(tmp_path, json.dumps(told)))) == [[*steps, text("One")]]


def test_reasoning_that_comes_after_the_results_of_its_answer_is_not_of_the_next_one(
    tmp_path: Path,
) -> None:
    call = asked("c", "go", "{}")
    told = [
        event("assistant_message", 1, content="", toolCalls=[call], messageId="x"),
        event("tool_result", 2, toolCallId="c", name="go", content="ok"),
        thought(3, messageId="x"),
        event("assistant_message", 4, content="Two", messageId="y"),
    ]
    talk = only(read_text(tmp_path, json.dumps(told)))
    assert contents(talk) == [[use("c", "go")], [result("c", "ok")], [THOUGHT], "Two"]


def test_reasoning_of_two_answers_is_kept_apart(tmp_path: Path) -> None:
    told = [
        event("user_message", 1, content="Open it"),
        thought(2, messageId="x"),
        event("assistant_thinking_message", 3, content="Again.", messageId="y"),
        event("assistant_message", 4, content="Two", messageId="y"),
    ]
    again = {"type": "thinking", "thinking": "Again."}
    talk = only(read_text(tmp_path, json.dumps(told)))
    assert contents(talk) == ["Open it", [THOUGHT], [again, text("Two")]]

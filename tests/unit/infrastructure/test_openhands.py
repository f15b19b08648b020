"""Event streams of OpenHands: actions are calls of the model, observations are their results."""

import json
from pathlib import Path
from typing import Any

from tests.support.transcript_files import (
    contents,
    keys,
    only,
    read_json,
    read_records,
    read_text,
    reasons,
    result,
    text,
)


def use(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


# The first version.


def old(number: int, source: str, **fields: Any) -> dict[str, Any]:
    at = f"2025-04-30T16:32:{number:02}.5"
    return {"id": number, "timestamp": at, "source": source, "message": "", **fields}


def called(answer: str, call_id: str, name: str, *, says: str = "", **arguments: Any) -> Any:
    function = {"name": name, "arguments": json.dumps(arguments)}
    calls = [{"id": call_id, "type": "function", "function": function}]
    message = {"role": "assistant", "content": says, "tool_calls": calls}
    response = {"id": answer, "model": "m-1", "choices": [{"message": message}]}
    return {"function_name": name, "tool_call_id": call_id, "model_response": response}


OLD = [
    old(0, "agent", action="system", args={"content": "Be brief", "tools": [
        {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]}),
    old(1, "user", action="message", args={"content": "Fix it", "image_urls": ["http://x/a.png"]}),
    old(2, "user", action="recall", args={"query": "Fix it"}),
    old(3, "environment", observation="recall", content="Found", cause=2,
        extras={"microagent_knowledge": [{"name": "git", "content": "Use git."}]}),
    old(4, "agent", action="run", args={"command": "ls", "thought": ""},
        tool_call_metadata=called("r1", "c1", "bash", says="I look.", command="ls")),
    old(5, "agent", observation="run", content="a.py", cause=4,
        tool_call_metadata=called("r1", "c1", "bash", says="I look.", command="ls")),
    old(6, "agent", action="run", args={"command": "wc", "thought": ""},
        tool_call_metadata=called("r1", "c2", "bash", says="I look.", command="wc")),
    old(7, "agent", observation="run", content="no", cause=6,
        extras={"metadata": {"exit_code": 2}},
        tool_call_metadata=called("r1", "c2", "bash", says="I look.", command="wc")),
    old(8, "environment", observation="agent_state_changed", content="", extras={}),
    old(9, "agent", observation="error", content="Bad call", extras={}),
    old(10, "agent", action="finish", message="All done.", args={"final_thought": "All done."},
        tool_call_metadata=called("r2", "c3", "finish", says="So:", message="All done.")),
]  # fmt: skip
PICTURE = {"type": "image", "source": {"type": "url", "url": "http://x/a.png"}}
SAID = [
    "Be brief",
    [text("Fix it"), PICTURE],
    "Found\n\nUse git.",
    [text("I look."), use("c1", "bash", command="ls")],
    [result("c1", "a.py")],
    [use("c2", "bash", command="wc")],
    [result("c2", "no") | {"is_error": True}],
    "Bad call",
    [text("So:"), text("All done.")],
]


def test_the_history_of_a_task(tmp_path: Path) -> None:
    task: dict[str, Any] = {"instance_id": "task-7", "metadata": {}, "history": OLD}
    talk = read_records(tmp_path, task, {**task, "instance_id": "task-8"})
    assert talk.format == "openhands"
    assert [one.thread_id for one in talk.conversations] == ["talk:task-7", "talk:task-8"]
    one = talk.conversations[0]
    assert contents(one) == SAID
    assert keys(one) == ["0", "1", "3", "4", "5", "6", "7", "9", "10"]
    assert [tool["name"] for tool in one.tools] == ["bash"]
    assert reasons(talk)[:2] == ["search of the program", "state of the agent"]
    assert not any(one.damage for one in talk.skipped)


def test_who_said_it_and_when_and_with_which_model(tmp_path: Path) -> None:
    messages = only(read_json(tmp_path, OLD)).messages
    assert [m.message.author for m in messages[:3]] == [None, "person", "program"]
    assert [m.model for m in messages[2:4]] == [None, "m-1"]
    assert messages[1].at is not None
    assert messages[1].at.isoformat() == "2025-04-30T16:32:01.500000+00:00"


def test_the_oldest_events_have_no_ids_and_stand_in_pairs(tmp_path: Path) -> None:
    asked = {"action": "message", "content": "Fix it", "wait_for_response": None}
    run = {"action": "run", "command": "ls", "thought": "I look.", "is_confirmed": "confirmed"}
    seen = {"observation": "run", "content": "a.py", "command": "ls", "exit_code": 0}
    end: dict[str, Any] = {"action": "finish", "outputs": {}, "thought": "Done."}
    talk = read_json(
        tmp_path, {"history": [[asked, seen | {"observation": "null"}], [run, seen], end]}
    )
    assert contents(only(talk)) == [
        "Fix it",
        [text("I look."), use("call_1", "run", command="ls")],
        [result("call_1", "a.py")],
        [text("Done.")],
    ]


# The second version.


def new(number: int, kind: str, source: str = "agent", **fields: Any) -> dict[str, Any]:
    at = f"2026-02-01T10:00:{number:02}"
    return {"id": f"e{number}", "timestamp": at, "source": source, "kind": kind, **fields}


def action(number: int, answer: str, call_id: str, says: str = "", **fields: Any) -> Any:
    made = {"id": call_id, "name": "terminal", "arguments": '{"command": "ls"}'}
    thought = [{"type": "text", "text": says}] if says else []
    return new(number, "ActionEvent", thought=thought, tool_name="terminal", tool_call_id=call_id,
               tool_call=made, llm_response_id=answer, **fields)  # fmt: skip


NEW = [
    new(0, "SystemPromptEvent", system_prompt={"type": "text", "text": "Be brief"}, tools=[]),
    new(1, "MessageEvent", "user", llm_message={"role": "user", "content": [
        {"type": "text", "text": "Fix it"},
        {"type": "image", "image_urls": ["data:image/png;base64,QQ=="]}]},
        extended_content=[{"type": "text", "text": "Use git."}]),
    action(2, "r1", "c1", "I look.", thinking_blocks=[
        {"type": "thinking", "thinking": "Hm", "signature": "s"}]),
    action(3, "r1", "c2", "I look."),
    new(4, "ObservationEvent", "environment", tool_name="terminal", tool_call_id="c1",
        action_id="e2", observation={"content": [{"type": "text", "text": "a.py"}],
                                     "is_error": False}),
    new(5, "AgentErrorEvent", tool_name="terminal", tool_call_id="c2", error="no such tool"),
    new(6, "ConversationStateUpdateEvent", "environment", key="k", value=1),
    new(7, "Condensation", "environment", summary="It was looked at.", forgotten_event_ids=["e2"]),
    action(8, "r2", "c3", reasoning_content="Once more"),
    new(9, "UserRejectObservation", "user", tool_name="terminal", tool_call_id="c3",
        action_id="e8", rejection_reason="not now"),
    new(10, "MessageEvent", llm_message={"role": "assistant", "content": [text("Done.")]}),
]  # fmt: skip
INLINE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}}


def test_events_of_the_second_version(tmp_path: Path) -> None:
    talk = read_text(tmp_path, "".join(json.dumps(one) + "\n" for one in NEW))
    one = only(talk)
    assert talk.format == "openhands"
    assert contents(one) == [
        "Be brief",
        [text("Fix it"), INLINE, text("Use git.")],
        [
            {"type": "thinking", "thinking": "Hm", "signature": "s"},
            text("I look."),
            use("c1", "terminal", command="ls"),
            use("c2", "terminal", command="ls"),
        ],
        [result("c1", [text("a.py")])],
        [result("c2", "no such tool") | {"is_error": True}],
        [{"type": "thinking", "thinking": "Once more"}, use("c3", "terminal", command="ls")],
        [result("c3", "Action rejected: not now") | {"is_error": True}],
        [text("Done.")],
    ]
    (summary,) = one.summaries
    assert (summary.text, summary.position) == ("It was looked at.", 5)
    assert "state of the agent" in reasons(talk)


def test_a_trajectory_of_another_agent_is_not_taken_for_events(tmp_path: Path) -> None:
    step = {"action": "ls", "observation": "a.py", "thought": "I look.", "response": "ls"}
    said = {"role": "user", "content": "Fix it", "agent": "main", "action": "ls", "thought": "x"}
    answer = {"role": "assistant", "content": "ls", "agent": "main", "action": "ls", "thought": "x"}
    talk = read_json(tmp_path, {"trajectory": [step], "history": [said, answer]})
    assert talk.format != "openhands"
    assert contents(only(talk)) == ["Fix it", "ls"]


def test_a_page_of_events_is_read(tmp_path: Path) -> None:
    said = {"role": "user", "content": [text("Hello")]}
    hello = {"id": "e1", "kind": "MessageEvent", "source": "user", "llm_message": said}
    talk = read_json(tmp_path, {"items": [hello], "next_page_id": None})
    assert contents(only(talk)) == [[text("Hello")]]


def test_pictures_of_a_browser_and_reasoning_of_a_message_are_kept(tmp_path: Path) -> None:
    seen = {"kind": "BrowserObservation", "content": [text("a page")], "screenshot_data": "QQ=="}
    said = {"role": "assistant", "content": [text("A page.")]}
    events = [
        {"id": "e1", "kind": "ActionEvent", "source": "agent", "tool_name": "look",
         "tool_call_id": "c1", "tool_call": {"id": "c1", "name": "look", "arguments": "{}"}},
        {"id": "e2", "kind": "ObservationEvent", "source": "environment", "tool_name": "look",
         "tool_call_id": "c1", "observation": seen},
        {"id": "e3", "kind": "MessageEvent", "source": "agent", "llm_message": said,
         "reasoning_content": "Hm"},
    ]  # fmt: skip
    picture = {"type": "base64", "media_type": "image/png", "data": "QQ=="}
    assert contents(only(read_records(tmp_path, *events)))[1:] == [
        [result("c1", [text("a page"), {"type": "image", "source": picture}])],
        [{"type": "thinking", "thinking": "Hm"}, text("A page.")],
    ]

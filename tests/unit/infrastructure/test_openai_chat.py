"""OpenAI chats: each piece in its Anthropic shape, nothing silently lost."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from refold.application.errors import TranscriptError
from tests.support.transcript_files import (
    Json,
    contents,
    keys,
    only,
    read_json,
    read_records,
    reasons,
    text,
)


def tool_call(call_id: Any = "c1", name: Any = "look", arguments: Any = '{"a": 1}') -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*calls: Json, **more: Any) -> Json:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)} | more


def answer(call_id: str, content: Any = "ok") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def said(folder: Path, *messages: Any) -> list[Any]:
    return contents(only(read_json(folder, list(messages), format="openai")))


def test_calls_and_results_become_blocks(tmp_path: Path) -> None:
    talk = read_json(
        tmp_path,
        [
            {"role": "system", "content": "Be kind."},
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "go"},
            calling(tool_call("c1"), tool_call("c2"), content="I look"),
            answer("c1"),
            answer("c2", "Error: no"),
        ],
    )
    assert talk.format == "openai"
    assert contents(only(talk)) == [
        "Be kind.",
        "Be brief.",
        "go",
        [
            text("I look"),
            {"type": "tool_use", "id": "c1", "name": "look", "input": {"a": 1}},
            {"type": "tool_use", "id": "c2", "name": "look", "input": {"a": 1}},
        ],
        [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}],
        [{"type": "tool_result", "tool_use_id": "c2", "content": "Error: no"}],
    ]
    roles = [m.message.role for m in only(talk).messages]
    assert roles == ["system", "system", "user", "assistant", "user", "user"]
    assert keys(only(talk)) == [f"message:{n}" for n in range(6)]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('{"p": [1]}', {"p": [1]}),
        ({"p": 1}, {"p": 1}),
        ("{oops", {"_arguments": "{oops"}),
        ("[1, 2]", {"_arguments": "[1, 2]"}),
        ([1, 2], {"_arguments": "[1, 2]"}),
        ("", {}),
        (None, {}),
    ],
)
def test_arguments_are_an_object_or_kept_as_text(tmp_path: Path, raw: Any, expected: Json) -> None:
    (blocks,) = said(tmp_path, calling(tool_call(arguments=raw)))
    assert blocks[0]["input"] == expected


def test_a_call_without_name_or_id_gets_the_same_ones_at_every_reading(tmp_path: Path) -> None:
    messages = [calling(tool_call("", None), tool_call(None)), answer(""), answer("")]
    first, *results = said(tmp_path, *messages)
    assert [(b["id"], b["name"]) for b in first] == [("call_0_0", "unknown"), ("call_0_1", "look")]
    assert [r[0]["tool_use_id"] for r in results] == ["call_0_0", "call_0_1"]
    assert said(tmp_path, *messages) == [first, *results]


def test_the_old_form_of_function_calls_is_paired(tmp_path: Path) -> None:
    blocks, results = said(
        tmp_path,
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "done"},
    )
    assert blocks[0]["name"] == "f"
    assert results[0]["tool_use_id"] == blocks[0]["id"]


def test_repeated_call_ids_are_kept_as_they_came(tmp_path: Path) -> None:
    turns = [calling(tool_call("c1")), answer("c1"), calling(tool_call("c1")), answer("c1")]
    assert [blocks[0].get("id") for blocks in said(tmp_path, *turns)] == ["c1", None, "c1", None]


def test_images_become_image_blocks(tmp_path: Path) -> None:
    inline = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "QQ"},
    }
    (blocks,) = said(
        tmp_path,
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ"}},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
                {"type": "image", "image": "data:image/png;base64,QQ"},
                {"type": "input_audio", "input_audio": {"data": "x"}},
                "bare",
            ],
        },
    )
    assert blocks == [
        inline,
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        inline,
        {"type": "input_audio", "input_audio": {"data": "x"}},
        text("bare"),
    ]


def test_reasoning_without_a_signature_is_kept_as_thinking(tmp_path: Path) -> None:
    message = {"role": "assistant", "content": "ho", "reasoning_content": "Hm"}
    talk = read_json(tmp_path, [message], format="openai")
    assert contents(only(talk)) == [[{"type": "thinking", "thinking": "Hm"}, text("ho")]]
    assert reasons(talk) == []


def test_reasoning_that_is_no_text_is_left_out_and_counted(tmp_path: Path) -> None:
    message = {"role": "assistant", "content": "ho", "reasoning": [{"sealed": "x"}]}
    talk = read_json(tmp_path, [message], format="openai")
    assert contents(only(talk)) == ["ho"]
    assert reasons(talk) == ["reasoning of an unknown kind"]


def test_an_answer_without_content_is_kept_empty(tmp_path: Path) -> None:
    assert said(tmp_path, {"role": "assistant", "content": None}) == [[]]


def test_tools_are_converted(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"p": {"type": "string"}}}
    tools = [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}},
        {"type": "function", "name": "g"},
        {"type": "function"},
    ]
    talk = read_json(tmp_path, {"messages": [{"role": "user", "content": "x"}], "tools": tools})
    assert only(talk).tools == (
        {"name": "f", "description": "d", "input_schema": schema},
        {"name": "g", "input_schema": {"type": "object"}},
    )
    assert reasons(talk) == ["tool without a name"]


def test_the_response_of_a_recorded_request_is_the_last_message(tmp_path: Path) -> None:
    talk = read_json(
        tmp_path,
        {
            "messages": [{"role": "user", "content": "go"}],
            "response": {
                "id": "r1",
                "model": "deep",
                "created": 1757015048,
                "choices": [{"finish_reason": "tool_calls", "message": calling(tool_call())}],
            },
        },
    )
    last = only(talk).messages[-1]
    assert (last.key, last.message_id, last.model) == ("r1", "r1", "deep")
    assert last.stop_reason == "tool_calls"
    assert last.at == datetime(2025, 9, 4, 19, 44, 8, tzinfo=UTC)
    assert contents(only(talk))[-1][0]["type"] == "tool_use"


def test_a_list_of_runs_is_one_conversation_each(tmp_path: Path) -> None:
    conversation = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    talk = read_json(
        tmp_path,
        [{"task_id": 1, "trial": t, "traj": conversation} for t in (0, 1)]
        + [{"id": "x", "messages": conversation}],
    )
    assert [c.thread_id for c in talk.conversations] == [
        "talk:task-1:trial-0",
        "talk:task-1:trial-1",
        "talk:x",
    ]
    assert [c.messages[0].line for c in talk.conversations] == [0, 1, 2]


def test_json_lines_of_chats_are_one_conversation_each(tmp_path: Path) -> None:
    conversation = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    talk = read_records(
        tmp_path, {"messages": conversation}, {"input": conversation}, conversation, {"other": 1}
    )
    assert [c.thread_id for c in talk.conversations] == ["talk:0", "talk:1", "talk:2"]
    assert [(s.line, s.reason) for s in talk.skipped] == [(4, "record that holds no chat")]


def test_a_software_agent_history_is_read_with_its_list_of_call_ids(tmp_path: Path) -> None:
    history = [
        {"role": "user", "content": "fix", "message_type": "observation"},
        calling(tool_call("c1"), content="I look", thought="I look"),
        {"role": "tool", "content": "seen", "tool_call_ids": ["c1"]},
    ]
    talk = read_json(tmp_path, {"trajectory": [], "history": history})
    assert contents(only(talk))[2] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "seen"}
    ]


def spoken(role: str, words: str) -> Json:
    return {"role": role, "content": words}


def authors(folder: Path, given: Any) -> list[str | None]:
    messages = only(read_json(folder, given, format="openai")).messages
    return [m.message.author for m in messages if m.message.role == "user"]


@pytest.mark.parametrize(
    "observation",
    [
        "<returncode>1</returncode>\n<output>\n</output>",
        "API output: {}",
        "EXECUTION RESULT of [terminal]:\nok",
    ],
)
def test_output_that_an_agent_gives_the_model_as_a_user_message_is_a_tools(
    tmp_path: Path, observation: str
) -> None:
    system = {"role": "system", "content": "s"}
    talk = [
        system,
        *(spoken("user", "Fix it."), spoken("assistant", "ls"), spoken("user", observation)),
    ]
    assert authors(tmp_path, talk) == [None, "tool"]


def test_in_the_loop_of_an_agent_only_the_first_message_may_be_a_persons(tmp_path: Path) -> None:
    system = {"role": "system", "content": "s"}
    talk = [
        system,
        *(
            spoken("user", "Fix it."),
            spoken("assistant", "ls"),
            spoken("user", "Please be careful."),
        ),
    ]
    assert authors(tmp_path, talk) == [None, None]
    named = {"trajectory_format": "mini-swe-agent-1.1", "messages": talk}
    assert authors(tmp_path, named) == [None, "tool"]
    swe: list[Json] = [
        {**m, "agent": "main", **({"action": "ls"} if m["role"] == "assistant" else {})}
        for m in talk
    ]
    assert authors(tmp_path, {"history": swe}) == [None, "tool"]
    swe[1]["is_demo"] = True
    assert authors(tmp_path, {"history": swe}) == ["program", "tool"]


def test_an_author_that_a_message_names_is_kept(tmp_path: Path) -> None:
    named = [
        {**spoken("user", "hi"), "author": author}
        for author in ("person", "tool", "somebody", {"role": "user"})
    ]
    assert authors(tmp_path, [{"role": "system", "content": "s"}, *named]) == [
        "person",
        "tool",
        None,
        None,
    ]


def test_messages_of_unknown_roles_are_named(tmp_path: Path) -> None:
    talk = read_json(tmp_path, [calling(tool_call()), {"role": "wizard", "content": "x"}])
    assert len(only(talk).messages) == 1
    assert [(s.line, s.damage) for s in talk.skipped] == [(1, True)]


def test_a_chat_that_speaks_anthropic_is_refused_as_openai(tmp_path: Path) -> None:
    conversation = [{"role": "assistant", "content": [{"type": "tool_use", "id": "1"}]}]
    with pytest.raises(TranscriptError, match=r"cannot be read as openai.*Read it as anthropic"):
        read_json(tmp_path, conversation, format="openai")

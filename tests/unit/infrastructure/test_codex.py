"""Rollouts of the Codex CLI: items become messages of the Anthropic shape, and compactions are kept apart."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.transcript_files import (
    contents,
    keys,
    only,
    read_json,
    read_records,
    reasons,
    result,
    text,
)

AT = "2026-02-01T10:00:00.000Z"
META = {"type": "session_meta", "payload": {"id": "s-1", "cwd": "/work"}}


def record(kind: str, payload: Any) -> dict[str, Any]:
    return {"timestamp": AT, "type": kind, "payload": payload}


def item(**fields: Any) -> dict[str, Any]:
    return record("response_item", fields)


def words(role: str, said: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item(type="message", role=role, content=[{"type": kind, "text": said}])


def call(call_id: str, arguments: str, name: str = "shell") -> dict[str, Any]:
    return item(type="function_call", name=name, call_id=call_id, arguments=arguments)


def output(call_id: str, said: Any) -> dict[str, Any]:
    return item(type="function_call_output", call_id=call_id, output=said)


def test_items_of_one_answer_become_one_message_and_its_results_another(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path,
        {"timestamp": AT, **META},
        record("turn_context", {"model": "gpt-x"}),
        words("user", "Build it"),
        item(type="reasoning", summary=[], encrypted_content="zzz"),
        words("assistant", "I look."),
        call("c1", '{"command": ["bash", "-lc", "make"]}'),
        call("c2", "not json"),
        output("c1", "ok"),
        output("c2", {"content": "bad", "success": False}),
        words("assistant", "Done."),
        record("event_msg", {"type": "agent_message", "message": "Done."}),
    )
    conversation = only(talk)
    assert talk.format == "codex"
    assert conversation.thread_id == "s-1"
    assert contents(conversation) == [
        [text("Build it")],
        [
            text("I look."),
            {"type": "tool_use", "id": "c1", "name": "shell",
             "input": {"command": ["bash", "-lc", "make"]}},
            {"type": "tool_use", "id": "c2", "name": "shell", "input": {"_arguments": "not json"}},
        ],
        [result("c1", "ok"), result("c2", "bad") | {"is_error": True}],
        [text("Done.")],
    ]  # fmt: skip
    assert [m.model for m in conversation.messages] == [None, "gpt-x", None, "gpt-x"]
    assert keys(conversation) == ["line:3", "line:5", "line:8", "line:10"]
    assert "event, which an item has again" in reasons(talk)
    assert not any(skipped.damage for skipped in talk.skipped)


def test_reasoning_stands_before_the_answer_and_sealed_reasoning_in_its_original_form(
    tmp_path: Path,
) -> None:
    sealed: dict[str, Any] = {"type": "reasoning", "summary": [], "encrypted_content": "zzz"}
    shown = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "**Look**"}]}
    talk = read_records(
        tmp_path,
        {"timestamp": AT, **META},
        words("user", "Build it"),
        item(**sealed),
        item(**shown),
        words("assistant", "I look."),
        item(**shown),
        words("user", "Stop"),
        item(**sealed),
    )
    one = only(talk)
    thought = {"type": "thinking", "thinking": "**Look**"}
    assert contents(one) == [
        [text("Build it")],
        [thought, text("I look."), thought],
        [text("Stop")],
    ]
    assert keys(one) == ["line:2", "line:5", "line:7"]
    assert [m.original and m.original.data for m in one.messages] == [None, [sealed], None]


def test_texts_that_codex_itself_sends_are_not_words_of_the_person(tmp_path: Path) -> None:
    shell = "<user_shell_command>\n<command>ls</command>\n</user_shell_command>"
    sent = [
        "<environment_context>\n<cwd>/</cwd>",
        "# AGENTS.md instructions for /x",
        "Go on",
        shell,
    ]
    talk = read_records(tmp_path, {"timestamp": AT, **META}, *(words("user", s) for s in sent))
    authors = [m.message.author for m in only(talk).messages]
    assert authors == ["program", "program", "person", "tool"]


def test_a_compaction_is_a_summary_with_the_texts_that_stay(tmp_path: Path) -> None:
    stays = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "A"}]}
    talk = read_records(
        tmp_path,
        {"timestamp": AT, **META},
        words("user", "First"),
        words("assistant", "One."),
        record("compacted", {"message": "The summary."}),
        words("user", "Second"),
        record("compacted", {"message": "", "replacement_history": [stays]}),
        words("assistant", "Two."),
    )
    first, second = only(talk).summaries
    assert (first.position, first.text, first.kept) == (2, "The summary.", "First")
    assert (second.position, second.text, second.kept) == (3, "", "A")
    assert first.at == only(talk).messages[0].at
    assert len(contents(only(talk))) == 4


def test_the_form_without_envelopes_is_read_too(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path,
        {"id": "old-1", "timestamp": AT, "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls", "-l"]}},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"type": "custom_tool_call", "call_id": "p", "name": "apply_patch", "input": "*** Begin"},
    )
    assert only(talk).thread_id == "old-1"
    used = [block for message in contents(only(talk)) for block in message if "input" in block]
    assert [block["input"] for block in used] == [{"command": ["ls", "-l"]}, {"input": "*** Begin"}]


def test_a_broken_record_does_not_end_the_reading(tmp_path: Path) -> None:
    broken = ("[1]", '{"half', words("nobody", "x"), item(type="message", role="user"))
    talk = read_records(tmp_path, {"timestamp": AT, **META}, *broken, words("user", "Still here"))
    assert contents(only(talk)) == [[text("Still here")]]
    assert sum(skipped.damage for skipped in talk.skipped) == 4


def test_a_session_in_one_object_is_read_too(tmp_path: Path) -> None:
    said = [words("user", "Hi"), call("c", "{}"), output("c", "x"), words("assistant", "Done.")]
    items = [one["payload"] for one in said]
    header = {"id": "old-0", "timestamp": AT, "instructions": ""}
    talk = read_json(tmp_path, {"session": header, "items": items})
    assert talk.format == "codex"
    assert only(talk).thread_id == "old-0"
    assert contents(only(talk)) == [
        [text("Hi")],
        [{"type": "tool_use", "id": "c", "name": "shell", "input": {}}],
        [result("c", "x")],
        [text("Done.")],
    ]
    assert reasons(talk) == ["session header"]


def test_records_without_times_are_read_too(tmp_path: Path) -> None:
    records = [META, words("user", "Hi"), words("assistant", "Hello")]
    bare = [{key: one for key, one in each.items() if key != "timestamp"} for each in records]
    talk = read_records(tmp_path, *bare)
    assert talk.format == "codex"
    assert [one.at for one in only(talk).messages] == [None, None]


def test_items_without_a_header_are_read_too(tmp_path: Path) -> None:
    items = [words("user", "Hi"), call("c", "{}"), output("c", "x")]
    untyped = {"role": "assistant", "content": "Done."}
    talk = read_records(tmp_path, *(one["payload"] for one in items), untyped)
    assert talk.format == "codex"
    assert [one.message.role for one in only(talk).messages] == [
        *("user", "assistant"),
        *("user", "assistant"),
    ]


def test_a_search_for_tools_is_a_call_and_an_image_a_result(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path,
        {"timestamp": AT, **META},
        item(type="tool_search_call", call_id="c1", arguments={"query": "mail"}),
        item(type="tool_search_output", call_id="c1", tools=[{"name": "send"}]),
        item(type="image_generation_call", id="i1", revised_prompt="a cat", result="QUJD"),
    )
    image = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
    assert contents(only(talk)) == [
        [{"type": "tool_use", "id": "c1", "name": "tool_search", "input": {"query": "mail"}}],
        [result("c1", '[{"name": "send"}]')],
        [
            {
                "type": "tool_use",
                "id": "i1",
                "name": "image_generation",
                "input": {"prompt": "a cat"},
            }
        ],
        [result("i1", [{"type": "image", "source": image}])],
    ]


@pytest.mark.parametrize(
    "origin",
    [
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}},
        {"source": "cli", "thread_source": "subagent"},
    ],
)
def test_the_task_of_a_sub_agent_is_written_by_a_program(
    tmp_path: Path, origin: dict[str, Any]
) -> None:
    header = record("session_meta", {"id": "s-2", **origin})
    talk = read_records(tmp_path, header, words("user", "Look for trees"))
    assert [m.message.author for m in only(talk).messages] == ["program"]


def test_a_picture_without_words_is_shown_by_a_person(tmp_path: Path) -> None:
    shown = [{"type": "input_image", "image_url": "https://x"}]
    talk = read_records(
        tmp_path, {"timestamp": AT, **META}, item(type="message", role="user", content=shown)
    )
    assert [m.message.author for m in only(talk).messages] == ["person"]


def test_events_that_no_item_has_are_counted_apart(tmp_path: Path) -> None:
    kinds = ("agent_message", "token_count", "thread_rolled_back", "error")
    events = [record("event_msg", {"type": kind}) for kind in kinds]
    talk = read_records(tmp_path, {"timestamp": AT, **META}, words("user", "Hi"), *events)
    assert reasons(talk) == [
        "session header",
        "event, which an item has again",
        "event of the program",
        "step back; the messages that it took back are kept",
        "event of the program",
    ]


def test_a_type_that_is_no_text_does_not_end_the_reading(tmp_path: Path) -> None:
    odd = item(type="message", role="user", content=[{"type": []}])
    (message,) = only(read_records(tmp_path, {"timestamp": AT, **META}, odd)).messages
    assert message.message.author == "program"

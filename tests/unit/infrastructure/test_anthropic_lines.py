"""Lists of Anthropic messages: byte-faithful, whatever stands around them."""

from pathlib import Path
from typing import Any

import pytest

from refold.application.errors import TranscriptError
from tests.support.transcript_files import (
    call,
    contents,
    jsonl,
    keys,
    only,
    read_json,
    read_records,
    read_text,
    result,
    text,
)

THINKING = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
TALK: list[Any] = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": [THINKING, text("I look"), call("t1")]},
    {"role": "user", "content": [result("t1"), {"type": "new", "x": {"y": 1}}]},
]
SAID: list[Any] = [message["content"] for message in TALK]


def test_a_list_of_messages_is_kept_block_for_block(tmp_path: Path) -> None:
    talk = read_json(tmp_path, TALK)
    assert talk.format == "anthropic"
    assert contents(only(talk)) == SAID
    assert keys(only(talk)) == ["message:0", "message:1", "message:2"]
    assert [m.line for m in only(talk).messages] == [0, 1, 2]
    assert only(talk).thread_id == "talk"


def test_a_request_brings_its_system_text_and_tools(tmp_path: Path) -> None:
    tool = {"name": "look", "description": "d", "input_schema": {"type": "object"}}
    talk = read_json(tmp_path, {"system": "Be kind.", "messages": TALK, "tools": [tool]})
    conversation = only(talk)
    assert conversation.messages[0].message.role == "system"
    assert contents(conversation) == ["Be kind.", *SAID]
    assert conversation.tools == (tool,)


def test_system_blocks_are_kept_as_blocks(tmp_path: Path) -> None:
    blocks = [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]
    assert contents(only(read_json(tmp_path, {"system": blocks, "messages": TALK})))[0] == blocks


def test_json_lines_of_messages_are_one_conversation(tmp_path: Path) -> None:
    talk = read_records(tmp_path, *TALK)
    assert contents(only(talk)) == SAID
    assert [m.line for m in only(talk).messages] == [1, 2, 3]


def test_plain_texts_of_user_and_assistant_are_read_as_anthropic(tmp_path: Path) -> None:
    plain = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
    talk = read_json(tmp_path, plain)
    assert talk.format == "anthropic"
    forced = read_json(tmp_path, plain, format="openai")
    assert forced.conversations == talk.conversations


def test_a_message_that_is_none_is_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    talk = read_json(tmp_path, [*TALK, {"content": "who?"}, 5, {"role": "user", "content": {}}])
    assert contents(only(talk)) == SAID
    assert [(s.line, s.damage) for s in talk.skipped] == [(3, True), (4, True), (5, True)]


def test_numbers_that_json_lacks_become_their_text(tmp_path: Path) -> None:
    odd = '{"type":"tool_use","id":"t","name":"n","input":{"a":NaN,"b":-Infinity,"c":1e999}}'
    talk = read_text(tmp_path, f'[{{"role":"assistant","content":[{odd}]}}]')
    assert contents(only(talk))[0][0]["input"] == {"a": "NaN", "b": "-Infinity", "c": "1e999"}


def test_lone_surrogates_and_huge_numbers_are_kept(tmp_path: Path) -> None:
    huge = "9" * 5000
    raw = '[{"role":"user","content":"a\\ud800"},{"role":"user","content":[{"n":' + huge + "}]}]"
    said = contents(only(read_text(tmp_path, raw)))
    assert said[0] == "a\ud800"
    assert said[1] == [{"n": huge}]


@pytest.mark.parametrize("depth", [199, 5000])
def test_a_message_nested_beyond_reason_costs_only_its_line(tmp_path: Path, depth: int) -> None:
    deep = '{"role":"user","content":[' + '{"a":' * depth + "1" + "}" * depth + "]}"
    talk = read_text(tmp_path, jsonl(TALK[0], deep, TALK[1]))
    assert contents(only(talk)) == SAID[:2]
    assert [(s.line, s.damage) for s in talk.skipped] == [(2, True)]


def test_nesting_up_to_the_limit_and_any_number_of_brackets_are_read(tmp_path: Path) -> None:
    nested = '{"role":"user","content":[' + '{"a":' * 198 + "1" + "}" * 198 + "]}"
    flat: dict[str, Any] = {"role": "user", "content": [{"a": [[]] * 999}]}
    assert read_text(tmp_path, jsonl(nested, flat)).skipped == ()


@pytest.mark.parametrize("time", ["yesterday", 10**18, -(10**18), 1e300, "1e999", True, None, {}])
def test_a_time_that_is_none_is_left_open(tmp_path: Path, time: Any) -> None:
    (message,) = only(read_json(tmp_path, [TALK[0] | {"timestamp": time}])).messages
    assert message.at is None


def test_a_chat_that_speaks_openai_is_refused_as_anthropic(tmp_path: Path) -> None:
    chat = [{"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "1", "content": ""}]
    with pytest.raises(TranscriptError, match=r"cannot be read as anthropic.*Read it as openai"):
        read_json(tmp_path, chat, format="anthropic")

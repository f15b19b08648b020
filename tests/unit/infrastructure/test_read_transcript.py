"""Any file at all: a transcript, or one typed error that says what to do."""

import gzip
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.application.conversation.transcripts import Transcript
from refold.application.errors import TranscriptError
from refold.infrastructure.transcripts import chats
from refold.infrastructure.transcripts import transcript_source as source
from refold.infrastructure.transcripts.read_transcript import FORMATS, read_transcript
from tests.support.transcript_files import (
    call,
    claude_answer,
    claude_user,
    jsonl,
    only,
    read_json,
    read_text,
    result,
    text,
)


def codex_item(**fields: Any) -> dict[str, Any]:
    return {"type": "response_item", "timestamp": 1, "payload": fields}


SEEDS = [
    jsonl(
        {"type": "summary", "summary": "t", "leafUuid": "u1"},
        claude_user("u1", "go"),
        claude_answer("a1", "m1", text("I look"), requestId="r1"),
        claude_answer("a2", "m1", call("t1", a=1.5), requestId="r1"),
        claude_user("x1", [result("t1")], isSidechain=True, parentUuid="u1"),
        {"type": "system", "subtype": "compact_boundary", "sessionId": "s1"},
    ),
    json.dumps({"system": "s", "messages": [{"role": "user", "content": [text("hi")]}]}),
    json.dumps(
        [
            {"role": "system", "content": "s"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "ok"},
        ]
    ),
    jsonl(
        {"type": "session", "id": "p", "cwd": "/"},
        {
            "type": "message",
            "timestamp": "2025-12-08T22:41:05Z",
            "message": {
                "role": "assistant",
                "content": [{"type": "toolCall", "id": "1", "name": "n", "arguments": {}}],
            },
        },
        {"type": "message", "message": {"role": "bashExecution", "command": "ls", "output": ""}},
    ),
    jsonl(
        {"type": "session_meta", "timestamp": 1, "payload": {"id": "s"}},
        codex_item(type="reasoning", summary=[text("x")], encrypted_content="y"),
        codex_item(type="message", role="assistant", content=[text("hi")]),
        codex_item(type="function_call", name="f", call_id="c", arguments="{}"),
        codex_item(type="function_call_output", call_id="c", output="ok"),
    ),
    json.dumps(
        [
            {"id": 0, "source": "user", "action": "message", "args": {"content": "go"}},
            {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls"},
             "tool_call_metadata": {"tool_call_id": "c", "function_name": "bash", "model_response": {
                 "id": "r", "choices": [{"message": {"content": "I look", "tool_calls": [
                     {"id": "c", "function": {"arguments": "{}"}}]}}]}}},
            {"id": 2, "observation": "run", "content": "ok", "cause": 1, "extras": {"x": [1]}},
            {"id": 3, "observation": "recall", "content": "ok",
             "extras": {"microagent_knowledge": [{"content": "k"}]}},
        ]
    ),
    jsonl(
        {"id": "a", "source": "agent", "kind": "ActionEvent", "thought": [text("x")], "tool_name": "f",
         "tool_call_id": "c", "tool_call": {"arguments": "{}"}, "llm_response_id": "r"},
        {"id": "b", "source": "environment", "kind": "ObservationEvent", "tool_call_id": "c",
         "observation": {"content": [{"type": "image", "image_urls": ["u"]}]}},
        {"id": "d", "source": "user", "kind": "MessageEvent",
         "llm_message": {"role": "user", "content": [text("go")]}},
    ),
    json.dumps(
        {"eval": {"task_id": "t"}, "samples": [{"id": 1, "epoch": 1, "attachments": {"a": "A"},
         "events": [{"event": "model", "tools": [{"name": "f"}]}], "messages": [
             {"role": "user", "content": "attachment://a"},
             {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "x"}],
              "tool_calls": [{"id": "c", "function": "f", "arguments": {}}]},
             {"role": "tool", "tool_call_id": "c", "content": "", "error": {"message": "m"}}]}]}
    ),
    json.dumps(
        [
            {"id": "a", "type": "user_message", "timestamp": 1, "content": "go"},
            {"id": "b", "type": "assistant_message", "timestamp": 2, "content": "I look",
             "toolCalls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]},
            {"id": "d", "type": "tool_call", "timestamp": 3, "toolCallId": "c", "arguments": {}},
            {"id": "e", "type": "tool_result", "timestamp": 4, "toolCallId": "c", "content": [1]},
        ]
    ),
    json.dumps(
        {"created_at": "x", "checkpoint": {"thread_id": "t"}, "values": {"messages": [
            {"type": "human", "id": "a", "content": "go"},
            {"type": "ai", "id": "b", "content": [call("d")], "tool_calls": [
                {"id": "c", "name": "f", "args": {}}], "additional_kwargs": {"reasoning": "x"}},
            {"type": "tool", "id": "e", "content": "ok", "tool_call_id": "c", "status": "error"},
            {"type": "ai", "id": "f", "content": [
                {"type": "tool_call", "id": "g", "name": "f", "args": {}},
                {"type": "reasoning", "summary": [text("x")]},
                {"type": "file", "data": "QQ==", "mime_type": "application/pdf"}]}]}}
    ),
    jsonl(
        {"sessionId": "s", "projectHash": "h", "kind": "main"},
        {"$set": {"messages": [{"id": "a", "type": "user", "content": [{"text": "go"}]}]}},
        {"id": "b", "type": "gemini", "model": "m", "thoughts": [{"subject": "x"}],
         "content": [{"functionCall": {"id": "d", "name": "f", "args": {}}}],
         "toolCalls": [{"id": "c", "name": "f", "args": {}, "result": [
             {"functionResponse": {"id": "c", "response": {"output": "ok"}}}]}]},
        {"id": "e", "type": "user", "content": [
            {"functionResponse": {"id": "d", "name": "f", "response": {"error": "no"}}}]},
        {"id": "f", "type": "gemini", "content": [{"text": "go", "thought": False}]},
    ),
    jsonl(
        claude_user("u1", [{"type": "image", "source": {}}], origin={"kind": "human"}),
        {"type": "attachment", "uuid": "u2", "sessionId": "s1", "attachment": {
            "type": "queued_command", "prompt": "go", "source_uuid": "u3", "isMeta": False}},
    ),
]  # fmt: skip
PIECES = [b"null", b"[]", b"{}", b'"', b"1e999", b"-1", b"NaN", b"\xff", b"\x00", b"\n", b"[" * 300]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


def outcome(data: bytes, format: str = "auto") -> Transcript | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "talk.jsonl"
        path.write_bytes(data)
        try:
            first = read_transcript(path, format=format)
        except TranscriptError:
            return None
        assert read_transcript(path, format=format) == first
    threads = [c.thread_id for c in first.conversations]
    assert len(set(threads)) == len(threads)
    for conversation in first.conversations:
        names = [m.key for m in conversation.messages]
        assert len(set(names)) == len(names)
        assert 0 < len(conversation.thread_id) <= 200
        assert conversation.thread_id.isprintable()
    return first


@given(st.binary(max_size=200), st.sampled_from(["auto", *FORMATS]))
def test_any_bytes_give_a_transcript_or_a_typed_error(data: bytes, format: str) -> None:
    outcome(data, format)


@given(st.data(), st.sampled_from(SEEDS), st.sampled_from(["auto", *FORMATS]))
def test_a_file_with_damaged_bytes_gives_a_transcript_or_a_typed_error(
    data: st.DataObject, seed: str, format: str
) -> None:
    raw = seed.encode()
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(raw)))
        end = min(len(raw), start + data.draw(st.integers(0, 12)))
        raw = raw[:start] + data.draw(st.sampled_from(PIECES) | st.binary(max_size=3)) + raw[end:]
    outcome(raw, format)
    outcome(gzip.compress(raw)[: data.draw(st.integers(0, 400))], format)


@given(st.data(), st.sampled_from(SEEDS), st.sampled_from(["auto", *FORMATS]))
def test_a_file_with_odd_values_gives_a_transcript_or_a_typed_error(
    data: st.DataObject, seed: str, format: str
) -> None:
    def odd(value: Any) -> Any:
        if data.draw(st.integers(0, 9)) == 0:
            return data.draw(VALUES)
        if isinstance(value, dict):
            return {key: odd(inner) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, list):
            return [odd(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType]
        return value

    outcome(jsonl(*(odd(json.loads(line)) for line in seed.splitlines())).encode(), format)


def test_the_undamaged_seeds_are_read_as_what_they_are() -> None:
    found = [outcome(seed.encode()) for seed in SEEDS]
    assert [t and t.format for t in found] == [
        "claude-code",
        "anthropic",
        "openai",
        "pi",
        "codex",
        "openhands",
        "openhands",
        "inspect",
        "agent-tars",
        "langchain",
        "gemini-cli",
        "claude-code",
    ]


def test_gzip_is_told_by_its_first_bytes_not_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(gzip.compress(SEEDS[0].encode()))
    packed = read_transcript(path)
    plain = tmp_path / "talk.jsonl.gz"
    plain.write_text(SEEDS[0])
    assert read_transcript(plain).conversations == packed.conversations


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \n\x00", "is empty"),
        (b"\x89PNG\r\n\x1a\n\x00\xff", "no line of it is JSON text"),
        (b"Dear diary,\n", "no line of it is JSON text"),
        (b"\xff\xfe\x00", "no line of it is JSON text"),
        (gzip.compress(b"[]" * 999, mtime=0)[:-9], "gzip file that is broken or cut off"),
        (b"\x1f\x8b\x00nonsense", "gzip file that is broken or cut off"),
        (
            b"[]",
            "an empty list.*claude-code, codex, gemini-cli, pi, openhands, .*, openai, anthropic",
        ),
        (b'{"values": {"messages": []}}', "an object with the keys values"),
        (b'[{"id": 1, "type": "user_message"}]', "a list of 1; its first is an object with"),
        (b'{"a": 1}\n{"b": 2}\n', "2 JSON lines; the first is an object with the keys a"),
        (b'"text"', "one JSON value: a string"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_transcript_is_refused_with_what_it_looks_like(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "talk"
    path.write_bytes(content)
    with pytest.raises(TranscriptError, match=message):
        read_transcript(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="does not exist"):
        read_transcript(tmp_path / "none.jsonl")
    with pytest.raises(TranscriptError, match="is a folder"):
        read_transcript(tmp_path)
    with pytest.raises(TranscriptError, match="cannot be read"):
        read_transcript(Path("a\x00b"))


def test_an_unpacked_size_without_bounds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MAX_BYTES", 1000)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"[" + b" " * 5000))
    with pytest.raises(TranscriptError, match="over 1,000 bytes"):
        read_transcript(path)


def test_a_format_that_nobody_knows_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(
        TranscriptError, match="use auto, claude-code, codex, gemini-cli, pi, openhands"
    ):
        read_text(tmp_path, SEEDS[0], format="word")


def test_a_named_format_that_does_not_fit_is_refused_with_the_one_that_does(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match=r"cannot be read as pi.*Read it as claude-code"):
        read_text(tmp_path, SEEDS[0], format="pi")


def test_line_separators_inside_texts_and_windows_line_ends_do_not_break_lines(
    tmp_path: Path,
) -> None:
    line = json.dumps(claude_user("u1", "a\u2028b\x85c"), ensure_ascii=False)
    talk = read_text(tmp_path, f"\ufeff{line}\r\n\r\n")
    assert only(talk).messages[0].message.content == "a\u2028b\x85c"
    assert talk.skipped == ()


@pytest.mark.parametrize("between", ["\n", "\r\n", "", "\n\n"])
def test_files_with_byte_order_marks_that_were_joined_are_read_whole(
    tmp_path: Path, between: str
) -> None:
    first, second = (json.dumps(claude_user(u, u)) for u in ("u1", "u2"))
    talk = read_text(tmp_path, f"\ufeff{first}{between}\ufeff{second}\n\ufeff")
    assert [m.message.content for m in only(talk).messages] == ["u1", "u2"]
    assert not any(one.damage for one in talk.skipped)


def test_a_line_of_other_bytes_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    lines = [jsonl(claude_user(u, u)).encode() for u in ("u1", "u2")]
    path.write_bytes(lines[0] + b'{"type": "user\xff"}\n' + b"\x00" * 9 + b"\n\x00" + lines[1])
    talk = read_transcript(path)
    assert len(only(talk).messages) == 2
    assert [(s.line, s.reason, s.damage) for s in talk.skipped] == [
        (2, "line that is not UTF-8", True),
        (3, "line of zero bytes", True),
    ]


def test_thread_ids_are_short_printable_and_unique(tmp_path: Path) -> None:
    chat = {"messages": [{"role": "user", "content": "x"}]}
    names = ["a", "a", "a\nb", "x" * 199, " "]
    talk = read_json(tmp_path, [chat | {"id": name} for name in names])
    threads = [c.thread_id for c in talk.conversations]
    assert threads[:3] == ["talk:a", "talk:a#2", "talk:2"]
    assert len(set(threads)) == len(names)
    assert all(len(t) <= 200 and t.isprintable() for t in threads)


def test_a_role_that_is_no_text_is_told(tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text('{"system": "s", "messages": [{"role": [], "content": "x"}]}', "utf-8")
    with pytest.raises(TranscriptError, match=r"\[\]"):
        read_transcript(path)


def test_each_line_is_parsed_once_and_each_message_looked_at_once_for_a_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lines = tmp_path / "talk.jsonl", 50
    blocks = [{"type": "text", "text": "hello"}]
    said = [{"role": "assistant" if n % 2 else "user", "content": blocks} for n in range(lines)]
    path.write_text("\n".join(map(json.dumps, said)))
    calls = Counter[str]()

    def note(module: Any, name: str) -> None:
        original = getattr(module, name)

        def noted(*given: Any, **options: Any) -> Any:
            calls[name] += 1
            return original(*given, **options)

        monkeypatch.setattr(module, name, noted)

    note(source, "_too_deep")
    note(chats, "is_message")
    note(chats, "_openai_message")
    assert len(read_transcript(path).conversations[0].messages) == lines
    # Two values show that the file is not a document.
    assert calls == {"_too_deep": lines + 2, "is_message": lines, "_openai_message": lines}


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_what_comes_through_a_pipe_is_read_from_its_beginning(
    pack: Callable[[bytes], bytes],
) -> None:
    lines = [claude_user(f"u{n}", f"Question {n}") for n in range(100)]
    data = pack(jsonl(*lines).encode())
    assert len(data) < 1 << 16, "all of it fits into the pipe"
    read, write = os.pipe()
    try:
        os.write(write, data)
        os.close(write)
        transcript = read_transcript(f"/dev/fd/{read}")
    finally:
        os.close(read)
    assert not transcript.skipped
    assert len(only(transcript).messages) == len(lines)

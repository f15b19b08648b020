"""Sessions of pi: its blocks and roles in Anthropic shape."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.transcript_files import Json, contents, keys, only, read_records, reasons, text

HEADER = {"type": "session", "id": "p1", "cwd": "/x", "timestamp": "2025-12-09T00:53:29.825Z"}


def entry(role: str, **message: Any) -> Json:
    at = "2025-12-08T22:41:05.306Z"
    return {"type": "message", "timestamp": at, "message": {"role": role} | message}


def test_a_session_is_one_conversation_in_anthropic_shape(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path,
        HEADER,
        entry("user", content=[text("go")], timestamp=1765233665292),
        entry(
            "assistant",
            content=[
                {"type": "thinking", "thinking": "hm", "thinkingSignature": "c2ln"},
                text("I look"),
                {"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "x"}},
            ],
            api="anthropic-messages",
            model="claude-x",
            stopReason="toolUse",
        ),
        entry("toolResult", toolCallId="t1", content=[text("no")], isError=True),
    )
    assert talk.format == "pi"
    conversation = only(talk)
    assert conversation.thread_id == "p1"
    assert contents(conversation) == [
        [text("go")],
        [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            text("I look"),
            {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "x"}},
        ],
        [{"type": "tool_result", "tool_use_id": "t1", "content": [text("no")], "is_error": True}],
    ]
    assert [m.message.role for m in conversation.messages] == ["user", "assistant", "user"]
    assert keys(conversation) == ["line:2", "line:3", "line:4"]
    assert conversation.messages[1].model == "claude-x"
    assert conversation.messages[1].stop_reason == "toolUse"
    assert conversation.messages[0].at == datetime(2025, 12, 8, 22, 41, 5, 306000, tzinfo=UTC)


def test_thinking_without_a_signature_of_anthropic_carries_none(tmp_path: Path) -> None:
    plain = {"type": "thinking", "thinking": "hm"}
    talk = read_records(
        tmp_path,
        HEADER,
        entry("assistant", content=[plain | {"thinkingSignature": ""}], stopReason="aborted"),
        entry("assistant", content=[plain | {"thinkingSignature": "x"}], api="openai-responses"),
    )
    assert contents(only(talk)) == [[plain], [plain]]
    assert only(talk).messages[0].stop_reason == "aborted"


def test_a_shell_command_of_the_user_is_told_in_words(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path,
        HEADER,
        entry("bashExecution", command="ls", output="a\nb\n", exitCode=0),
        entry("bashExecution", command="false", output="", exitCode=1, truncated=True),
        entry("bashExecution", command="env", output="x", excludeFromContext=True),
    )
    assert contents(only(talk)) == [
        "I ran a shell command.\n$ ls\na\nb",
        "I ran a shell command.\n$ false\n(exit code 1)\n(output cut off by the recording tool)",
    ]
    assert reasons(talk)[-1] == "shell command that the model was not shown"


def test_images_and_unknown_blocks_are_kept(tmp_path: Path) -> None:
    image = {"type": "image", "data": "QQ", "mimeType": "image/jpeg"}
    talk = read_records(tmp_path, HEADER, entry("user", content=[image, {"type": "new", "x": 1}]))
    source = {"type": "base64", "media_type": "image/jpeg", "data": "QQ"}
    assert contents(only(talk)) == [[{"type": "image", "source": source}, {"type": "new", "x": 1}]]


def test_other_records_are_named(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path,
        HEADER,
        {"type": "session_info", "name": "Refactor"},
        {"type": "compaction", "summary": "…", "tokensBefore": 9},
        {"type": "model_change", "modelId": "y"},
        {"type": "custom_message", "id": "e1", "content": "injected"},
        {"no": "type"},
        entry("user", content=None),
    )
    assert only(talk).label == "Refactor"
    assert contents(only(talk)) == ["injected"]
    assert keys(only(talk)) == ["e1"]
    assert [(s.line, s.damage) for s in talk.skipped] == [
        (1, False),
        (2, False),
        (3, False),
        (4, False),
        (6, True),
        (7, True),
    ]


def test_who_wrote_a_message_follows_from_its_role(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path,
        HEADER,
        entry("user", content="go"),
        entry("bashExecution", command="ls", output="a"),
        entry("custom", content="a reminder"),
        entry("assistant", content=[text("done")]),
    )
    authors = [m.message.author for m in only(talk).messages]
    assert authors == ["person", "tool", "program", None]


@pytest.mark.parametrize("kept", [{"firstKeptEntryId": "e2"}, {"firstKeptEntryIndex": 2}])
def test_a_compaction_is_a_summary_with_the_messages_that_stay(
    tmp_path: Path, kept: dict[str, Any]
) -> None:
    records = [
        {"type": "message", "id": f"e{n}", "message": {"role": "user", "content": words}}
        for n, words in enumerate(("first", "second", "third"), 1)
    ]
    made = {"type": "compaction", "id": "k", "summary": "Short.", "tokensBefore": 9, **kept}
    talk = read_records(tmp_path, HEADER, *records[:2], made, *records[2:])
    (summary,) = only(talk).summaries
    assert (summary.position, summary.text, summary.key) == (2, "Short.", "k")
    assert summary.kept == "second"

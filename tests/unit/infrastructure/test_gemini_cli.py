"""Session files of the Gemini CLI: a record with calls becomes two messages, in both forms of the file."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.transcript_files import (
    contents,
    keys,
    only,
    read_json,
    read_text,
    reasons,
    result,
    text,
)

HEADER = {"sessionId": "g-1", "projectHash": "h", "startTime": "2026-02-01T10:00:00Z"}


def call(name: str, output: str, **more: Any) -> dict[str, Any]:
    response = {"functionResponse": {"name": name, "response": {"output": output}}}
    return {"id": f"{name}-1", "name": name, "args": {"path": "a.py"}, "result": [response], **more}


RECORDS: list[dict[str, Any]] = [
    {"id": "m1", "type": "user", "content": "Read it"},
    {"id": "m2", "type": "gemini", "content": "I read.", "model": "gemini-x",
     "thoughts": [{"subject": "Reading"}], "toolCalls": [call("read_file", "words")]},
    {"id": "m3", "type": "info", "content": "Update available"},
    {"id": "m4", "type": "gemini", "content": "",
     "toolCalls": [call("edit_file", "no", status="error")]},
    {"id": "m5", "type": "user", "content": [{"text": "Thanks"}]},
]  # fmt: skip
TOLD = [
    "Read it",
    [{"type": "thinking", "thinking": "Reading"},
     text("I read."), {"type": "tool_use", "id": "read_file-1", "name": "read_file",
                       "input": {"path": "a.py"}}],
    [result("read_file-1", "words")],
    [{"type": "tool_use", "id": "edit_file-1", "name": "edit_file", "input": {"path": "a.py"}}],
    [result("edit_file-1", "no") | {"is_error": True}],
    [text("Thanks")],
]  # fmt: skip


@pytest.mark.parametrize("form", ["one object", "lines"])
def test_a_call_and_its_result_stand_in_two_messages(tmp_path: Path, form: str) -> None:
    if form == "lines":
        written = "".join(json.dumps(line) + "\n" for line in (HEADER, *RECORDS))
    else:
        written = json.dumps({**HEADER, "messages": RECORDS}, indent=2)
    talk = read_text(tmp_path, written)
    assert talk.format == "gemini-cli"
    assert only(talk).thread_id == "g-1"
    assert contents(only(talk)) == TOLD
    assert keys(only(talk)) == ["m1", "m2", "m2:results", "m4", "m4:results", "m5"]
    assert reasons(talk) == ["message of the program"]
    assert only(talk).summaries == ()


def test_a_record_that_is_written_again_replaces_the_first(tmp_path: Path) -> None:
    first = {"id": "m1", "type": "gemini", "content": "Half"}
    again = {"id": "m1", "type": "gemini", "content": "Half and more"}
    written = "".join(json.dumps(line) + "\n" for line in (HEADER, first, again))
    assert contents(only(read_text(tmp_path, written))) == [[text("Half and more")]]


def test_a_broken_record_does_not_end_the_reading(tmp_path: Path) -> None:
    odd: list[Any] = [7, {"id": "x", "type": "user", "content": 5}, *RECORDS[:1]]
    talk = read_text(tmp_path, json.dumps({**HEADER, "messages": odd}))
    assert contents(only(talk)) == ["Read it"]
    assert sum(skipped.damage for skipped in talk.skipped) == 2


@pytest.mark.parametrize(
    ("words", "author"),
    [
        ("This is the Gemini CLI. We are setting up the context for our chat.", "program"),
        ("<session_context>\nToday is Monday.\n</session_context>", "program"),
        ("Is this the Gemini CLI?", "person"),
    ],
)
def test_the_first_words_of_the_program_are_not_a_persons(
    tmp_path: Path, words: str, author: str
) -> None:
    said = {"id": "1", "timestamp": "2026-01-01T00:00:00Z", "type": "user", "content": words}
    session = {"sessionId": "s", "projectHash": "p", "messages": [said]}
    (message,) = only(read_json(tmp_path, session)).messages
    assert message.message.author == author

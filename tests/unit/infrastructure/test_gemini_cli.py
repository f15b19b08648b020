"""Session files of the Gemini CLI: a record with calls becomes two messages, in both forms of the file."""

import json
from pathlib import Path
from typing import Any

import pytest

from refold.domain.messages import said as said_by
from tests.support.transcript_files import (
    contents,
    jsonl,
    keys,
    only,
    read_json,
    read_records,
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
        ("<hook_context>Be short.</hook_context>", "program"),
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


def talked(kind: str, given_id: str, content: Any, **more: Any) -> dict[str, Any]:
    model = {"model": "gemini-x"} if kind == "gemini" else {}
    return {"id": given_id, "type": kind, "content": content, **model, **more}


def again(kind: str, given_id: str, *words: str) -> dict[str, Any]:
    """A record of the history that the program writes again, without the name of a model."""
    parts = [{"text": one} for one in words]
    return {"id": given_id, "type": kind, "content": parts}


def response(call_id: str, output: Any) -> dict[str, Any]:
    return {"functionResponse": {"id": call_id, "name": "look", "response": output}}


def looked(**more: Any) -> dict[str, Any]:
    return {"id": "look-1", "name": "look", "args": {}, **more}


CALL: dict[str, Any] = {"type": "tool_use", "id": "look-1", "name": "look", "input": {}}


def test_messages_in_a_change_of_the_session_are_read(tmp_path: Path) -> None:
    first = {"$set": {"messages": [talked("user", "1", [{"text": "Hello"}])]}}
    more = [talked("user", "1", [{"text": "Hello"}]), talked("gemini", "2", "Hi")]
    written = jsonl(HEADER, first, {"$set": {"messages": more}}, {"$set": {"lastUpdated": "x"}})
    talk = read_text(tmp_path, written)
    assert contents(only(talk)) == [[text("Hello")], [text("Hi")]]
    assert keys(only(talk)) == ["1", "2"]
    assert reasons(talk) == ["change of the header"]


def test_calls_and_results_without_words_in_a_change_of_the_session_are_read(
    tmp_path: Path,
) -> None:
    answer = response("look-1", {"output": "a tree"})
    history = [
        talked("user", "1", [{"text": "Look."}]),
        talked("gemini", "2", [{"functionCall": looked()}]),
        talked("user", "3", [answer]),
        talked("gemini", "4", [{"text": "A tree."}]),
    ]
    talk = read_records(tmp_path, HEADER, {"$set": {"messages": history}})
    assert contents(only(talk)) == [
        [text("Look.")],
        [CALL],
        [result("look-1", "a tree")],
        [text("A tree.")],
    ]


def test_a_request_that_is_written_again_before_calls_counts_once(tmp_path: Path) -> None:
    answer = response("look-1", {"output": "a tree"})
    called = looked(status="success", result=[answer])
    context = [
        again("user", "u9", "Look."),
        {"id": "g9", "type": "gemini", "content": [{"functionCall": looked()}]},
        talked("user", "r9", [answer]),
    ]
    talk = read_records(
        tmp_path,
        HEADER,
        talked("user", "u1", "Look."),
        talked("gemini", "g1", "", toolCalls=[called]),
        {"$set": {"messages": context}},
    )
    assert contents(only(talk)) == ["Look.", [CALL], [result("look-1", "a tree")]]


def test_a_history_that_is_written_again_after_a_compression_counts_once(tmp_path: Path) -> None:
    kept = [again("user", "u9", "And blue?"), again("gemini", "g9", "Yes.\u200b <!-- hm -->")]
    context = [
        again("user", "s", "<state_snapshot>They like red.</state_snapshot>"),
        again("gemini", "a", "Got it. Thanks for the additional context!"),
        *kept,
    ]
    talk = read_records(
        tmp_path,
        HEADER,
        talked("user", "u1", "I like red"),
        talked("gemini", "g1", "Yes."),
        talked("user", "u2", [{"text": "And blue?"}]),
        talked("gemini", "g2", "Yes."),
        *context,
        {"$set": {"messages": context}},
        {"$rewindTo": "u9"},
        talked("user", "u3", [{"text": "And blue?"}]),
        talked("gemini", "g3", "Yes."),
    )
    said = ["I like red", "Yes.", "And blue?", "Yes.", "And blue?", "Yes."]
    assert [said_by(one.message) for one in only(talk).messages] == said
    (summary,) = only(talk).summaries
    assert (summary.position, summary.key) == (4, "s")
    assert reasons(talk) == [
        *["summary by the recording tool; the original is before it"] * 2,
        *["message that was written again for the context"] * 2,
        "step back; the messages that it took back are kept",
    ]


def test_equal_words_of_older_versions_are_all_kept(tmp_path: Path) -> None:
    unnamed = [again(kind, f"{kind}{n}", "Yes.") for n in (1, 2) for kind in ("user", "gemini")]
    assert len(only(read_records(tmp_path, HEADER, *unnamed)).messages) == 4


def test_a_result_that_is_also_a_message_counts_once(tmp_path: Path) -> None:
    answer = response("look-1", {"output": "a tree"})
    called = looked(status="success", result=[answer])
    talk = read_records(
        tmp_path,
        HEADER,
        talked("gemini", "g1", [{"functionCall": looked()}], toolCalls=[called]),
        talked("user", "r1", [answer]),
    )
    assert contents(only(talk)) == [[CALL], [result("look-1", "a tree")]]
    assert reasons(talk) == ["result, which a call has as well"]


def test_calls_and_results_can_be_parts_of_the_content(tmp_path: Path) -> None:
    thought = {"text": "Where?", "thought": True}
    talk = read_records(
        tmp_path,
        HEADER,
        talked("gemini", "g1", [thought, {"functionCall": looked()}]),
        talked("user", "r1", [response("look-1", {"error": "dark"}), {"text": "Go on"}]),
    )
    thinking = {"type": "thinking", "thinking": "Where?"}
    assert contents(only(talk)) == [
        [thinking, CALL],
        [result("look-1", "dark") | {"is_error": True}, text("Go on")],
    ]


def test_a_call_that_still_ran_has_no_result(tmp_path: Path) -> None:
    running = [looked(status="executing"), looked(id="look-2", status="success", result=None)]
    apart = talked("user", "r1", [response("look-2", {"output": "a bird"})])
    talk = read_records(tmp_path, HEADER, talked("gemini", "g1", "", toolCalls=running), apart)
    assert contents(only(talk)) == [[CALL, CALL | {"id": "look-2"}], [result("look-2", "a bird")]]


def test_results_keep_their_pictures_and_data(tmp_path: Path) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}
    nested = {"functionResponse": {"response": {"output": "seen"}, "parts": [picture]}}
    source = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
    image = {"type": "image", "source": source}
    calls = [
        looked(result=[nested, picture]),
        looked(id="look-2", result=[response("look-2", {"rows": 3})]),
    ]
    talk = read_records(tmp_path, HEADER, talked("gemini", "g1", "", toolCalls=calls))
    assert contents(only(talk))[1] == [
        result("look-1", [text("seen"), image, image]),
        result("look-2", '{"rows": 3}'),
    ]


def test_a_result_that_the_program_shortened_later_is_kept_in_full(tmp_path: Path) -> None:
    full = talked(
        "gemini", "g1", "", toolCalls=[looked(result=[response("look-1", {"output": "a tree"})])]
    )
    masked = response("look-1", {"output": "<tool_output_masked>a</tool_output_masked>"})
    talk = read_records(
        tmp_path, HEADER, full, talked("gemini", "g1", "", toolCalls=[looked(result=[masked])])
    )
    assert contents(only(talk)) == [[CALL], [result("look-1", "a tree")]]


def test_the_task_of_a_sub_agent_is_written_by_a_program(tmp_path: Path) -> None:
    task = talked("user", "u1", "Look for trees")
    talk = read_records(tmp_path, HEADER | {"kind": "subagent"}, task)
    assert [one.message.author for one in only(talk).messages] == ["program"]


def test_an_answer_without_words_is_named(tmp_path: Path) -> None:
    talk = read_records(tmp_path, HEADER, talked("user", "u1", "Hi"), talked("gemini", "g1", ""))
    assert contents(only(talk)) == ["Hi"]
    assert reasons(talk) == ["message without words"]


def test_a_call_in_two_records_counts_once(tmp_path: Path) -> None:
    answered = looked(status="success", result=[response("look-1", {"output": "a tree"})])
    talk = read_records(
        tmp_path,
        HEADER,
        talked("gemini", "g1", [{"functionCall": looked()}]),
        talked("gemini", "g2", "", toolCalls=[answered]),
        talked("gemini", "g3", "", toolCalls=[answered | {"args": {"at": "b"}}]),
    )
    assert contents(only(talk)) == [
        [CALL],
        [result("look-1", "a tree")],
        [CALL | {"input": {"at": "b"}}],
        [result("look-1", "a tree")],
    ]


def test_calls_without_ids_stay_apart_and_find_their_results(tmp_path: Path) -> None:
    looks = [{"functionCall": {"name": "look", "args": {"at": place}}} for place in ("a", "b")]
    seen = [{"functionResponse": {"name": "look", "response": {"output": one}}} for one in "AB"]
    talk = read_records(tmp_path, HEADER, talked("gemini", "g1", looks), talked("user", "u1", seen))
    called, answered = contents(only(talk))
    assert [(one["id"], one["input"]["at"]) for one in called] == [
        ("call_2", "a"),
        ("call_2_1", "b"),
    ]
    assert answered == [result("call_2", "A"), result("call_2_1", "B")]


def test_a_session_without_messages_is_no_error(tmp_path: Path) -> None:
    assert read_records(tmp_path, HEADER).conversations == ()
    assert read_records(tmp_path, HEADER, {"$set": {"messages": []}}).conversations == ()


def test_ids_that_are_no_texts_do_not_end_the_reading(tmp_path: Path) -> None:
    parts = [{"functionCall": looked(id={})}, {"functionCall": looked(id=[])}]
    odd = talked("gemini", "g1", parts, toolCalls=[looked(id={}, name=[])])
    assert len(only(read_records(tmp_path, HEADER, odd)).messages[0].message.content) == 3

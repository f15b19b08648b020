"""Claude Code sessions: what becomes a message, what is left out, and what each is called."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.transcript_files import (
    Json,
    call,
    claude_answer,
    claude_user,
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


def test_the_lines_of_one_answer_become_one_message_and_results_follow(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path,
        claude_user("u1", "go"),
        claude_answer("a1", "m1", text("I look"), requestId="r1"),
        claude_answer("a2", "m1", call("t1"), requestId="r1"),
        claude_user("u2", [result("t1")]),
        claude_answer("a3", "m1", call("t2"), requestId="r1"),
        claude_user("u3", [result("t2")]),
    )
    assert talk.format == "claude-code"
    conversation = only(talk)
    assert conversation.thread_id == "s1"
    assert contents(conversation) == [
        "go",
        [text("I look"), call("t1"), call("t2")],
        [result("t1")],
        [result("t2")],
    ]
    assert keys(conversation) == ["u1", "m1", "u2", "u3"]
    assert [m.line for m in conversation.messages] == [1, 2, 4, 6]


def test_one_message_id_in_two_requests_stays_two_messages(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path,
        claude_answer("a1", "m1", text("one"), requestId="r1"),
        claude_answer("a2", "m1", text("two"), requestId="r2"),
    )
    assert contents(only(talk)) == [[text("one")], [text("two")]]
    assert keys(only(talk)) == ["m1", "m1#2"]


def test_a_block_that_a_later_line_repeats_is_kept_once(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path,
        claude_answer("a1", "m1", text("one")),
        claude_answer("a2", "m1", text("one"), call("t1")),
    )
    assert contents(only(talk)) == [[text("one"), call("t1")]]
    assert reasons(talk) == ["block repeated by a later line"]


def test_a_tool_call_written_again_is_kept_in_its_later_form(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path,
        claude_answer("a1", "m1", call("t1"), text("now")),
        claude_answer("a2", "m1", call("t1", path="x")),
    )
    assert contents(only(talk)) == [[call("t1", path="x"), text("now")]]
    assert reasons(talk) == ["earlier form of a tool call, written again later"]


def test_blocks_and_fields_that_nobody_knows_are_kept(tmp_path: Path) -> None:
    strange = {"type": "hologram", "depth": [1, {"a": None}], "cache_control": {"ttl": "1h"}}
    talk = read_records(tmp_path, claude_answer("a1", "m1", strange))
    assert contents(only(talk)) == [[strange]]


def test_what_is_known_about_a_message_is_kept(tmp_path: Path) -> None:
    record = claude_answer("a1", "m1", text("hi"), timestamp="2026-01-14T15:18:07.297Z")
    record["message"]["stop_reason"] = "end_turn"
    (message,) = only(read_records(tmp_path, record)).messages
    assert message.model == "claude-x"
    assert message.stop_reason == "end_turn"
    assert message.message_id == "m1"
    assert message.at == datetime(2026, 1, 14, 15, 18, 7, 297000, tzinfo=UTC)


def test_each_side_chain_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path,
        claude_user("u1", "main"),
        claude_user("x1", "first agent", isSidechain=True, parentUuid=None),
        claude_user("y1", "second agent", isSidechain=True, parentUuid=None, agentId="ag2"),
        claude_answer("x2", "m1", text("first"), isSidechain=True, parentUuid="x1"),
        claude_answer("y2", "m2", text("second"), isSidechain=True, parentUuid="y1", agentId="ag2"),
        claude_answer("x3", "m1", call("t1"), isSidechain=True, parentUuid="x2"),
    )
    assert {c.thread_id: contents(c) for c in talk.conversations} == {
        "s1": ["main"],
        "s1:x1": ["first agent", [text("first"), call("t1")]],
        "s1:ag2": ["second agent", [text("second")]],
    }


def test_two_sessions_in_one_file_are_two_conversations(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path, claude_user("u1", "one"), claude_user("u2", "two", sessionId="s2")
    )
    assert [c.thread_id for c in talk.conversations] == ["s1", "s2"]


def test_compactions_are_named_and_the_summary_gives_way_to_the_original(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path,
        claude_user("u1", "go"),
        {"type": "system", "subtype": "microcompact_boundary", "sessionId": "s1"},
        {"type": "system", "subtype": "compact_boundary", "sessionId": "s1"},
        claude_user("u2", "This session is continued", isCompactSummary=True),
        claude_user("u3", "on"),
    )
    assert contents(only(talk)) == ["go", "on"]
    (summary,) = only(talk).summaries
    assert (summary.position, summary.text) == (1, "This session is continued")
    assert (summary.key, summary.at) == ("u2", only(talk).messages[0].at)
    assert reasons(talk) == [
        "micro compaction boundary",
        "compaction boundary",
        "summary by the recording tool; the original is before it",
    ]
    assert not any(item.damage for item in talk.skipped)


def test_a_summary_that_opens_the_file_is_kept(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path, claude_user("u2", "Earlier: …", isCompactSummary=True), claude_user("u3", "on")
    )
    assert contents(only(talk)) == ["Earlier: …", "on"]
    assert [(s.position, s.key) for s in only(talk).summaries] == [(0, "u2")]


def test_a_summary_that_is_written_again_with_its_uuid_counts_once(tmp_path: Path) -> None:
    summary = claude_user("u2", "A summary", isCompactSummary=True)
    other = claude_user("u4", "Another", isCompactSummary=True)
    go, on = claude_user("u1", "go"), claude_user("u3", "on")
    talk = read_records(tmp_path, go, summary, on, other, summary)
    assert [s.key for s in only(talk).summaries] == ["u2", "u4"]


def test_messages_that_no_model_wrote_are_left_out(tmp_path: Path) -> None:
    made_up = claude_answer("a2", "m2", text("No response requested."))
    made_up["message"]["model"] = "<synthetic>"
    talk = read_records(
        tmp_path,
        claude_user("u1", "go"),
        claude_answer("a1", "m1", text("API Error: 500"), isApiErrorMessage=True),
        made_up,
        claude_user("u2", "<caveat>", isMeta=True),
    )
    assert contents(only(talk)) == ["go", "<caveat>"]
    assert reasons(talk) == [
        "API error shown as a message",
        "message made up by the recording tool",
    ]


def test_a_repeated_record_is_kept_once_and_another_with_its_uuid_is_not_lost(
    tmp_path: Path,
) -> None:
    talk = read_records(
        tmp_path, claude_user("u1", "go"), claude_user("u1", "go"), claude_user("u1", "other")
    )
    assert contents(only(talk)) == ["go", "other"]
    assert keys(only(talk)) == ["u1", "u1#2"]
    assert reasons(talk) == ["record that came before, with the same uuid"]


def test_other_records_are_counted_by_type(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path,
        claude_user("u1", "go"),
        {"type": "progress", "sessionId": "s1"},
        {"type": "progress", "sessionId": "s1"},
        {"type": "file-history-snapshot", "snapshot": {}},
        {"type": "system", "subtype": "turn_duration", "sessionId": "s1"},
        {"type": "brand-new", "sessionId": "s1"},
    )
    assert [(s.reason, s.detail) for s in talk.skipped] == [
        ("progress record", "progress"),
        ("progress record", "progress"),
        ("file history snapshot", "file-history-snapshot"),
        ("system record", "turn_duration"),
        ("record of another type", "brand-new"),
    ]


def test_a_session_without_messages_is_no_error(tmp_path: Path) -> None:
    talk = read_records(tmp_path, {"type": "summary", "summary": "Fix it", "leafUuid": "x"})
    assert talk.format == "claude-code"
    assert talk.conversations == ()
    assert reasons(talk) == ["title of another session"]


def test_a_title_labels_the_conversation_that_it_names(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path,
        {"type": "summary", "summary": "Another session", "leafUuid": "elsewhere"},
        {"type": "summary", "summary": "Fix the parser", "leafUuid": "u1"},
        claude_user("u1", "go"),
    )
    assert only(talk).label == "Fix the parser"


def test_two_records_on_one_line_are_both_recovered(tmp_path: Path) -> None:
    line = jsonl(claude_user("u1", "one")).strip() + jsonl(claude_user("u2", "two"))
    talk = read_text(tmp_path, line + jsonl(claude_user("u3", "three")))
    assert contents(only(talk)) == ["one", "two", "three"]
    assert [(s.line, s.reason, s.damage) for s in talk.skipped] == [
        (1, "records run together", False)
    ]


def test_a_broken_line_is_named_with_its_number_and_the_rest_is_read(tmp_path: Path) -> None:
    talk = read_text(
        tmp_path,
        jsonl(claude_user("u1", "one"), '{"type":"user","uu', claude_user("u3", "three"), "17"),
    )
    assert contents(only(talk)) == ["one", "three"]
    assert [(s.line, s.reason, s.damage) for s in talk.skipped] == [
        (2, "broken line", True),
        (4, "record that is no object", True),
    ]


def test_a_message_without_a_usable_shape_costs_only_itself(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path,
        claude_user("u1", "one"),
        claude_user("u2", 17),
        claude_user("u3", [17]),
        claude_user("u4", "x", message={"role": "wizard", "content": "x"}),
        claude_user("u5", "x", message="x"),
    )
    assert contents(only(talk)) == ["one"]
    assert [(s.line, s.damage) for s in talk.skipped] == [
        (2, True),
        (3, True),
        (4, True),
        (5, True),
    ]


def test_a_file_that_has_grown_gives_the_same_keys_to_what_it_held(tmp_path: Path) -> None:
    records = [
        {"type": "summary", "summary": "t", "leafUuid": "u1"},
        claude_user("u1", "go"),
        claude_answer("a1", "m1", text("one")),
        claude_user("", "no uuid"),
        claude_user("x1", "agent", isSidechain=True),
        claude_answer("a2", "m2", text("two")),
        claude_answer("x2", "m3", text("sub"), isSidechain=True, parentUuid="x1"),
        claude_answer("a3", "m2", call("t1")),
    ]
    whole = {c.thread_id: keys(c) for c in read_records(tmp_path, *records).conversations}
    for length in range(2, len(records)):
        for part in read_records(tmp_path, *records[:length]).conversations:
            assert whole[part.thread_id][: len(part.messages)] == keys(part)


def test_who_wrote_a_message_is_what_the_record_says(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path,
        claude_user("u1", "go"),
        claude_user("u2", "Base directory for this skill: /x\n\nAlways do this."),
        claude_user("u3", "a loaded skill", isMeta=True),
        claude_user("u4", "<local-command-stdout>done</local-command-stdout>"),
        claude_user("u5", "<bash-stdout></bash-stdout><bash-stderr>no</bash-stderr>"),
        claude_user("u6", "<command-name>/fix</command-name> <command-args>it</command-args>"),
        claude_user("u7", [result("t1")]),
        claude_user("u8", "What it was about", isCompactSummary=True),
        claude_answer("a1", "m1", text("one")),
    )
    said = {m.key: m.message.author for m in only(talk).messages}
    program = dict.fromkeys(("u2", "u3", "u4", "u5"), "program")
    assert said == {"u1": "person", "u6": "person", "u7": None, "m1": None} | program


def test_the_task_of_a_sub_agent_is_written_by_a_program(tmp_path: Path) -> None:
    talk = read_records(tmp_path, claude_user("u1", "find it", isSidechain=True, agentId="b"))
    assert [m.message.author for m in only(talk).messages] == ["program"]


def test_a_block_of_no_kind_was_written_by_nobody(tmp_path: Path) -> None:
    talk = read_records(tmp_path, claude_user("u1", [{**result("t1"), "type": []}]))
    assert [m.message.author for c in talk.conversations for m in c.messages] in ([], [None])


def queued(uuid: str, prompt: Any, **more: Any) -> Json:
    """An attachment with a message that was queued while the agent worked."""
    attachment = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt"} | more
    return {"type": "attachment", "uuid": uuid, "sessionId": "s1", "attachment": attachment}


def test_a_message_typed_while_the_agent_works_is_kept(tmp_path: Path) -> None:
    note = "<task-notification>done</task-notification>"
    picture = [text("like this"), {"type": "image", "source": {"type": "url", "url": "https://x"}}]
    talk = read_records(
        tmp_path,
        claude_user("u1", "go"),
        claude_answer("a1", "m1", call("t1")),
        queued("q1", "and the tests", origin={"kind": "human"}),
        queued("q2", picture),
        queued("q3", note, commandMode="task-notification"),
        queued("q4", "from another session", origin={"kind": "peer"}),
        {"type": "attachment", "sessionId": "s1", "attachment": {"type": "todo_reminder"}},
        claude_user("u2", [result("t1")]),
    )
    said = [(m.key, m.message.content, m.message.author) for m in only(talk).messages[2:]]
    assert said == [
        ("q1", "and the tests", "person"),
        ("q2", tuple(picture), "person"),
        ("q3", note, "program"),
        ("q4", "from another session", "program"),
        ("u2", (result("t1"),), None),
    ]
    assert reasons(talk) == ["attachment record"]


def test_a_queued_message_with_a_record_of_its_own_counts_once(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path,
        claude_user("u1", "first"),
        queued("q1", "first", source_uuid="u1"),
        queued("q2", "second", source_uuid="u2"),
        claude_user("u2", "second"),
    )
    assert contents(only(talk)) == ["first", "second"]
    assert reasons(talk) == ["record that came before, with the same uuid"] * 2


def test_a_picture_without_words_is_shown_by_a_person(tmp_path: Path) -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://x"}}
    talk = read_records(tmp_path, claude_user("u1", [image]))
    assert [m.message.author for m in only(talk).messages] == ["person"]


def test_other_agents_are_not_persons(tmp_path: Path) -> None:
    talk = read_records(
        tmp_path,
        claude_user("u1", '<teammate-message teammate_id="lead">Go</teammate-message>'),
        claude_user("u2", "Go", origin={"kind": "peer"}),
        claude_user("u3", "Go", origin={"kind": "human"}),
    )
    assert [m.message.author for m in only(talk).messages] == ["program", "program", "person"]


@pytest.mark.parametrize("form", ["lines", "list"])
def test_what_claude_prints_is_read_and_sub_agents_stay_apart(tmp_path: Path, form: str) -> None:
    def printed(kind: str, content: Any, caller: str | None = None, **more: Any) -> Json:
        message = {"role": kind, "content": content} | more
        return {"type": kind, "message": message, "session_id": "p1", "parent_tool_use_id": caller}

    records = [
        {"type": "system", "subtype": "init", "session_id": "p1"},
        printed("user", "go"),
        printed("assistant", [call("t1")], id="m1"),
        printed("user", "look for trees", "t1"),
        printed("assistant", [text("a tree")], "t1", id="m2"),
        printed("user", [result("t1")]),
        {"type": "result", "result": "done", "session_id": "p1"},
    ]
    talk = read_records(tmp_path, *records) if form == "lines" else read_json(tmp_path, records)
    assert talk.format == "claude-code"
    assert {one.thread_id: contents(one) for one in talk.conversations} == {
        "p1": ["go", [call("t1")], [result("t1")]],
        "p1:t1": ["look for trees", [text("a tree")]],
    }
    assert talk.conversations[1].messages[0].message.author == "program"
    assert reasons(talk) == ["system record", "record of another type"]

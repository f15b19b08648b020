"""``refold import FOLDER``: every session of a folder, once, and what is written to it meanwhile."""

import gzip
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.support.command_line import Refold
from tests.support.transcript_files import claude_answer, claude_user, jsonl, text

CODEX = jsonl(
    {"type": "session_meta", "timestamp": "2026-02-01T10:00:00Z", "payload": {"id": "codex-1"}},
    {"type": "response_item", "timestamp": "2026-02-01T10:00:01Z", "payload": {
        "type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go"}]}},
)  # fmt: skip


def session(name: str, turns: int) -> str:
    lines: list[Any] = []
    for n in range(turns):
        lines.append(claude_user(f"{name}-u{n}", f"Question {n}", sessionId=name))
        lines.append(
            claude_answer(f"{name}-a{n}", f"{name}-m{n}", text(f"Answer {n}"), sessionId=name)
        )
    return jsonl(*lines)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sessions of two tools in folders, and files that are none."""
    projects = tmp_path / "projects"
    (projects / "one" / "deep").mkdir(parents=True)
    (projects / "one" / "a.jsonl").write_text(session("a", 2))
    (projects / "one" / "deep" / "b.jsonl.gz").write_bytes(gzip.compress(session("b", 1).encode()))
    (projects / "rollout.jsonl").write_text(CODEX)
    (projects / "settings.json").write_text('{"theme": "dark"}')
    (projects / "notes.txt").write_text("no session")
    (projects / "empty.jsonl").write_text("")
    return projects


def lengths(refold: Refold) -> dict[str, int]:
    rows = refold("list", "--json").answer["conversations"]
    return {row["thread_id"]: row["messages"] for row in rows}


def test_every_session_below_a_folder_is_imported_once(refold: Refold, folder: Path) -> None:
    first = refold("import", str(folder))
    assert "3 files with 3 conversations and 7 messages, of which 7 are new" in " ".join(
        first.out.split()
    )
    assert lengths(refold) == {"a": 4, "b": 2, "codex-1": 1}
    again = refold("import", str(folder))
    assert "7 messages, of which 0 are new" in " ".join(again.out.split())
    assert lengths(refold) == {"a": 4, "b": 2, "codex-1": 1}


def test_files_that_are_no_sessions_are_counted_and_broken_ones_named(
    refold: Refold, folder: Path
) -> None:
    (folder / "broken.jsonl.gz").write_bytes(b"\x1f\x8b\x00nonsense")
    done = refold("import", str(folder))
    assert "2 other files" in " ".join(done.out.split())
    assert "broken.jsonl.gz is a gzip file that is broken" in " ".join(done.err.split())
    assert done.code == 2
    assert lengths(refold) == {"a": 4, "b": 2, "codex-1": 1}


def test_a_message_that_is_too_large_stops_its_file_and_no_other(
    refold: Refold, folder: Path
) -> None:
    large = claude_user("large", "x" * (33 << 20), sessionId="large")
    (folder / "large.jsonl").write_text(jsonl(large))
    os.utime(folder / "large.jsonl", (0, 0))  # The oldest file comes first.
    ran = refold("import", str(folder), "--json")
    assert ran.code == 2
    errors = {Path(f["file"]).name: f["error"] for f in ran.answer["files"] if "error" in f}
    assert errors.keys() == {"large.jsonl"}
    assert "large.jsonl: message: has 34,6" in errors["large.jsonl"]
    assert lengths(refold) == {"a": 4, "b": 2, "codex-1": 1}


def test_a_session_that_grew_goes_on(refold: Refold, folder: Path) -> None:
    refold("import", str(folder))
    (folder / "one" / "a.jsonl").write_text(session("a", 5))
    done = refold("import", str(folder), "--json").answer
    new = [c["new"] for f in done["files"] for c in f.get("conversations", ())]
    assert sum(new) == 6
    assert lengths(refold)["a"] == 10


def test_reasoning_that_ends_an_answer_is_stored_when_it_is_there(
    refold: Refold, tmp_path: Path
) -> None:
    def item(**payload: object) -> str:
        return json.dumps({"type": "response_item", "payload": payload}) + "\n"

    asked = item(type="message", role="user", content=[{"type": "input_text", "text": "Build it."}])
    said = item(type="message", role="assistant", content=[{"type": "output_text", "text": "Yes."}])
    thought = item(type="reasoning", summary=[{"type": "summary_text", "text": "Or not?"}])
    file = tmp_path / "rollout.jsonl"
    for lines in (asked + said, asked + said + thought + asked, asked + said + thought + asked):
        file.write_text(lines)
        assert refold("import", file).code == 0
    out = refold("export", "rollout").out
    assert [json.loads(line)["role"] for line in out.splitlines()] == [
        "user",
        "assistant",
        "assistant",
        "user",
    ]
    assert out.count("Or not?") == 1


def test_one_thread_id_for_a_folder_is_refused(refold: Refold, folder: Path) -> None:
    done = refold("import", str(folder), "--thread", "t")
    assert done.code == 2
    assert "a folder has many" in done.err
    both = refold("import", str(folder), "--watch", "--json")
    assert both.code == 2
    assert "use one of them" in both.err


@pytest.mark.parametrize("command", ["import", "play"])
def test_an_empty_thread_id_is_refused_and_nothing_is_stored(
    refold: Refold, folder: Path, command: str
) -> None:
    file = folder / "one" / "a.jsonl"
    ran = refold(command, str(file), "--thread", "", "--db", "agent.db", "--json")
    assert (ran.code, ran.answer["error"]) == (2, "InvalidThreadId")
    assert refold("show", "a").code == 2, "it is not stored under the id of the file instead"


def test_watching_imports_what_is_written_meanwhile_and_ends_with_ctrl_c(
    refold: Refold, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown, cut = session("a", 3), session("c", 1)

    def begin() -> None:
        (folder / "one" / "a.jsonl").write_text(grown)
        (folder / "c.jsonl").write_text(cut[: len(cut) // 2 + 60])

    def go_on() -> None:
        (folder / "c.jsonl").write_text(cut)

    def stop() -> None:
        raise KeyboardInterrupt

    steps: list[Callable[[], None]] = [begin, lambda: None, go_on, stop]

    def sleep(seconds: float) -> None:
        if seconds >= 1:
            steps.pop(0)()

    monkeypatch.setattr(time, "sleep", sleep)
    done = refold("import", str(folder), "--watch")
    assert done.code == 0
    assert "a: 2 new messages" in done.out
    assert "Stopped. 4 new messages" in done.out
    assert lengths(refold) == {"a": 6, "b": 2, "c": 2, "codex-1": 1}


def test_watching_a_file_that_does_not_exist_yet_says_so_once(
    refold: Refold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = tmp_path / "later.jsonl"

    def write() -> None:
        later.write_text(session("a", 1))

    def stop() -> None:
        raise KeyboardInterrupt

    acts: list[Callable[[], None]] = [write, stop]

    def sleep(seconds: float) -> None:
        if seconds >= 1:
            acts.pop(0)()

    monkeypatch.setattr(time, "sleep", sleep)
    done = refold("import", str(later), "--watch")
    assert done.code == 0
    assert done.err.count("does not exist") == 1
    assert "not imported" not in done.err
    assert "a: 2 new messages" in done.out


def test_trajectories_and_packed_logs_of_a_folder_are_imported(
    refold: Refold, tmp_path: Path
) -> None:
    made = tmp_path / "runs"
    made.mkdir()
    steps = [{"role": "user", "content": "Mend it"}, {"role": "assistant", "content": "Done"}]
    (made / "one.traj").write_text(json.dumps({"history": steps, "trajectory": []}))
    (made / "two.traj.gz").write_bytes(gzip.compress(json.dumps({"history": steps}).encode()))
    sample = {"id": 1, "epoch": 1, "messages": steps, "target": "", "input": "Mend it"}
    header = {"version": 2, "status": "success", "eval": {"run_id": "r", "task": "t"}}
    with ZipFile(made / "three.eval", "w") as packed:
        packed.writestr("header.json", json.dumps(header))
        packed.writestr("samples/1_epoch_1.json", json.dumps(sample))
    done = refold("import", str(made))
    assert "3 files with 3 conversations and 6 messages, of which 6 are new" in " ".join(
        done.out.split()
    )


def chat(*words: str) -> dict[str, Any]:
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[n % 2], "content": one} for n, one in enumerate(words)]}


def events(*words: str) -> dict[str, Any]:
    """Return a conversation of OpenHands whose events have no ids."""
    return {
        "history": [
            {"source": ("user", "agent")[n % 2], "action": "message", "args": {"content": one}}
            for n, one in enumerate(words)
        ]
    }


@pytest.mark.parametrize("make", [chat, events])
def test_a_file_of_one_conversation_without_an_id_that_gets_more(
    refold: Refold, tmp_path: Path, make: Callable[..., dict[str, Any]]
) -> None:
    file, first = tmp_path / "talks.jsonl", make("Is it red?", "Yes.", "Why?")
    file.write_text(jsonl(first))
    refold("import", file)
    assert lengths(refold) == {"talks": 3}
    file.write_text(jsonl(first, make("Is it green?", "No.")))
    for _ in range(2):
        assert refold("import", file).code == 0
        assert sorted(lengths(refold).values()) == [2, 3]
    file.write_text(jsonl(first))
    assert refold("import", file).code == 0
    assert sorted(lengths(refold).values()) == [2, 3]


@pytest.mark.parametrize("make", [chat, events])
def test_a_file_of_conversations_without_ids_of_which_one_is_left(
    refold: Refold, tmp_path: Path, make: Callable[..., dict[str, Any]]
) -> None:
    file, first = tmp_path / "talks.jsonl", make("Is it red?", "Yes.", "Why?")
    file.write_text(jsonl(first, make("Is it green?", "No.")))
    refold("import", file)
    before = lengths(refold)
    file.write_text(jsonl(first))
    assert refold("import", file).code == 0
    assert lengths(refold) == before
    file.write_text(jsonl(make("Is it blue?", "No."), first))
    assert refold("import", file).code == 2  # It has other conversations now.
    assert lengths(refold) == before


@pytest.mark.parametrize("make", [chat, events])
def test_the_one_that_is_left_is_found_if_all_begin_with_the_same_message(
    refold: Refold, tmp_path: Path, make: Callable[..., dict[str, Any]]
) -> None:
    file = tmp_path / "talks.jsonl"
    left = ["Hi", "Hello.", "Is it red?"]
    file.write_text(jsonl(make("Hi"), make("Hi", "Yes?"), make(*left)))
    refold("import", file)
    before = sorted(lengths(refold).items())
    file.write_text(jsonl(make(*left, "Yes.")))
    for _ in range(2):
        assert refold("import", file).code == 0
        assert sorted(lengths(refold).items()) == [*before[:2], (before[2][0], 4)]


@pytest.mark.parametrize("make", [chat, events])
def test_what_the_one_that_is_left_has_got_meanwhile_is_stored(
    refold: Refold, tmp_path: Path, make: Callable[..., dict[str, Any]]
) -> None:
    file = tmp_path / "talks.jsonl"
    file.write_text(jsonl(make("Hi"), make("Is it green?", "No.")))
    refold("import", file)
    file.write_text(jsonl(make("Hi", "Hello.", "Is it red?")))
    for _ in range(2):
        assert refold("import", file).code == 0
        assert sorted(lengths(refold).values()) == [2, 3]


def test_another_file_of_the_same_name_is_another_conversation(
    refold: Refold, tmp_path: Path
) -> None:
    for folder, words in (("one", ["Is it red?"]), ("two", ["Is it green?", "No."])):
        file = tmp_path / folder / "talks.jsonl"
        file.parent.mkdir()
        file.write_text(jsonl(*([chat(*words)] * len(words))))
        assert refold("import", file).code == 0
    assert lengths(refold) == {"talks": 1, "talks:0": 2, "talks:1": 2}


def test_a_message_that_was_erased_does_not_come_back_under_another_id(
    refold: Refold, tmp_path: Path
) -> None:
    file, first = tmp_path / "talks.jsonl", chat("Is it red?", "Yes.")
    file.write_text(jsonl(first))
    refold("import", file)
    refold("erase", "talks", "0", "--yes")
    file.write_text(jsonl(first, chat("Is it green?", "No.")))
    assert refold("import", file).code == 0
    assert lengths(refold) == {"talks": 2, "talks:1": 2}


def test_a_session_whose_results_were_shortened_goes_on(refold: Refold, tmp_path: Path) -> None:
    def look(output: str) -> dict[str, Any]:
        response = {"functionResponse": {"id": "look-1", "response": {"output": output}}}
        return {"id": "look-1", "name": "look", "args": {}, "result": [response]}

    file = tmp_path / "session-1.json"
    said = [{"id": "u1", "type": "user", "content": "Look."}]
    more = [{"id": "g2", "type": "gemini", "content": "It is a tree."}]
    for messages in (
        [*said, {"id": "g1", "type": "gemini", "content": "", "toolCalls": [look("a tree")]}],
        [
            *said,
            {"id": "g1", "type": "gemini", "content": "", "toolCalls": [
                look("<tool_output_masked>a</tool_output_masked>")]},
            *more,
        ],
    ):  # fmt: skip
        file.write_text(
            json.dumps({"sessionId": "g-1", "projectHash": "h", "messages": messages}, indent=2)
        )
        assert refold("import", file).code == 0
    out = refold("export", "g-1").out
    assert (out.count("a tree."), out.count('"a tree"'), out.count("masked")) == (1, 1, 0)


def test_results_of_one_answer_that_end_in_another_order(refold: Refold, tmp_path: Path) -> None:
    calls: list[dict[str, Any]] = [
        {"id": f"c{n}", "name": "look", "args": {}, "status": "executing"} for n in range(3)
    ]
    messages: list[dict[str, Any]] = [
        {"id": "u", "type": "user", "content": "Look."},
        {"id": "g", "type": "gemini", "content": "", "toolCalls": calls},
    ]
    for number in (1, 0, 2):
        answer = {"id": f"c{number}", "name": "look", "response": {"output": f"seen {number}"}}
        calls[number] |= {"status": "success", "result": [{"functionResponse": answer}]}
        session = {"sessionId": "s", "projectHash": "h", "messages": messages}
        (tmp_path / "session.json").write_text(json.dumps(session))
        assert refold("import", "session.json").code == 0
    out = refold("export", "s").out
    assert [out.count(f"seen {number}") for number in range(3)] == [1, 1, 1]

"""Conversations of OpenHands that are a folder with a file for each event."""

import json
from pathlib import Path
from typing import Any

import pytest

from refold.application.errors import TranscriptError
from refold.infrastructure.transcripts.read_transcript import read_transcript
from refold.infrastructure.transcripts.session_files import (
    IMPORTED_ENDINGS,
    find_files,
    join_events,
)
from tests.support.transcript_files import contents, keys, only, reasons, result, text


def said(number: int, role: str, words: str) -> dict[str, Any]:
    source = "agent" if role == "assistant" else "user"
    message = {"role": role, "content": [text(words)]}
    return event(number, "MessageEvent", source, llm_message=message)


def event(number: int, kind: str, source: str, **fields: Any) -> dict[str, Any]:
    at = f"2026-01-02T03:04:{number:02}.5"
    return {"id": f"e{number}", "timestamp": at, "source": source, "kind": kind, **fields}


def put(folder: Path, name: str, value: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(value if isinstance(value, str) else json.dumps(value))


def recorded(folder: Path) -> Path:
    events = folder / "c-1" / "events"
    function = {"id": "t1", "name": "look", "arguments": "{}"}
    asked = event(
        9, "ActionEvent", "agent", tool_name="look", tool_call_id="t1", tool_call=function
    )
    seen = event(
        10, "ObservationEvent", "environment", tool_name="look", tool_call_id="t1",
        observation={"content": [text("a tree")]},
    )  # fmt: skip
    for number, one in ((0, said(0, "user", "Look")), (9, asked), (10, seen)):
        put(events, f"event-{number:05}-{one['id']}.json", one)
    put(folder / "c-1", "base_state.json", {"id": "c-1"})
    return events


def test_a_folder_of_events_is_one_conversation_in_their_order(tmp_path: Path) -> None:
    events = recorded(tmp_path)
    talk = read_transcript(events)
    assert talk.format == "openhands"
    assert only(talk).thread_id == "c-1"
    assert keys(only(talk)) == ["e0", "e9", "e10"]
    call: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    assert contents(only(talk)) == [[text("Look")], [call], [result("t1", [text("a tree")])]]
    assert [one.line for one in only(talk).messages] == [0, 9, 10]


def test_a_broken_file_costs_only_itself(tmp_path: Path) -> None:
    events = recorded(tmp_path)
    put(events, "event-00011-e11.json", '{"half')
    talk = read_transcript(events)
    assert len(only(talk).messages) == 3
    assert [(one.reason, one.line, one.damage) for one in talk.skipped] == [
        ("broken file", 11, True)
    ]


def test_the_first_version_has_its_events_twice_and_they_count_once(tmp_path: Path) -> None:
    session = tmp_path / "sessions" / "s-1"
    hello = {"action": "message", "args": {"content": "Hello"}, "timestamp": "2025-01-01T00:00:00"}
    old = [{"id": number, "source": "user", **hello} for number in range(11)]
    for number, one in enumerate(old):
        put(session / "events", f"{number}.json", one)
    put(session / "event_cache", "0-11.json", old)
    (found,) = join_events(find_files([tmp_path], IMPORTED_ENDINGS).files)
    assert found.path == session / "events"
    assert keys(only(read_transcript(found.path))) == [str(number) for number in range(11)]


def test_the_files_of_events_are_found_as_their_folder(tmp_path: Path) -> None:
    events = recorded(tmp_path)
    put(tmp_path / "other" / "events", "1.json", {"messages": []})
    put(tmp_path / "other" / "events", "notes.json", {"messages": []})
    files = find_files([tmp_path], IMPORTED_ENDINGS).files
    found = {one.path.relative_to(tmp_path).as_posix(): one for one in join_events(files)}
    assert set(found) == {
        "c-1/events", "c-1/base_state.json", "other/events/1.json", "other/events/notes.json",
    }  # fmt: skip
    of_events = [one for one in files if one.path.parent == events]
    assert found["c-1/events"].size == sum(one.size for one in of_events)
    assert found["c-1/events"].changed == max(one.changed for one in of_events)


def test_another_folder_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "events", "1.json", {"messages": []})
    with pytest.raises(TranscriptError, match="is a folder"):
        read_transcript(tmp_path / "events")
    assert reasons(read_transcript(recorded(tmp_path))) == []

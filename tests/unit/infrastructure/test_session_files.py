"""Session files are found where the tools keep them, and files without a compaction are not read in full."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from refold.infrastructure.transcripts import session_files
from refold.infrastructure.transcripts.session_files import (
    FileScan,
    SessionFile,
    default_places,
    find_files,
    scan_file,
)
from tests.support.transcript_files import claude_answer, claude_user, jsonl, text

COUNTER = EstimatingTokenCounter()


def put(path: Path, content: str | bytes = "{}") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def scanned(path: Path) -> FileScan:
    return scan_file(SessionFile(path, path.stat().st_size, 0.0), COUNTER)


def names(*places: Path) -> list[str]:
    return sorted(file.path.name for file in find_files(places).files)


def test_each_tool_has_its_place_below_the_home_folder(tmp_path: Path) -> None:
    put(tmp_path / ".claude/projects/p/a.jsonl")
    put(tmp_path / ".claude/projects/p/s/subagents/agent-1.jsonl")
    put(tmp_path / ".config/claude/projects/p/b.jsonl")
    put(tmp_path / ".claude/history.jsonl")
    put(tmp_path / ".codex/sessions/2026/02/01/c.jsonl")
    put(tmp_path / ".codex/archived_sessions/d.jsonl")
    put(tmp_path / ".gemini/tmp/h/chats/e.json")
    put(tmp_path / ".gemini/tmp/h/logs.json")
    put(tmp_path / ".pi/agent/sessions/--w--/f.jsonl")
    put(tmp_path / ".pi/agent/settings.json")
    found = names(*default_places(tmp_path, {}))
    wanted = ["a.jsonl", "agent-1.jsonl", "b.jsonl", "c.jsonl", "d.jsonl", "e.json", "f.jsonl"]
    assert found == wanted


def test_variables_of_the_tools_name_other_places(tmp_path: Path) -> None:
    env = {
        "CLAUDE_CONFIG_DIR": str(tmp_path / "c"),
        "CODEX_HOME": str(tmp_path / "x"),
        "GEMINI_CLI_HOME": str(tmp_path / "g"),
        "PI_CODING_AGENT_DIR": str(tmp_path / "p"),
    }
    put(tmp_path / ".claude/projects/p/not.jsonl")
    put(tmp_path / "c/projects/p/a.jsonl")
    put(tmp_path / "x/sessions/b.jsonl")
    put(tmp_path / "g/.gemini/tmp/h/chats/c.json")
    put(tmp_path / "p/sessions/d.jsonl")
    assert names(*default_places(tmp_path, env)) == ["a.jsonl", "b.jsonl", "c.json", "d.jsonl"]
    put(tmp_path / "s/e.jsonl")
    env["PI_CODING_AGENT_SESSION_DIR"] = str(tmp_path / "s")
    assert "e.jsonl" in names(*default_places(tmp_path, env))


def test_given_folders_and_files_are_searched_newest_first_each_once(tmp_path: Path) -> None:
    old, new = put(tmp_path / "f/old.jsonl"), put(tmp_path / "f/deep/new.json.gz")
    put(tmp_path / "f/README.md")
    odd = put(tmp_path / "odd.log")
    for place, time in ((old, 1000), (new, 3000), (odd, 2000)):
        os.utime(place, (time, time))
    found = find_files([tmp_path / "f", odd, old])
    assert [file.path for file in found.files] == [new, odd, old]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every folder")
def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    try:
        assert find_files([tmp_path]).unreadable == (str(closed),)
    finally:
        closed.chmod(0o700)


PLAIN = jsonl(claude_user("u1", "go"), claude_answer("a1", "m1", text("ok")))
COMPACTED = PLAIN + jsonl(
    claude_user("k1", "A summary", isCompactSummary=True), claude_answer("a2", "m2", text("on"))
)


def test_a_file_without_a_compaction_is_only_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("read in full")

    quoting = PLAIN + jsonl(claude_user("u2", 'See "isCompactSummary":true and "type":"compacted"'))
    path = put(tmp_path / "s.jsonl", quoting)
    monkeypatch.setattr(session_files, "parse_source", refuse)
    scan = scanned(path)
    assert (scan.format, scan.sessions, scan.has_messages) == ("claude-code", (), True)
    assert "read in full" in scanned(put(tmp_path / "k.jsonl", COMPACTED)).problem


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_with_a_compaction_is_read_in_full(tmp_path: Path, packed: bool) -> None:
    content = gzip.compress(COMPACTED.encode()) if packed else COMPACTED
    scan = scanned(put(tmp_path / "s.jsonl.gz", content))
    assert scan.format == "claude-code"
    assert [[c.key for c in session.compactions] for session in scan.sessions] == [["k1"]]


def test_a_sub_agent_is_a_session_of_its_own(tmp_path: Path) -> None:
    side = [
        claude_user("u1", "task", isSidechain=True, agentId="x"),
        claude_user("k1", "A summary", isSidechain=True, agentId="x", isCompactSummary=True),
        claude_user("u2", "on", isSidechain=True, agentId="x"),
    ]
    alone = scanned(put(tmp_path / "agent-x.jsonl", jsonl(*side)))
    assert alone.is_agent
    assert [session.thread_id for session in alone.sessions] == ["s1:x"]
    both = scanned(put(tmp_path / "both.jsonl", PLAIN + jsonl(*side)))
    assert not both.is_agent
    assert [session.thread_id for session in both.sessions] == ["s1:x"]


HALF = COMPACTED.encode()[:-40]
ODD: dict[str, tuple[bytes, str | None, bool, int]] = {
    # content; format, whether there is a problem, damaged lines
    "half a line at the end": (HALF, "claude-code", False, 1),
    "a broken line": (b'{"broken\n' + COMPACTED.encode(), "claude-code", False, 1),
    "empty": (b"", None, True, 0),
    "not text": (b"\x80\x81\xff" * 50, None, True, 0),
    "broken gzip": (gzip.compress(COMPACTED.encode())[:60], None, True, 0),
    "another document": (b'{"name": "package", "version": "1.0.0"}', None, False, 0),
    "a chat of another tool": (b'[{"role": "user", "content": "hi"}]', None, False, 0),
    "nested too deeply": (b"[" * 100_000, None, True, 0),
    "titles only": (
        b'{"type": "summary", "summary": "t", "leafUuid": "u"}', "claude-code", False, 0
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_files_end_no_scan(tmp_path: Path, name: str) -> None:
    content, format, is_problem, damaged = ODD[name]
    scan = scanned(put(tmp_path / "s.jsonl", content))
    assert (scan.format, bool(scan.problem), scan.damaged) == (format, is_problem, damaged)


def test_a_file_that_is_gone_is_a_problem(tmp_path: Path) -> None:
    scan = scan_file(SessionFile(tmp_path / "gone.jsonl", 1, 0.0), COUNTER)
    assert "does not exist" in scan.problem


def test_a_session_of_gemini_cli_is_recognised(tmp_path: Path) -> None:
    messages = [{"id": "1", "type": "user", "content": "hi"}]
    whole = json.dumps({"sessionId": "g", "projectHash": "h", "messages": messages}, indent=2)
    scan = scanned(put(tmp_path / "session.json", whole))
    assert (scan.format, scan.has_messages, scan.sessions) == ("gemini-cli", True, ())

"""``refold claude-code``: hooks and the MCP server come into the files of Claude Code, and go without a trace."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import refold
from tests.support.command_line import Refold, ran
from tests.support.transcript_files import claude_answer, claude_user, jsonl, result, text

SETTINGS = b'{\n    "model": "opus",\n "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}'


MAKE = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "make test_app"}}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".claude").mkdir()
    settings_of(tmp_path).write_bytes(SETTINGS)
    return tmp_path


def settings_of(project: Path) -> Path:
    return project / ".claude" / "settings.local.json"


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


def act(project: Path, *words: str) -> Any:
    return ran("claude-code", *words, folder=project)


def test_it_adds_hooks_and_a_server_and_keeps_what_else_is_there(project: Path) -> None:
    assert act(project, "status").code == 1
    assert act(project, "install").code == 0
    assert act(project, "status").code == 0
    settings = read(settings_of(project))
    assert settings["model"] == "opus"
    assert settings["hooks"]["Stop"][0]["hooks"][0]["command"] == "say done"
    assert settings["hooks"]["SessionStart"][0]["matcher"] == "compact|resume"
    assert set(settings["hooks"]) == {"SessionStart", "Stop", "SessionEnd"}
    server = read(project / ".mcp.json")["mcpServers"]["refold"]
    assert server["args"][-1] == str(project.resolve() / ".claude" / "refold.db")


def test_without_the_sdk_of_mcp_it_names_the_package_to_install(
    request: pytest.FixtureRequest, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec

    def find_others(name: str) -> object:
        return None if name == "mcp" else find(name)

    monkeypatch.setattr("refold.infrastructure.cli.claude_code_command.find_spec", find_others)
    command: Refold = request.getfixturevalue("refold")
    assert (
        "pip install 'refold[mcp]'" in command("claude-code", "install", "--project", project).err
    )


def test_installing_again_changes_nothing(project: Path) -> None:
    act(project, "install")
    before = settings_of(project).read_bytes(), (project / ".mcp.json").read_bytes()
    assert act(project, "install").code == 0
    assert (settings_of(project).read_bytes(), (project / ".mcp.json").read_bytes()) == before


def test_uninstalling_restores_both_files_byte_for_byte(project: Path) -> None:
    act(project, "install")
    act(project, "install", "--db", "another.db")
    assert act(project, "uninstall").code == 0
    assert settings_of(project).read_bytes() == SETTINGS
    assert not (project / ".mcp.json").exists()
    assert not (project / ".claude" / "refold.json").exists()
    assert act(project, "uninstall").code == 0


def test_what_was_changed_since_stays(project: Path) -> None:
    act(project, "install")
    settings = read(settings_of(project))
    settings["hooks"]["SessionEnd"].append({"hooks": [{"type": "command", "command": "say bye"}]})
    settings_of(project).write_text(json.dumps(settings), "utf-8")
    servers = read(project / ".mcp.json")
    servers["mcpServers"]["other"] = {"command": "other"}
    (project / ".mcp.json").write_text(json.dumps(servers), "utf-8")
    act(project, "install", "--db", "another.db")
    act(project, "uninstall")
    hooks = read(settings_of(project))["hooks"]
    assert [h["hooks"][0]["command"] for event in hooks.values() for h in event] == [
        "say done",
        "say bye",
    ]
    assert read(project / ".mcp.json") == {"mcpServers": {"other": {"command": "other"}}}


@pytest.mark.parametrize("content", [b"{,}", b"[]", b"\xff"])
def test_a_file_that_is_not_an_object_is_refused_and_named(project: Path, content: bytes) -> None:
    settings_of(project).write_bytes(content)
    done = act(project, "install")
    assert done.code == 2
    assert "settings.local.json" in done.err
    assert "nothing was changed" in done.err
    assert settings_of(project).read_bytes() == content
    assert not (project / ".mcp.json").exists()


def test_all_projects_of_a_user(tmp_path: Path) -> None:
    done = ran("claude-code", "install", "--user", folder=tmp_path, env={"HOME": str(tmp_path)})
    assert done.code == 0
    assert read(tmp_path / ".claude" / "settings.json")["hooks"]
    assert read(tmp_path / ".claude.json")["mcpServers"]["refold"]
    ran("claude-code", "uninstall", "--user", folder=tmp_path, env={"HOME": str(tmp_path)})
    assert not (tmp_path / ".claude.json").exists()
    assert ran("claude-code", "install", "--user", "--project", ".", folder=tmp_path).code == 2


def hook(project: Path, **event: Any) -> "subprocess.CompletedProcess[str]":
    db = project / ".claude" / "refold.db"
    return subprocess.run(
        [sys.executable, "-m", "refold", "claude-code", "hook", "--db", str(db)],
        input=json.dumps(event),
        capture_output=True,
        encoding="utf-8",
        check=False,
        cwd=project,
        timeout=60,
    )


def session(project: Path, *more: dict[str, Any]) -> Path:
    said = (
        claude_user("u1", "Never push to main. Please fix src/app.py."),
        claude_answer("a1", "m1", MAKE),
        claude_user("u2", [result("c1", "all 12 tests passed")]),
        claude_answer("a2", "m2", text("Fixed src/app.py.")),
    )
    path = project / "session.jsonl"
    path.write_text(jsonl(*said, *more), "utf-8")
    return path


def test_a_session_is_stored_and_put_back_after_a_compaction(project: Path) -> None:
    path = str(session(project))
    for _ in range(2):
        done = hook(project, hook_event_name="Stop", transcript_path=path)
        assert (done.returncode, done.stdout) == (0, "")
    more = claude_user("u3", "And the docs, please.")
    session(project, more)
    done = hook(project, hook_event_name="SessionStart", source="compact", transcript_path=path)
    told = json.loads(done.stdout)["hookSpecificOutput"]
    assert told["hookEventName"] == "SessionStart"
    for words in ("Never push to main.", "make test_app", "src/app.py", "And the docs, please."):
        assert words in told["additionalContext"]
    with refold.open(project / ".claude" / "refold.db") as memory:
        (row,) = memory.conversations()
        assert row.messages == 5
        memory.conversation(row.thread_id).pin("the budget is 40 EUR")
    done = hook(project, hook_event_name="SessionStart", source="resume", transcript_path=path)
    assert "the budget is 40 EUR" in done.stdout


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"hook_event_name": "Stop"},
        {"hook_event_name": "SessionStart", "transcript_path": "none.jsonl"},
        {"hook_event_name": "Stop", "transcript_path": "/"},
    ],
)
def test_a_hook_never_disturbs_a_session(project: Path, event: dict[str, Any]) -> None:
    done = hook(project, **event)
    assert done.returncode == 0
    assert done.stdout == ""


def test_a_broken_log_is_told_and_disturbs_nothing(project: Path) -> None:
    (project / ".claude" / "refold.db").write_bytes(b"no log" * 1_000)
    done = hook(project, hook_event_name="Stop", transcript_path=str(session(project)))
    assert done.returncode == 0
    assert "refold" in done.stderr

"""Claude Code itself, on this machine alone: after its compaction, refold puts back what its summary lost.

The program is looked for in ``REFOLD_X_CLAUDE``, or in the package ``claude-agent-sdk`` where that is installed. It is
under terms of its own, so no lock file names it.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import refold
from tests.support.command_line import ran
from tests.support.strict_server import Json, StrictServer

SWITCH = "REFOLD_X_CLAUDE"
SUMMARY = "<summary>We worked on the app. Nothing else was said.</summary>"


def program() -> str:
    """Return the path of the program, or skip; a path that was given must be right."""
    if given := os.environ.get(SWITCH):
        assert Path(given).is_file(), f"{SWITCH}={given}: there is no such file"
        return given
    spec = find_spec("claude_agent_sdk")
    bundled = Path(spec.origin).parent / "_bundled" / "claude" if spec and spec.origin else None
    if bundled is None or not bundled.is_file():
        pytest.skip(f"Claude Code is not installed here: give its path in {SWITCH}")
    return str(bundled)


def answers(body: Json, number: int) -> list[Json]:
    del number
    asks_for_summary = "detailed summary" in json.dumps(body["messages"])[-20_000:]
    return [{"type": "text", "text": SUMMARY if asks_for_summary else "I see. It is done."}]


@pytest.fixture
def server() -> Iterator[StrictServer]:
    with StrictServer(answers, judges=False) as running:
        yield running


@pytest.mark.slow
def test_what_its_summary_lost_is_back_after_a_compaction(
    server: StrictServer, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    assert ran("claude-code", "install", folder=project).code == 0
    # Nothing of this machine's own settings or keys reaches the program.
    env = {
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "ANTHROPIC_BASE_URL": server.base_url,
        "ANTHROPIC_API_KEY": "key",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "IS_SANDBOX": "1",
    }

    def say(words: str, *options: str) -> Any:
        done = subprocess.run(
            [program(), "-p", words, *options, "--output-format", "json"],
            cwd=project,
            env=env,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr[-1_000:] + done.stdout[-1_000:]
        return json.loads(done.stdout)

    session = say("Never push to main. Please fix src/app.py, the port is 6390.")["session_id"]
    say("/compact", "--resume", session)
    say("What now?", "--resume", session)
    sent = json.dumps(server.bodies[-1]["messages"])
    assert "Nothing else was said." in sent
    assert "copied word for word from earlier messages" in sent
    assert "Never push to main." in sent
    assert "the port is 6390" in sent
    with refold.open(project / ".claude" / "refold.db") as memory:
        said = [str(m.message.content) for m in memory.conversation(session).messages()]
    assert any("Never push to main." in words for words in said)
    assert any("What now?" in words for words in said)

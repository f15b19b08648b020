"""Pipes and devices in the place of a log, and as the target of what a command writes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import refold
from refold.application.errors import NotARefoldLog, TargetExists

if sys.platform == "win32":
    pytest.skip("this system has no such names", allow_module_level=True)

STDOUT = "/dev/stdout"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a log with one conversation of two messages."""
    path = tmp_path / "agent.db"
    with refold.open(path) as memory:
        memory.conversation("a").append(
            [{"role": "user", "content": "One?"}, {"role": "assistant", "content": "Two."}]
        )
    return path


def _run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "refold", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_an_export_to_standard_output_goes_through_a_pipe(path: Path) -> None:
    done = _run("export", "a", "--out", STDOUT, "--db", path)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2), done.stderr
    assert [json.loads(line)["role"] for line in done.stdout.splitlines()] == ["user", "assistant"]
    assert "2 lines" in done.stderr
    assert sorted(one.name for one in path.parent.glob(".*")) == []


def test_requests_of_a_play_go_through_a_pipe(path: Path, tmp_path: Path) -> None:
    recording = tmp_path / "a.jsonl"
    assert _run("export", "a", "--out", recording, "--db", path).returncode == 0
    done = _run("play", recording, "--requests", STDOUT)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["thread"] for line in done.stdout.splitlines()] == ["a"]
    assert "all is well" in done.stderr


def test_an_export_to_a_device_replaces_nothing(path: Path) -> None:
    done = _run("export", "a", "--out", os.devnull, "--db", path)
    assert done.returncode == 0, done.stderr
    assert Path(os.devnull).is_char_device()


def test_a_backup_to_standard_output_is_refused_and_names_it(path: Path) -> None:
    done = _run("backup", STDOUT, "--db", path)
    assert done.returncode == 2
    assert f"TargetExists: {STDOUT} is not a regular file" in done.stderr
    with refold.open(path) as memory, pytest.raises(TargetExists, match="not a regular file"):
        memory.backup(os.devnull)


@pytest.mark.parametrize("create", [True, False])
def test_a_pipe_or_a_device_is_no_log(tmp_path: Path, create: bool) -> None:
    pipe = tmp_path / "pipe.db"
    os.mkfifo(pipe)
    for place in (pipe, Path(os.devnull)):
        with pytest.raises(NotARefoldLog, match="not a regular file"):
            refold.open(place, create=create)
    assert [one.name for one in tmp_path.iterdir()] == ["pipe.db"]

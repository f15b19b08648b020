"""Several processes write to one log: nothing is lost, nothing is doubled, and the order is kept."""

import subprocess
import sys
from pathlib import Path

import pytest

from refold.infrastructure.event_store.store import SQLiteLog
from tests.support.log_files import log_of, say, words_of

ROOT = Path(__file__).resolve().parents[2]
COUNT = 200


def started(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.writer_process", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def finished(*processes: subprocess.Popen[str]) -> list[str]:
    """What they printed; each must have ended well."""
    answers = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return answers


def mine(words: list[str], name: str) -> list[str]:
    return [word for word in words if word.startswith(name)]


def numbered(name: str, count: int = COUNT) -> list[str]:
    return [f"{name}{number}" for number in range(count)]


@pytest.mark.slow
def test_two_processes_that_write_to_one_conversation(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    # The file is not there yet: they also create it at the same time.
    finished(*[started("write", str(path), "t", name, str(COUNT)) for name in ("a", "b")])
    log = SQLiteLog(path)
    words = words_of(log)
    assert len(words) == 3 * COUNT
    assert mine(words, "a") == numbered("a")
    assert mine(words, "b") == numbered("b")
    assert mine(words, "shared") == numbered("shared")
    assert list(log.check()) == []
    log.close()


@pytest.mark.slow
def test_two_processes_that_write_to_different_conversations(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    finished(*[started("write", str(path), name, name, str(COUNT // 2)) for name in ("a", "b")])
    log = SQLiteLog(path)
    for name in ("a", "b"):
        assert mine(words_of(log, name), name) == numbered(name, COUNT // 2)
        assert mine(words_of(log, name), "shared") == numbered("shared", COUNT // 2)
    assert list(log.check()) == []
    log.close()


@pytest.mark.slow
def test_a_log_that_is_open_here_sees_what_another_process_appends(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", "first")
    log = SQLiteLog(path)
    assert words_of(log) == ["first"]
    finished(started("write", str(path), "t", "a", "1"))
    say(log, "last")
    assert words_of(log) == ["first", "a0", "shared0", "last"]
    log.close()


@pytest.mark.slow
def test_a_log_is_not_used_across_a_fork(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", "first")
    [answer] = finished(started("fork", str(path)))
    assert "LogError" in answer
    assert "forked; call refold.open" in answer
    assert "parent has 1" in answer


def test_a_process_that_dies_while_it_decides_blocks_nobody(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", "first")
    process = started("die", str(path))
    assert process.stdout is not None
    assert process.stdout.readline() == "deciding\n"
    process.kill()
    process.communicate()
    log = SQLiteLog(path)
    say(log, "second")
    assert words_of(log) == ["first", "second"]
    log.close()

"""Processes that end while they compact: the next one settles it, and a living one is not overtaken."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import refold
from refold.application.ports.read_models import CompactionRow
from refold.testing.request_judge import violations
from tests.support.compacting_process import THREAD, WINDOW

ROOT = Path(__file__).resolve().parents[2]
SOON = 60


@contextmanager
def at_work(act: str, path: Path) -> "Generator[subprocess.Popen[str]]":
    """A process whose summariser is at work."""
    command = [sys.executable, "-m", "tests.support.compacting_process", act, str(path)]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() in ("working\n", "leaving\n")
            yield process
        finally:
            process.kill()


def rows(path: Path) -> list[CompactionRow]:
    with refold.open(path, window=WINDOW) as memory:
        return list(memory.conversation(THREAD).compactions())


def outcomes(path: Path) -> list[tuple[str, str | None]]:
    return [(row.outcome, row.reason) for row in rows(path)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


@pytest.mark.slow
def test_what_a_killed_process_left_unfinished_is_settled_at_the_first_append(path: Path) -> None:
    with at_work("work", path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(SOON)
    assert outcomes(path) == [("requested", None)], "looking on settles nothing"
    with refold.open(path, window=WINDOW) as memory:
        conversation = memory.conversation(THREAD)
        before = len(conversation.messages())
        stored = conversation.append({"role": "user", "content": "Are you there?"})
        assert stored.positions == (before,)
        assert [row.reason for row in conversation.compactions()] == ["abandoned"]
        context = conversation.context()
        assert violations(context.for_anthropic()) == []
        assert conversation.compact().outcome == "performed"
        assert len(conversation.messages()) == before + 1
        assert memory.verify().ok


@pytest.mark.slow(but="compact")
@pytest.mark.parametrize("act", ["context", "compact"])
def test_a_request_or_a_compaction_by_hand_does_not_wait_for_a_killed_process(
    path: Path, act: str
) -> None:
    with at_work("work", path) as process:
        process.kill()
        process.wait(SOON)
    with refold.open(path, window=WINDOW) as memory:
        conversation = memory.conversation(THREAD)
        getattr(conversation, act)()
        assert conversation.compactions()[0].reason == "abandoned"
        assert all(row.outcome != "requested" for row in conversation.compactions())


def test_a_killed_process_that_nobody_has_buried_is_gone_as_well(path: Path) -> None:
    with at_work("work", path) as process:
        process.kill()
        with refold.open(path, window=WINDOW) as memory:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            # The process is dead and still in the table: its exit code was not taken.
            assert memory.conversation(THREAD).compact().outcome == "performed"


@pytest.mark.slow
def test_a_living_process_is_not_overtaken(path: Path) -> None:
    with at_work("work", path) as process, refold.open(path, window=WINDOW) as memory:
        conversation = memory.conversation(THREAD)
        conversation.append({"role": "user", "content": "Meanwhile, from elsewhere."})
        assert conversation.context().summary is None
        assert conversation.compact().outcome == "in_flight"
        assert [row.outcome for row in conversation.compactions()] == ["requested"]
        process.kill()
        process.wait(SOON)
        assert conversation.compact().outcome == "performed"
        assert [row.outcome for row in conversation.compactions()] == ["failed", "performed"]


@pytest.mark.slow
def test_a_process_that_ends_without_closing_ends_at_once(path: Path) -> None:
    with at_work("leave", path) as process:
        assert process.wait(SOON) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert outcomes(path) == [("failed", "abandoned")]


@pytest.mark.parametrize("act", ["interrupted", "interrupted-in-a-loop"])
def test_ctrl_c_ends_the_process_and_leaves_an_end_in_the_log(path: Path, act: str) -> None:
    with at_work(act, path) as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(SOON) in (1, 130, -signal.SIGINT)
    assert outcomes(path) == [("failed", "abandoned")]


def test_ctrl_c_in_a_request_that_waits_for_its_summary_leaves_an_end_as_well(path: Path) -> None:
    with at_work("interrupted-in-a-turn", path) as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(SOON) in (1, 130, -signal.SIGINT)
    [(outcome, reason)] = outcomes(path)
    assert outcome == "failed"
    assert reason in ("cancelled", "abandoned")


@pytest.mark.slow
def test_a_forked_process_is_refused_and_does_not_hang(path: Path) -> None:
    command = [sys.executable, "-m", "tests.support.compacting_process", "fork", str(path)]
    answer = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=SOON, check=True
    )
    *refused, drained, closed = answer.stdout.splitlines()
    assert len(refused) == 2
    assert all("forked; call refold.open" in line for line in refused)
    assert (drained, closed) == ("drained", "closed")
    assert outcomes(path) == [("failed", "abandoned")]

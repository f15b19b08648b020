"""A copy that was killed at any point is continued by the next one, and loses and doubles nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

import refold
from refold.infrastructure.cli.program import stopped
from tests.integration.test_copying import assert_whole, fill, rows_of

COPY = """
import sys
import refold
from refold.application.maintenance import copying

copying.BATCH = 9
refold.copy_log(*sys.argv[1:], progress=lambda step, at, last: print(step, at, last, flush=True))
print("done", flush=True)
"""


def copied_until(source: Path, target: str, lines: int) -> bool:
    """Copy in a process of its own, killed after so many transactions. Return whether it came to the end."""
    words = [sys.executable, "-c", COPY, str(source), target]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for number, line in enumerate(child.stdout):
            if line == b"done\n":
                return True
            if number >= lines:
                os.kill(child.pid, signal.SIGKILL)
                return False
    raise AssertionError("the copy failed")


@pytest.mark.slow(but="server")
@pytest.mark.parametrize("target", ["file", "server"])
def test_a_killed_copy_is_continued(tmp_path: Path, database: str, target: str) -> None:
    random, log = Random(target), tmp_path / "agent.db"
    to = str(tmp_path / "other.db") if target == "file" else database
    fill(log)
    deaths = 0
    while not copied_until(log, to, random.randrange(0, 12)):
        deaths += 1
        with refold.open(log) as memory:
            # The source stays in use: it grows, and what was copied is erased in it.
            memory.conversation("one").append({"role": "user", "content": f"after {deaths}"})
            if deaths <= 2:
                memory.conversation("one").erase(deaths * 4)
            if deaths == 3:
                memory.erase_conversation("three")
        if deaths == 4:
            break
    assert deaths
    refold.copy_log(log, to)
    refold.copy_log(to, tmp_path / "back.db")
    assert rows_of(tmp_path / "back.db") == rows_of(log)
    assert_whole(to)


def test_ctrl_c_says_how_to_go_on() -> None:
    assert "continues from there" in stopped(["copy", "agent.db", "other.db"])

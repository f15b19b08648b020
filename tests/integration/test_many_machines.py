"""Eight machines write into one log: processes in network namespaces of their own, with clocks that disagree."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

import pytest

import refold
from tests.support.postgres import private_server

MACHINES = 8
SECONDS = float(os.environ.get("REFOLD_X_SECONDS", "5"))
"""Seconds that all of them write. It was run with 60."""
PROGRAM = """
import sys, time
from datetime import UTC, datetime, timedelta
import refold

place, number, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
skew = timedelta(hours=7 * (number - 4))
with refold.open(place, clock=lambda: datetime.now(UTC) + skew) as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    until, written = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        written += 1
        thread = "shared" if written % 3 == 0 else f"own {number}"
        text = f"{number} {written}"
        try:
            memory.conversation(thread).append({"role": "user", "content": text})
        except refold.LogBusy:
            continue
        print(f"{thread}\\t{text}")
        if written % 40 == 0:
            assert thread in {one.thread_id for one in memory.conversations()}
"""


def away() -> list[str]:
    """The beginning of a command in a network namespace of its own, which needs rights."""
    words = ["unshare", "--net", "--"]
    try:
        allowed = subprocess.run([*words, "true"], check=False, capture_output=True).returncode == 0
    except OSError:
        allowed = False
    return words if allowed else []


@contextmanager
def machines(place: str) -> Generator[list["subprocess.Popen[str]"]]:
    """Programs that have the log open and wait for a line."""
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                subprocess.Popen(
                    [*away(), sys.executable, "-c", PROGRAM, place, str(number), str(SECONDS)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for number in range(MACHINES)
        ]
        for one in started:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n", one.communicate()
        yield started


@pytest.mark.slow
def test_eight_machines_lose_nothing_and_no_follower_is_behind() -> None:
    with private_server(options="-c max_connections=100") as server:
        place = server.new_database()
        with refold.open(place) as memory, machines(place) as started:
            for one in started:
                assert one.stdin is not None
                one.stdin.write("\n")
                one.stdin.flush()
            said: dict[str, list[str]] = {}
            for one in started:
                output, errors = one.communicate(timeout=SECONDS + 60)
                assert one.returncode == 0, errors
                for line in output.splitlines():
                    thread_id, text = line.split("\t")
                    said.setdefault(thread_id, []).append(text)
            assert len(said) == MACHINES + 1
            assert all(len(texts) > 3 * SECONDS for texts in said.values())
            # The list follows the log: it has everything at once.
            listed = {one.thread_id: one.messages for one in memory.conversations()}
            for thread_id, texts in said.items():
                stored = [str(m.message.content) for m in memory.conversation(thread_id).messages()]
                twice = [text for text, times in Counter(stored).items() if times > 1]
                assert twice == [], f"{len(twice)} messages of {thread_id} were stored twice"
                assert set(texts) <= set(stored), "an acknowledged message was lost"
                assert listed[thread_id] == len(stored)
            for number in range(MACHINES):
                of_one = [text for text in said["shared"] if text.startswith(f"{number} ")]
                assert len(of_one) > SECONDS / 2, "a machine was kept from the shared conversation"
            assert memory.verify().ok

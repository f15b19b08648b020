"""Processes, forks and threads on one log at once: nothing lost, nothing doubled, nobody waits for ever."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import refold
from refold.application.errors import LogBusy
from refold.infrastructure.files.lock import WriteLock

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_processes_that_append_compact_and_read_at_once_lose_and_double_nothing() -> None:
    answer = run(
        "benchmarks/concurrency.py", "--processes", "5", "--readers", "1", "--seconds", "3"
    )
    assert "0 lost, 0 doubled, at most one active summary, nothing damaged" in answer


@pytest.mark.slow
def test_a_forked_process_is_refused_everywhere_and_disturbs_nothing(tmp_path: Path) -> None:
    lines = run(
        "-W", "ignore", "-m", "tests.support.forked_process", str(tmp_path / "a.db")
    ).splitlines()
    *asked, close, parent = (line.split(" ", 1) for line in lines)
    assert {how for _, how in asked} == {"refused"}
    assert len(asked) == 20
    assert (close, parent) == (["close", "done"], ["parent", "0 2 True"])


def test_threads_share_one_memory(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db", window=20_000) as memory:

        def work(name: str) -> None:
            own, shared = memory.conversation(name), memory.conversation("shared")
            for number in range(25):
                for conversation in (own, shared):
                    words = f"{name} {number} " + "word " * 60
                    pair = [{"role": role, "content": words} for role in ("user", "assistant")]
                    conversation.append(pair, key=[f"{name}-{number}{end}" for end in "qa"])
                if number % 8 == 0:
                    shared.compact()
                    memory.conversations()
                    own.context()

        names = [f"t{number}" for number in range(12)]
        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(work, names))
        assert memory.verify().ok
        for name in names:
            assert len(memory.conversation(name).messages()) == 50
        said = [
            str(m.message.content).split()[:2] for m in memory.conversation("shared").messages()
        ]
        for name in names:
            mine = [int(number) for who, number in said if who == name]
            assert mine == [number for number in range(25) for _ in "qa"]
        active = [s for s in memory.conversation("shared").summaries() if s.is_active]
        assert len(active) <= 1


@pytest.mark.skipif(sys.platform != "linux", reason="the line needs locks that only Linux has")
def test_who_waits_for_the_lock_is_not_overtaken(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    order: list[int] = []
    first = WriteLock(path, 30)
    locks = [WriteLock(path, 30) for _ in range(4)]

    def wait(number: int) -> None:
        with locks[number].held():
            order.append(number)
            time.sleep(0.005)

    threads = [threading.Thread(target=wait, args=[number]) for number in range(4)]
    with first.held():
        for thread in threads:
            thread.start()
            time.sleep(0.03)
    # It wants the lock again at once, and has to stand behind all of them.
    with first.held():
        order.append(99)
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 99]
    for lock in (first, *locks):
        lock.close()


def test_who_waits_too_long_is_told_and_leaves_the_line(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    holder, waiter, next_one = WriteLock(path, 30), WriteLock(path, 0.05), WriteLock(path, 5)
    with holder.held():
        with pytest.raises(LogBusy, match="try again"), waiter.held():
            pass
        began = time.monotonic()
    with next_one.held():
        assert time.monotonic() - began < 1
    for lock in (holder, waiter, next_one):
        lock.close()

"""Programs that fork while a memory is open: ``python -m tests.support.forking_program NAME FOLDER``.

Each prints what it found, a line for each finding; who hangs is killed by an alarm.
"""

import gc
import os
import signal
import sqlite3
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import refold
from refold.infrastructure.files import fork_gate
from refold.infrastructure.files.fork_gate import GATE

from .forking import ALARM, PAST_PYTHON, appended, ended, files_of, in_child, say, used, words_of
from .forking_ways import asynchronous, by_multiprocessing, by_subprocess, in_memory


def open_again(path: Path) -> None:
    """Parent and child append in turns, and the parent closes and ends first."""
    memory = used(path)
    to_child, to_parent = os.pipe(), os.pipe()

    def child() -> None:
        with refold.open(path, telemetry=False) as mine:
            say(mine, "child")
            os.write(to_parent[1], b".")
            os.read(to_child[0], 1)
            say(mine, *(f"c{n}" for n in range(5)))

    pid = in_child(child)
    os.read(to_parent[0], 1)
    say(memory, "parent")
    memory.close()
    with refold.open(path, telemetry=False) as look:
        look.conversations()
    os.write(to_child[1], b".")
    ended(pid)
    with refold.open(path, telemetry=False) as memory:
        print(words_of(memory), memory.verify().ok)


def let_go(path: Path) -> None:
    """A child closes what it inherited, or collects it: nothing is touched, whichever way it was forked."""
    for fork in (os.fork, *PAST_PYTHON):
        holder = [used(path)]

        def child(held: list[refold.Memory] = holder, how: str = fork.__name__) -> str:
            before = files_of(path.parent)
            held[0].drain()
            held[0].close()
            held.clear()
            gc.collect()
            return f"{how} {'untouched' if files_of(path.parent) == before else 'TOUCHED'}"

        ended(in_child(child, fork))
        say(holder[0], "parent")
        holder[0].close()


def refused(path: Path) -> None:
    """What was inherited past Python is refused, and so is the log; another log is not."""
    for fork in PAST_PYTHON:
        memory = used(path)
        ended(in_child(partial(say, memory, "inherited"), fork))
        ended(in_child(lambda: appended(path, "new"), fork))
        link = path.with_name(f"{fork.__name__}.db")
        link.hardlink_to(path)
        ended(in_child(partial(appended, link, "new"), fork))
        link.unlink()
        ended(in_child(lambda: appended(path.with_name("other.db"), "other"), fork))
        memory.close()
        ended(in_child(lambda: appended(path, "closed"), fork))


def below(path: Path) -> None:
    """Children of children: each opens its own, with that of its parent still open; the first one closes."""
    memory, opened, closed = used(path), os.pipe(), os.pipe()

    def child() -> None:
        mine = refold.open(path, telemetry=False)
        say(mine, "child")
        os.write(opened[1], b".")
        os.read(closed[0], 1)

        def grandchild() -> None:
            for old in (memory, mine):
                try:
                    old.conversations()
                except refold.OpenedBeforeFork:
                    print("refused")
            own = refold.open(path, telemetry=False)
            say(own, "grandchild")

        ended(in_child(grandchild))
        say(mine, "again")
        mine.close()

    pid = in_child(child)
    os.read(opened[0], 1)
    memory.close()
    refold.open(path, telemetry=False).close()
    os.write(closed[1], b".")
    ended(pid)
    with refold.open(path, telemetry=False) as memory:
        print(words_of(memory))


def in_commits(path: Path) -> None:
    """Threads append all the time; each fork waits for them, and each child opens and appends."""
    memory, stop = used(path), threading.Event()
    counts = [0, 0]

    def work(number: int) -> None:
        while not stop.is_set():
            say(memory, f"w{counts[number]}", thread=f"w{number}")
            counts[number] += 1
            memory.conversations()

    threads = [threading.Thread(target=work, args=[n]) for n in range(2)]
    for thread in threads:
        thread.start()
    pids = [in_child(partial(appended, path, f"child{n}")) for n in range(6)]
    ended(*pids)
    stop.set()
    for thread in threads:
        thread.join()
    for number, count in enumerate(counts):
        stored = words_of(memory, f"w{number}").split()
        print("thread", stored == [f"w{n}" for n in range(count)])
    print(memory.verify().ok)
    memory.close()


def long_commit(path: Path) -> None:
    """A commit that takes longer than a fork waits: the child refuses this log and no other."""
    memory = used(path)
    blocker = [sqlite3.connect(path, isolation_level=None, check_same_thread=False)]
    blocker[0].execute("BEGIN IMMEDIATE")
    thread = threading.Thread(target=say, args=[memory, "slow"])
    thread.start()
    in_use = 0
    while in_use < 20:  # Reads before the commit end soon.
        in_use = in_use + 1 if GATE.uses else 0
        time.sleep(0.01)
    usual, fork_gate.PATIENCE = fork_gate.PATIENCE, 0.3
    began = time.monotonic()
    pid = in_child(lambda: _of_both(path))
    print("waited", 0.3 <= time.monotonic() - began < 3, "usually", usual)
    ended(pid)
    blocker[0].execute("ROLLBACK")
    blocker[0].close()
    thread.join()
    print(words_of(memory))
    memory.close()


def _of_both(path: Path) -> None:
    print(appended(path.with_name("other.db"), "other"))
    print(appended(path, "new"))


def killed_in_the_lock(path: Path) -> None:
    """A writer is killed inside of the lock, and its child sleeps: the lock is free at once."""
    ready = os.pipe()

    def writer() -> None:
        memory = used(path)
        conversation: Any = memory.conversation("t")
        log = conversation._core.log

        def decide(_: object) -> Sequence[Any]:
            os.write(ready[1], b"%d" % in_child(lambda: time.sleep(20)))
            time.sleep(20)
            return ()

        log.transact("t", decide, at=conversation._core.clock())

    pid = in_child(writer)
    sleeping = int(os.read(ready[0], 20))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    began = time.monotonic()
    print(appended(path, "after"), time.monotonic() - began < 5)
    os.kill(sleeping, signal.SIGKILL)


def within_a_use(path: Path) -> None:
    """A fork by the thread that is in a transaction itself: the child refuses, the parent goes on."""
    memory = used(path)

    def question(_: object) -> str:
        began = time.monotonic()
        ended(in_child(lambda: appended(path, "child")))
        print("at once", time.monotonic() - began < 3)
        return "answered"

    core: Any = memory.conversation("t")._core  # pyright: ignore[reportPrivateUsage]
    print(core.views._views.followed.answer(question))
    say(memory, "two")
    print(words_of(memory))
    memory.close()


def replaced(path: Path) -> None:
    """A log that is replaced while a fork had it closed is noticed at the next use."""
    memory = used(path)
    other = path.with_name("other.db")
    refold.open(other, telemetry=False).close()
    ended(in_child(lambda: None))
    other.replace(path)
    try:
        say(memory, "two")
        print("stored")
    except refold.LogGone as error:
        print(type(error).__name__)


def append(path: Path) -> None:
    print(appended(path, "started"))


PROGRAMS = {
    one.__name__: one
    for one in (
        open_again,
        let_go,
        refused,
        below,
        in_commits,
        long_commit,
        in_memory,
        killed_in_the_lock,
        within_a_use,
        by_multiprocessing,
        replaced,
        asynchronous,
        by_subprocess,
        append,
    )
}

if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads.
    signal.alarm(ALARM)
    PROGRAMS[sys.argv[1]](Path(sys.argv[2]) / "a.db")

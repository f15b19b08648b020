"""The scenes of forked lives: programs, servers and forks past Python, in an order drawn by chance."""

import gc
import multiprocessing
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import refold

from .forked_life import (
    FAILED,
    PATIENCE,
    REFUSED,
    Draw,
    Life,
    at_work,
    be_killed_if_it_hangs,
    fork,
    guarded,
    wait_for,
)


def use_inherited(life: Life, memory: refold.Memory) -> None:
    """Everything is refused, and letting go is quiet."""
    deeds: dict[str, Callable[[], object]] = {
        "conversation": lambda: memory.conversation("common"),
        "conversations": memory.conversations,
        "search": lambda: memory.search("anything"),
        "verify": memory.verify,
        "with": memory.__enter__,
    }
    for name in life.draw.sample(sorted(deeds), 3):
        try:
            deeds[name]()
        except REFUSED:
            continue
        life.tell(wrong=f"{name} of an inherited memory is not refused")
    if not memory.drain(0):
        life.tell(wrong="drain of an inherited memory waits")


class Child:
    """A forked process: what it does with what it inherited, and with a memory of its own."""

    def __init__(
        self,
        life: Life,
        name: str,
        inherited: list[refold.Memory],
        depth: int,
        *,
        waits: bool = False,
    ) -> None:
        """``depth``: of the forks below it. ``waits``: whether it always waits for those."""
        self._life, self._name, self._inherited = life, name, inherited
        self._depth, self._waits = depth, waits

    def live(self) -> None:
        life, draw = self._life, self._life.draw
        before, after = draw.sample(("use", "close", "collect", ""), 2)
        self._old(before)
        try:
            memory = life.open()
        except REFUSED as error:
            life.tell(refused=self._name, text=str(error))
            return
        life.say(memory, self._name, draw.randint(1, 3))
        self._old(after)
        pids: list[int] = []
        if self._depth and draw.random() < 0.4:
            pids = [fork(life, lambda name: Child(life, name, [memory], self._depth - 1).live())]
        life.say(memory, self._name, draw.randint(1, 3))
        if draw.random() < 0.6:
            memory.close()
            self._old(draw.choice(("close", "collect")))
        if self._waits or draw.random() < 0.5:
            wait_for(life, *pids)

    def _old(self, step: str) -> None:
        if not self._inherited:
            return
        if step == "use":
            use_inherited(self._life, self._inherited[0])
        elif step == "close":
            self._inherited[0].close()
        elif step == "collect":
            self._inherited.clear()
            gc.collect()


def used_memory(life: Life) -> refold.Memory:
    """A memory whose log, read models and recall index are open."""
    memory = life.open()
    life.say(memory, "parent", life.draw.randint(1, 2))
    if life.draw.random() < 0.7:
        memory.conversations()
        memory.conversation("common").recall("parent")
        memory.conversation("common").context()
    return memory


def parent_and_child(life: Life) -> None:
    """A program that has the log open, forks, goes on, closes, ends or is killed, in any order with its children."""
    memory, draw = used_memory(life), life.draw
    pids: list[int] = []
    with at_work(life, memory, draw.choice((0, 0, 1, 2))):
        for _ in range(draw.randint(1, 2)):
            time.sleep(draw.random() * 0.02)
            pids.append(fork(life, lambda name: Child(life, name, [memory], 2).live()))
            life.say(memory, "parent")
        if draw.random() < 0.15:
            time.sleep(draw.random() * 0.01)
            os.kill(os.getpid(), signal.SIGKILL)
    _go_on(life, memory, pids)


def _go_on(life: Life, memory: refold.Memory, pids: list[int]) -> None:
    match life.draw.choice(("append", "close", "reopen", "end", "wait", "collect")):
        case "append":
            life.say(memory, "parent", 3)
            memory.close()
        case "close":
            memory.close()
        case "reopen":
            memory.close()
            with life.open() as again:
                life.say(again, "parent", 2)
        case "end":
            os._exit(0)  # Its children live on.
        case "wait":
            wait_for(life, *pids)
            pids = []
            life.say(memory, "parent")
        case _:
            del memory
            gc.collect()
    wait_for(life, *pids)


def by_multiprocessing(life: Life, method: str) -> None:
    """``multiprocessing`` as programs use it: its children end in its own way."""
    memory = used_memory(life)
    context: Any = multiprocessing.get_context(method)
    name = life.name()
    life.tell(child=name, expects="stored")
    inherited = [memory] if method == "fork" else []
    args = (str(life.folder), name, inherited)
    with at_work(life, memory, life.draw.choice((0, 1)) if method == "fork" else 0):
        child = context.Process(target=begun, args=args)
        child.start()
        life.say(memory, "parent", 2)
    if life.draw.random() < 0.5:
        memory.close()
    child.join(PATIENCE)
    if child.exitcode != 0:
        life.tell(wrong=f"a child of multiprocessing ended with {child.exitcode}")
    if life.draw.random() < 0.5:
        memory.close()


def begun(folder: str, name: str, inherited: list[refold.Memory]) -> None:
    """The child of ``by_multiprocessing``."""
    be_killed_if_it_hangs()
    life = Life(Path(folder), Draw(name))
    # The first process does not see the end of what is forked below a process that was not forked from it.
    if guarded(life, Child(life, name, inherited, 1, waits=True).live, name):
        sys.exit(FAILED)


def past_python(life: Life, way: str) -> None:
    """A fork that Python knows nothing of: refused where the log was open, and only there."""
    memory, is_open = used_memory(life), life.draw.random() < 0.7
    if not is_open:
        memory.close()
    # Python itself does not survive it where other threads run: one has its lock, and none is left to give it back.
    while threading.active_count() > 1:
        time.sleep(0.001)
    expects = "refused" if is_open else "stored"
    work = _opening(life, [memory] if is_open else [])
    wait_for(life, fork(life, work, way=way, expects=expects))
    if is_open:
        life.say(memory, "parent")
        memory.close()


def _opening(life: Life, inherited: list[refold.Memory]) -> Callable[[str], None]:
    """Open the log, then another one."""

    def work(name: str) -> None:
        Child(life, name, inherited, 0).live()
        with refold.open(life.folder / f"{name}.db", telemetry=False) as other:
            other.conversation("t").append({"role": "user", "content": "another log"})

    return work


def server(life: Life, *, preload: bool) -> None:
    """A server that forks its workers beforehand, loses one and makes another; each opens its own memory."""
    memory = used_memory(life) if preload else None
    ends: list[int] = []
    workers = [_worker(life, memory, ends) for _ in range(3)]
    if memory is not None:
        life.say(memory, "parent", 2)
    os.read(ends[0], 1)
    os.kill(workers[0], signal.SIGKILL)
    life.tell(ended=life.children[workers[0]])
    wait_for(life, workers[0], may_be_killed=True)
    workers[0] = _worker(life, memory, ends)
    for end in ends[1:]:
        os.read(end, 1)
    for pid in workers:
        os.kill(pid, signal.SIGTERM)
    wait_for(life, *workers)
    if memory is not None:
        life.say(memory, "parent")
        memory.close()


def _worker(life: Life, inherited: refold.Memory | None, ends: list[int]) -> int:
    reading, writing = os.pipe()
    ends.append(reading)

    def work(name: str) -> None:
        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
        if inherited is not None and life.draw.random() < 0.5:
            use_inherited(life, inherited)
        with life.open() as memory:
            while not stop.is_set():
                life.say(memory, name)
                os.write(writing, b".")

    pid = fork(life, work)
    os.close(writing)
    return pid


def long_commit(life: Life) -> None:
    """A fork while a commit takes longer than it waits: the child refuses this log, and no other."""
    memory = used_memory(life)
    pid = fork(life, lambda _: _block(life), expects="")
    while not (life.folder / "blocked").exists():
        time.sleep(0.01)
    worker = threading.Thread(target=lambda: guarded(life, lambda: life.say(memory, "t"), "thread"))
    worker.start()
    time.sleep(0.3)
    began = time.monotonic()
    child = fork(life, _opening(life, [memory]), expects="refused")
    if not 4.5 < (waited := time.monotonic() - began) < 7:
        life.tell(wrong=f"the fork waited for {waited:.1f} s")
    (life.folder / "blocked").unlink()
    worker.join(PATIENCE)
    wait_for(life, pid, child)
    life.say(memory, "parent")
    memory.close()


def _block(life: Life) -> None:
    """Hold the write lock of SQLite itself until the file is gone."""
    blocker = sqlite3.connect(life.log, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    (life.folder / "blocked").touch()
    while (life.folder / "blocked").exists():
        time.sleep(0.01)
    blocker.execute("ROLLBACK")
    blocker.close()

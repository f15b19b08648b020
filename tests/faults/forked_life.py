"""A process of a forked life: tells beforehand what it tries, and afterwards what was acknowledged; forks and waits."""

import atexit
import ctypes
import faulthandler
import gc
import json
import os
import random
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import refold

REFUSED: type[refold.RefoldError] = getattr(refold, "OpenedBeforeFork", refold.LogError)
"""Older versions have no error of its own."""
LOG = "agent.db"
TOLD = "told.jsonl"
PATIENCE = 25.0
"""Seconds that a process of a life may take: a fork waits for 5 at most, a lock for less."""
FAILED = 70
Draw = random.Random


class Life:
    """A folder with a log, and the file in which its processes tell what they did."""

    def __init__(self, folder: Path, draw: Draw) -> None:
        self.folder, self.draw = folder, draw
        self.log = folder / LOG
        self._told = os.open(folder / TOLD, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._names, self._numbers = count(1), count()
        self.children: dict[int, str] = {}

    def tell(self, **facts: object) -> None:
        os.write(self._told, json.dumps(facts).encode() + b"\n")

    def name(self) -> str:
        return f"p{os.getpid()}-{next(self._names)}"

    def open(self) -> refold.Memory:
        return refold.open(self.log, telemetry=False)

    def say(self, memory: refold.Memory, who: str, times: int = 1) -> None:
        """Append to a conversation that all share and to one of our own, and tell what was acknowledged."""
        for _ in range(times):
            text = f"{who} {next(self._numbers)}"
            for thread in ("common", who):
                self.tell(tries=text, thread=thread)
                memory.conversation(thread).append({"role": "user", "content": text})
                self.tell(stored=text, thread=thread, who=who)


def guarded(life: Life, work: Callable[[], None], name: str) -> int:
    """Do the work of a process; the status that it ends with."""
    try:
        work()
        life.tell(ended=name)
    except BaseException:
        life.tell(wrong=f"{name}: {traceback.format_exc()[-1500:]}")
        return FAILED
    return 0


def fork(
    life: Life, work: Callable[[str], None], *, expects: str = "stored", way: str = "python"
) -> int:
    """Fork a process that does the work; it ends at once, or after what programs run at their end."""
    name = life.name()
    life.tell(child=name, expects=expects)
    pid = WAYS[way]()
    if pid:
        life.children[pid] = name
        return pid
    be_killed_if_it_hangs()
    life.draw.seed(name)
    status = guarded(life, lambda: work(name), name)
    if way == "python" and life.draw.random() < 0.5:
        atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
        gc.collect()
    os._exit(status)


def be_killed_if_it_hangs() -> None:
    """Have this process say where it is, and end, when its time is up."""
    faulthandler.register(signal.SIGALRM, 2, chain=True)
    signal.alarm(int(PATIENCE))


def _past_python() -> int:
    """Fork with Python's lock held, as a program in C that embeds it may."""
    return int(ctypes.PyDLL(None).fork())


def _half_past_python() -> int:
    """Fork as servers in C do that tell Python afterwards only."""
    if pid := _past_python():
        return pid
    ctypes.pythonapi.PyOS_AfterFork_Child()
    return 0


WAYS = {"python": os.fork, "past": _past_python, "half": _half_past_python}


def wait_for(life: Life, *pids: int, may_be_killed: bool = False) -> None:
    """Wait for children; who hangs is told and killed."""
    until = time.monotonic() + PATIENCE
    for pid in pids:
        while not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if time.monotonic() > until:
                life.tell(wrong=f"process {pid} hangs")
                os.kill(pid, signal.SIGALRM)  # It says where it is.
                time.sleep(0.5)
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status and not (may_be_killed and status == -signal.SIGKILL):
            life.tell(wrong=f"process {pid} ended with {status}")


@contextmanager
def at_work(life: Life, memory: refold.Memory, threads: int) -> Generator[None]:
    """Threads that append, look and search all the time, so that a fork meets them in the middle."""
    stop = threading.Event()

    def work(number: int) -> None:
        who = f"t{os.getpid()}-{number}"
        while not stop.is_set():
            life.say(memory, who)
            memory.conversations()
            if number:
                memory.conversation(who).recall("process")

    workers = [
        threading.Thread(
            target=partial(guarded, life, partial(work, n), f"thread {n}"), daemon=True
        )
        for n in range(threads)
    ]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        stop.set()
        for worker in workers:
            worker.join(PATIENCE)
            if worker.is_alive():
                life.tell(wrong="a thread of the parent hangs")

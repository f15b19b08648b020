"""A scheduler for the threads of one process: one runs at a time, and a choice says at each point which one goes on.

Time is counted, not measured: each point takes a moment, and where every thread waits, the clock leaps to the
next deadline. So a schedule takes as long as its work, and is the same each time.
"""

import _thread
import math
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

TICK = 20e-6
"""Seconds that pass on the counted clock at each point."""
MOST_POINTS = 200_000
"""A schedule with more points counts as one that never ends."""
MOST_SECONDS = 600.0
"""A schedule that takes longer on the counted clock counts as one that never ends."""
LONG_WAIT = 1.0
"""Seconds for which every thread waits that are worth a find: a wake-up was lost, or a time limit ran out."""

Ready = Callable[[], bool]


class Stuck(BaseException):
    """No thread can go on, or the schedule never ends."""


class Decision(NamedTuple):
    """A point at which the scheduler chose between threads."""

    number: int
    thread: str
    """The thread that came to the point."""
    what: str
    on: object
    """The lock, file or module that the thread is about to use."""
    others: tuple[str, ...]
    """The other threads that could have gone on."""
    chosen: str
    can_stay: bool
    """Whether the thread itself could go on; if not, any choice is free."""


Choice = Callable[[int, str | None, Sequence[str]], str]
"""Returns the thread that goes on: of the number of the point, the thread that may stay, and all others."""


@dataclass(eq=False)
class Task:
    """A thread, as the scheduler sees it."""

    name: str
    go: Any = field(default_factory=lambda: _held_lock())
    ready: Ready | None = None
    """What it waits for; None if it can go on."""
    until: float = math.inf
    what: str = "begin"
    done: bool = False
    ident: int = 0
    chosen_at: int = -1
    """The number of the last decision that chose it in place of the usual one."""


def _held_lock() -> Any:
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock


class Scheduler:
    """Passes the baton between threads. The thread that makes it is the first one, and the director."""

    def __init__(self, choice: Choice) -> None:
        self.clock = 1000.0
        self.tasks: list[Task] = [Task("m")]
        self.decisions: list[Decision] = []
        self.trace: list[str] = []
        self.leaps: list[str] = []
        """Long waits of all threads at once."""
        self.failure: str | None = None
        self.armed = False
        """Whether choices are asked for; before and after, a thread goes on as long as it can."""
        self.points = 0
        self.users: dict[str, set[str]] = {}
        """The threads that came to points of the same lock, file or module, by its name."""
        self._choice = choice
        self._spawned = 0
        self._by_ident = {_thread.get_ident(): self.tasks[0]}
        self.tasks[0].ident = _thread.get_ident()

    def mine(self) -> Task | None:
        """The task of this thread; None if the thread is not scheduled, or has ended its work."""
        task = self._by_ident.get(_thread.get_ident())
        return None if task is None or task.done else task

    def task(self, name: str | None) -> Task:
        """A new thread; one that the program began by itself gets the next number."""
        if name is None:
            self._spawned += 1
            name = f"s{self._spawned}"
        made = Task(name)
        self.tasks.append(made)
        return made

    def begin(self, task: Task) -> None:
        """Wait for the first turn, in the thread itself."""
        task.ident = _thread.get_ident()
        self._by_ident[task.ident] = task
        task.go.acquire()

    def end(self, task: Task) -> None:
        """Give the baton away for good."""
        self._note(task, "end")
        task.done = True
        self._pass_on(task, None)

    def switch(self, what: str, on: object) -> None:
        """A point: another thread may go on here."""
        task = self.mine()
        if task is None:
            return
        self._check(task)
        self._note(task, what)
        if not self.armed:
            return
        self.users.setdefault(name_of(on), set()).add(task.name)
        enabled = self._enabled(task)
        if not enabled:
            return
        chosen = self._decide(task, what, on, enabled, can_stay=True)
        if chosen is not task:
            task.what = what
            self._hand(task, chosen)

    def wait(self, ready: Ready, until: float, what: str, on: object) -> None:
        """Wait until something holds or the time is up. Others go on meanwhile."""
        task = self.mine()
        if task is None:
            return
        self._check(task)
        self._note(task, f"wait: {what}")
        task.ready, task.until, task.what = ready, until, what
        self._pass_on(task, on)
        task.ready, task.until = None, math.inf

    def settle(self, seconds: float) -> None:
        """Let what still runs run on for so long."""
        until, known = self.clock + seconds, len(self.leaps)
        self.wait(lambda: False, until, "settle", "clock")
        del self.leaps[known:]

    def _note(self, task: Task, what: str) -> None:
        self.points += 1
        self.clock += TICK
        self.trace.append(f"{len(self.decisions)} {task.name} {what}")
        if self.points > MOST_POINTS or self.clock > 1000.0 + MOST_SECONDS:
            self._fail("NEVER ENDS")

    def _check(self, task: Task) -> None:
        if self.failure is None:
            return
        if task is self.tasks[0]:
            raise Stuck(self.failure)
        task.go.acquire()  # Never let go again: the schedule is over.

    def _enabled(self, but: Task | None = None) -> list[Task]:
        """The threads that can go on.

        First those that were chosen in place of the usual one, the last one of them first; then those that the
        program began by itself; the director last.
        """
        able = [task for task in self.tasks if task is not but and self._can_run(task)]
        return sorted(able, key=lambda task: (-task.chosen_at, "sabcdm".index(task.name[0])))

    def _can_run(self, task: Task) -> bool:
        if task.done:
            return False
        return task.ready is None or task.until <= self.clock or task.ready()

    def _decide(
        self, task: Task, what: str, on: object, others: Sequence[Task], *, can_stay: bool
    ) -> Task:
        names = tuple(other.name for other in others)
        number = len(self.decisions)
        chosen = self._choice(number, task.name if can_stay else None, names)
        decision = Decision(number, task.name, what, on, names, chosen, can_stay)
        self.decisions.append(decision)
        if chosen == task.name and can_stay:
            return task
        if can_stay or chosen != names[0]:
            others[names.index(chosen)].chosen_at = number
        return others[names.index(chosen)]

    def _pass_on(self, task: Task, on: object) -> None:
        """Let another thread go on, or this one where it can again."""
        enabled = self._enabled()
        while not enabled:
            if not self._leap():
                self._fail("DEADLOCK")
                return
            enabled = self._enabled()
        chosen = enabled[0]
        if self.armed and len(enabled) > 1:
            chosen = self._decide(task, task.what, on, enabled, can_stay=False)
        if chosen is not task:
            self._hand(task, chosen)

    def _leap(self) -> bool:
        """Let the clock leap to the next deadline; whether there is one."""
        waiting = [task for task in self.tasks if not task.done and task.until < math.inf]
        if not waiting:
            return False
        first = min(waiting, key=lambda task: task.until)
        if first.until - self.clock > LONG_WAIT:
            seconds = first.until - self.clock
            self.leaps.append(f"all waited {seconds:.1f} s for {first.name}: {first.what}")
        self.clock = max(self.clock, first.until)
        return self.clock <= 1000.0 + MOST_SECONDS

    def _hand(self, task: Task, chosen: Task) -> None:
        chosen.go.release()
        if not task.done:
            task.go.acquire()
            self._check(task)

    def _fail(self, what: str) -> None:
        """End the schedule: only the director goes on."""
        if self.failure is not None:
            return
        alive = [task for task in self.tasks if not task.done]
        lines = [f"{task.name} at {task.what}: {_place_of(task.ident)}" for task in alive]
        self.failure = "\n    ".join([what, *lines])
        task = self.mine()
        if task is not None and task is self.tasks[0]:
            raise Stuck(self.failure)
        self.tasks[0].go.release()
        if task is not None:
            task.go.acquire()


def name_of(used: object) -> str:
    """The name of what a thread uses at a point."""
    return str(getattr(used, "name", used))


def _place_of(ident: int) -> str:
    """The innermost lines of refold and of the tools that a thread runs."""
    frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
    frame = frames.get(ident)
    if frame is None:
        return "not begun"
    stack = traceback.extract_stack(frame)
    ours = [
        s for s in stack if "interleaving_" not in s.filename and "/lib/python" not in s.filename
    ]
    return " < ".join(f"{s.filename.rpartition('/')[2]}:{s.lineno}" for s in reversed(ours[-4:]))

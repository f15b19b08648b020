"""A process of a schedule: does one step at a time as it is told over a socket, and forks, execs and ends on demand."""

import gc
import json
import os
import signal
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import refold

Answer = dict[str, Any]
STOPPING = ("fcntl", "posix", "os")
"""Modules whose calls count as points beside those of ``sqlite3``."""
COUNTED = frozenset(
    {
        "execute",
        "executemany",
        "commit",
        "rollback",
        "close",
        "flock",
        "lockf",
        "stat",
        "fstat",
        "fsync",
    }
)


NEEDING_A_MEMORY = frozenset(
    {"append", "context", "list", "close", "begin", "use old", "close old", "collect old"}
)


class Pause:
    """Stops a thread before its n-th call of SQLite or of the file system, until it is let go on."""

    def __init__(self, point: int) -> None:
        self._left = point
        self.reached = threading.Event()
        self._go_on = threading.Event()

    def let_go(self) -> None:
        self._go_on.set()

    def look(self, _frame: FrameType, event: str, called: Any) -> None:
        """To be given to ``sys.setprofile``."""
        if event != "c_call" or getattr(called, "__name__", "") not in COUNTED:
            return
        owner = getattr(called, "__self__", None)
        is_sql = isinstance(owner, sqlite3.Connection | sqlite3.Cursor)
        if is_sql or getattr(owner, "__name__", "") in STOPPING:
            self._left -= 1
            if self._left == 0:
                self.reached.set()
                self._go_on.wait(60)


class Actor:
    """What a process of the schedule holds: a memory of its own, and one that it inherited."""

    def __init__(self, name: str, log: Path, place: Path) -> None:
        self.name = name
        self._log = log
        self._place = place
        self._memory: refold.Memory | None = None
        self._old: refold.Memory | None = None
        self._pause: Pause | None = None
        self._paused: threading.Thread | None = None
        self._result: Answer = {}
        self._connect()

    def _connect(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(self._place))
        self._lines = self._socket.makefile("rw")
        self._say({"name": self.name})

    def _say(self, answer: Answer) -> None:
        self._lines.write(json.dumps(answer) + "\n")
        self._lines.flush()

    def serve(self) -> None:
        """Do what is told until there is nothing more."""
        while line := self._lines.readline():
            told = json.loads(line)
            self._say(self._done(told["step"], told))

    def _done(self, step: str, told: Answer) -> Answer:
        steps: dict[str, Callable[[Answer], Answer]] = {
            "open": self._open,
            "append": self._append,
            "context": self._context,
            "list": self._list,
            "close": self._close,
            "collect": self._collect,
            "use old": self._use_old,
            "close old": self._close_old,
            "collect old": self._collect_old,
            "begin": lambda told: self._begin("append", told),
            "begin open": lambda told: self._begin("open", told),
            "resume": self._resume,
            "fork": self._fork,
            "exec": self._exec,
            "exit": self._exit,
            "_exit": self._exit_at_once,
            "kill": self._kill,
        }
        missing = self._old is None if step.endswith("old") else self._memory is None
        if missing and step in NEEDING_A_MEMORY:
            return {"skipped": True}
        try:
            return steps[step](told)
        except refold.RefoldError as error:
            return {"error": type(error).__name__, "text": str(error)}
        except Exception as error:
            return {"untyped": repr(error)}

    def _open(self, _told: Answer) -> Answer:
        self._memory = refold.open(self._log, telemetry=False)
        return {}

    def _own(self) -> refold.Memory:
        assert self._memory is not None
        return self._memory

    def _append(self, told: Answer) -> Answer:
        return _said(self._own(), told)

    def _context(self, told: Answer) -> Answer:
        self._own().conversation(told["thread"]).context()
        return {}

    def _list(self, _told: Answer) -> Answer:
        return {"listed": len(self._own().conversations())}

    def _close(self, _told: Answer) -> Answer:
        memory, self._memory = self._own(), None
        memory.close()
        return {}

    def _collect(self, _told: Answer) -> Answer:
        self._memory = None
        gc.collect()
        return {}

    def _use_old(self, told: Answer) -> Answer:
        assert self._old is not None
        return _said(self._old, told)

    def _close_old(self, _told: Answer) -> Answer:
        assert self._old is not None
        self._old.close()
        return {}

    def _collect_old(self, _told: Answer) -> Answer:
        self._old = None
        gc.collect()
        return {}

    def _begin(self, deed: str, told: Answer) -> Answer:
        """Begin a step in a thread, and stop it at a point in its middle."""
        self._pause = pause = Pause(told["point"])
        self._result = {}

        def do() -> None:
            sys.setprofile(pause.look)
            try:
                self._result = self._done(deed, told)
            finally:
                sys.setprofile(None)
                pause.reached.set()

        self._paused = threading.Thread(target=do, daemon=True)
        self._paused.start()
        pause.reached.wait(40)
        return self._result or {"paused": True}

    def _resume(self, _told: Answer) -> Answer:
        if self._pause is None or self._paused is None:
            return {}
        self._pause.let_go()
        self._paused.join(40)
        self._pause = None
        hangs = self._paused.is_alive()
        return {"untyped": "what was begun does not end"} if hangs else self._result

    def _fork(self, told: Answer) -> Answer:
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            return {"child": pid}
        # Else the director would not see the end of the process that this one came from.
        self._lines.close()
        self._socket.close()
        self.name = told["child"]
        self._old, self._memory = self._memory or self._old, None
        self._pause = self._paused = None
        self._connect()
        self.serve()
        sys.exit(0)

    def _exec(self, _told: Answer) -> Answer:
        words = [sys.executable, "-m", "tests.faults.schedule_actor"]
        os.execv(sys.executable, [*words, self.name, str(self._log), str(self._place)])

    def _exit(self, _told: Answer) -> Answer:
        sys.exit(0)

    def _exit_at_once(self, _told: Answer) -> Answer:
        os._exit(0)

    def _kill(self, _told: Answer) -> Answer:
        os.kill(os.getpid(), signal.SIGKILL)
        return {}


def _said(memory: refold.Memory, told: Answer) -> Answer:
    message = {"role": "user", "content": f"{told['mark']} said {told['thread']}"}
    return {"positions": memory.conversation(told["thread"]).append(message).positions}


if __name__ == "__main__":
    Actor(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])).serve()

"""The lock that orders writers, threads and processes, with a fair line in front of it."""

import os
import struct
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from refold.application.errors import LogBusy
from refold.application.runtime.foreign_code import CURRENT, Withdrawal
from refold.application.runtime.opening_process import LOCK_WAIT, OpeningProcess

from .fork_gate import GATE
from .private_files import open_private

PLACES = 32
"""Who comes when so many wait already is not in the line yet."""


class Line:
    """Where the system has no such locks, everybody is next: who looks at the right moment comes first."""

    def __init__(self, file: IO[bytes]) -> None:
        del file

    def join(self) -> bool:
        """Take the first place if nobody waits; whether we are next."""
        return True

    def step(self) -> bool:
        """Move up as far as the line has moved; whether we are next."""
        return True

    def admit(self) -> None:
        """Let others stand behind us."""

    def leave(self) -> None:
        """Give every place free."""


if sys.platform == "linux":
    from fcntl import F_OFD_SETLK, F_UNLCK, F_WRLCK, fcntl

    def _flock(kind: int, first: int, count: int) -> bytes:
        """The system's ``struct flock``: type, whence, start, length, process."""
        return struct.pack("@hhqqi0q", kind, os.SEEK_SET, first, count, 0)

    _TAKE_ALL = _flock(F_WRLCK, 0, PLACES)
    _GIVE_ALL = _flock(F_UNLCK, 0, PLACES)

    class PlacedLine(Line):
        """A place in the line is a lock on one byte of the lock file; place 0 is next.

        A place is left only for the free one before it, so nobody is overtaken. The system gives the
        place of a process that dies free.
        """

        def __init__(self, file: IO[bytes]) -> None:
            self._file = file
            self._place = PLACES

        def join(self) -> bool:
            """See ``Line``."""
            if self._took(_TAKE_ALL):
                self._place = 0
            return self._place == 0

        def step(self) -> bool:
            """See ``Line``."""
            while self._place and self._took(_flock(F_WRLCK, self._place - 1, 1)):
                self._place -= 1
                self.admit()
            return self._place == 0

        def admit(self) -> None:
            """See ``Line``."""
            behind = self._place + 1
            if behind < PLACES:
                fcntl(self._file, F_OFD_SETLK, _flock(F_UNLCK, behind, PLACES - behind))

        def leave(self) -> None:
            """See ``Line``."""
            fcntl(self._file, F_OFD_SETLK, _GIVE_ALL)

        def _took(self, places: bytes) -> bool:
            try:
                fcntl(self._file, F_OFD_SETLK, places)
            except (BlockingIOError, PermissionError):
                return False
            return True

    line_at: type[Line] = PlacedLine
else:
    line_at = Line


_Refused: type[Exception]

if sys.platform == "win32":  # Windows has another call; the library knows it.
    import portalocker

    _FLAGS = portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING
    _Refused = portalocker.LockException

    def _lock(file: IO[bytes]) -> None:
        portalocker.lock(file, _FLAGS)

    def unlock(file: IO[bytes]) -> None:
        """Give a lock free."""
        portalocker.unlock(file)

else:
    from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock

    # The system's own call, since this is paid at every append.
    _Refused = BlockingIOError

    def _lock(file: IO[bytes]) -> None:
        flock(file, LOCK_EX | LOCK_NB)

    def unlock(file: IO[bytes]) -> None:
        """Give a lock free."""
        flock(file, LOCK_UN)


POLL = 0.001
"""Seconds between tries of a lock that another process holds."""
POLL_NEXT = 0.0003
"""The same for who is next: the lock lies idle meanwhile."""
PATIENCE = 0.05
"""Seconds after which a thread that waits for another looks whether it is still wanted."""


class WriteLock:
    """Held around reload, decide and insert, so that writers do not starve each other in SQLite.

    The system releases it when its holder dies, unless a forked process has the same file open: so it
    closes it.
    """

    refuses = False
    """Whether it lets nobody in."""

    def __init__(self, path: Path | None, timeout: float, *, of: Path | None = None) -> None:
        """``path`` is the lock file; None where no other process can write (memory).

        ``of``: the file that it stands for, in whose name ``path`` ends in ``.lock`` unless it is said;
        whoever may use that one may use the lock.
        """
        self._threads = threading.RLock()
        self._path = path
        self._of = of or (path and path.with_suffix(""))
        self._file: IO[bytes] | None = None
        self._timeout = timeout
        self._process = OpeningProcess(f"{self._of}")
        if path is not None:
            GATE.close_in_child(self.close)

    @contextmanager
    def held(self) -> Generator[None]:
        """Hold the lock.

        Raises:
            LogBusy: another process held it for longer than the time-out.
            OpenedBeforeFork: it was made before this process was forked.
        """
        self._process.check()
        withdrawal = CURRENT.get()
        with self._alone(withdrawal):
            if self._path is None:
                _begin(withdrawal)
                yield
                return
            file = self._acquired(self._path)
            try:
                _begin(withdrawal)
                yield
            finally:
                if self._process.is_this:  # Else it would be given up for the process that has it.
                    unlock(file)

    @contextmanager
    def _alone(self, withdrawal: Withdrawal | None) -> Generator[None]:
        """Be the only thread; one that was given up meanwhile waits no longer."""
        most = LOCK_WAIT.get()
        if withdrawal is None and most is None:
            with self._threads:
                yield
            return
        until = None if most is None else time.monotonic() + most
        while not self._threads.acquire(timeout=PATIENCE):
            if withdrawal is not None:
                withdrawal.refuse()
            if until is not None and time.monotonic() > until:
                raise LogBusy(f"{self._of} is being written by another thread; try again")
        try:
            yield
        finally:
            self._threads.release()

    def close(self) -> None:
        """Close the lock file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _acquired(self, path: Path) -> IO[bytes]:
        """The locked lock file, the one that everybody else finds as well."""
        while True:
            if self._file is None:
                # Without a buffer, whose lock a thread may hold that does not live in a forked process.
                self._file = open_private(path, "ab", like=self._of, buffering=0)
            self._acquire(self._file)
            if lies_at(path, self._file):
                return self._file
            # Deleted while it was open: others lock another one.
            self.close()

    def _acquire(self, file: IO[bytes]) -> None:
        line = line_at(file)
        try:
            if line.join() and lock_at_once(file):
                return
            line.admit()
            timeout = min(self._timeout, _most(LOCK_WAIT.get()))
            deadline = time.monotonic() + timeout
            while not ((is_next := line.step()) and lock_at_once(file)):
                if (withdrawal := CURRENT.get()) is not None:
                    withdrawal.refuse()
                if time.monotonic() > deadline:
                    raise LogBusy(
                        f"another process held {self._path} for over {timeout:.0f} s; try again"
                    )
                time.sleep(POLL_NEXT if is_next else POLL)
        finally:
            line.leave()


def _most(seconds: float | None) -> float:
    return float("inf") if seconds is None else seconds


def _begin(withdrawal: Withdrawal | None) -> None:
    if withdrawal is not None:
        withdrawal.write()


def lies_at(path: Path, file: IO[bytes]) -> bool:
    """Whether an open file is the one that others find at this path."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))  # noqa: PTH116 (at every append)
    except OSError:
        return False


def lock_at_once(file: IO[bytes]) -> bool:
    """Lock a file if nobody else has; whether it is locked."""
    try:
        _lock(file)
    except _Refused:
        return False
    return True

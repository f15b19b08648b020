"""A fair lock that orders writers across threads and processes."""

import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

from refold.application.errors import LogBusy, was_closed
from refold.application.runtime.foreign_code import CURRENT, Withdrawal
from refold.application.runtime.opening_process import LOCK_WAIT, OpeningProcess

from .fork_gate import GATE
from .private_files import open_private

PLACES = 32
"""Number of places in the line. Later arrivals wait outside it."""


class Line:
    """A line for systems without byte-range locks: every waiter counts as next."""

    def __init__(self, file: IO[bytes]) -> None:
        del file

    def join(self) -> bool:
        """Take the first place if it is free. Return whether this waiter has the turn."""
        return True

    def step(self) -> bool:
        """Move forward with the line. Return whether this waiter has the turn."""
        return True

    def admit(self) -> None:
        """Let others join the line behind this waiter."""

    def leave(self) -> None:
        """Release every place."""


if sys.platform == "linux":
    from fcntl import F_OFD_SETLK, F_UNLCK, F_WRLCK, fcntl

    def _flock(kind: int, first: int, count: int) -> bytes:
        """Pack the system's ``struct flock``: type, whence, start, length, process."""
        return struct.pack("@hhqqi0q", kind, os.SEEK_SET, first, count, 0)

    _TAKE_ALL = _flock(F_WRLCK, 0, PLACES)
    _GIVE_ALL = _flock(F_UNLCK, 0, PLACES)

    class PlacedLine(Line):
        """A line whose places are locks on single bytes of the lock file; place 0 is next.

        A waiter only moves into the free place before it, so it cannot be overtaken. The system releases
        the place of a process that dies.
        """

        def __init__(self, file: IO[bytes]) -> None:
            self._file = file
            self._place = PLACES

        def join(self) -> bool:
            """Take the first place if the line is empty. Return whether this waiter has the turn."""
            if self._took(_TAKE_ALL):
                self._place = 0
            return self._place == 0

        def step(self) -> bool:
            """Move forward into free places. Return whether this waiter has the turn."""
            while self._place and self._took(_flock(F_WRLCK, self._place - 1, 1)):
                self._place -= 1
                self.admit()
            return self._place == 0

        def admit(self) -> None:
            """Let others join the line behind this waiter."""
            behind = self._place + 1
            if behind < PLACES:
                fcntl(self._file, F_OFD_SETLK, _flock(F_UNLCK, behind, PLACES - behind))

        def leave(self) -> None:
            """Release every place."""
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

if sys.platform == "win32":  # Windows has a different call, which portalocker wraps.
    import portalocker

    _FLAGS = portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING
    _Refused = portalocker.LockException

    def _lock(file: IO[bytes]) -> None:
        portalocker.lock(file, _FLAGS)

    def unlock(file: IO[bytes]) -> None:
        """Release a lock."""
        portalocker.unlock(file)

else:
    from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock

    # Call the system directly: every append pays for this.
    _Refused = BlockingIOError

    def _lock(file: IO[bytes]) -> None:
        flock(file, LOCK_EX | LOCK_NB)

    def unlock(file: IO[bytes]) -> None:
        """Release a lock."""
        flock(file, LOCK_UN)


POLL = 0.001
"""Seconds between attempts while another process holds the lock."""
POLL_NEXT = 0.0003
"""Seconds between attempts of the next waiter. It polls faster because the lock is idle meanwhile."""
PATIENCE = 0.05
"""Seconds after which a waiting thread checks whether it was cancelled."""


class WriteLock:
    """A lock around reload, decide and insert, so that writers do not starve each other in SQLite.

    The system releases the lock when its holder dies. A forked process that has the same file open would
    keep it, so the child closes the file.
    """

    refuses = False
    """True if every attempt to lock is refused."""

    def __init__(self, path: Path | None, timeout: float, *, of: Path | None = None) -> None:
        """Create the lock.

        ``path`` is the lock file, or None if no other process can write (a log in memory). ``of`` is the
        file that the lock protects; by default it is ``path`` without ``.lock``. Whoever may use that file
        may use the lock.
        """
        self._threads = threading.RLock()
        self._path = path
        self._name = f"{path}"
        self._of = of or (path and path.with_suffix(""))
        self._file: IO[bytes] | None = None
        self._identity: os.stat_result | None = None
        self._timeout = timeout
        self._is_closed = False
        self._process = OpeningProcess(f"{self._of}")
        if path is not None:
            GATE.close_in_child(self.close)

    @contextmanager
    def held(self, is_done: Callable[[], bool] | None = None) -> Generator[bool]:
        """Hold the lock, and yield True.

        If ``is_done`` returns True once other threads are kept away, the lock is not needed any more: yield
        False, and keep no other process away.

        Raises:
            LogBusy: another process held the lock for longer than the timeout.
            LogError: the lock was closed for good.
            OpenedBeforeFork: the lock was created before this process was forked.
        """
        self._process.check()
        withdrawal = CURRENT.get()
        with self._alone(withdrawal):
            if is_done is not None and is_done():
                yield False
                return
            if self._is_closed:
                raise was_closed(self._of)
            if self._path is None:
                if withdrawal is not None:
                    withdrawal.write()
                yield True
                return
            file = self._lock_file(self._path)
            try:
                if withdrawal is not None:
                    withdrawal.write()
                yield True
            finally:
                # In a forked process, this would release the lock of the parent process.
                if self._process.is_this and not file.closed:
                    unlock(file)

    @contextmanager
    def closing(self, wait: float) -> Generator[None]:
        """Wait for another thread that writes, keep others out, and close the lock for good.

        A thread that still writes after ``wait`` seconds goes on without the lock.
        """
        is_alone = self._threads.acquire(timeout=wait)
        try:
            self._is_closed = True
            yield
        finally:
            self.close()
            if is_alone:
                self._threads.release()

    def _alone(self, withdrawal: Withdrawal | None) -> AbstractContextManager[object]:
        """Exclude other threads. A cancelled thread stops waiting."""
        most = LOCK_WAIT.get()
        if withdrawal is None and most is None:
            return self._threads
        return self._alone_in_time(withdrawal, most)

    @contextmanager
    def _alone_in_time(self, withdrawal: Withdrawal | None, most: float | None) -> Generator[None]:
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

    def _lock_file(self, path: Path) -> IO[bytes]:
        """Lock the lock file and return it.

        The returned file is the one that other processes find at the path.
        """
        while True:
            if self._file is None:
                # Unbuffered: the lock of a buffer may belong to a thread that does not exist in a forked process.
                self._file = open_private(path, "ab", like=self._of, buffering=0)
                self._identity = os.fstat(self._file.fileno())
            file = self._file
            try:
                self._acquire(file)
            except ValueError as error:
                if not file.closed:
                    raise
                raise was_closed(self._of) from error
            if is_at(self._name, self._identity):
                return file
            # The file was deleted while open: other processes lock a different one.
            self.close()

    def _acquire(self, file: IO[bytes]) -> None:
        line = line_at(file)
        try:
            if line.join() and try_lock(file):
                return
            line.admit()
            timeout = min(self._timeout, _most(LOCK_WAIT.get()))
            deadline = time.monotonic() + timeout
            while not ((is_next := line.step()) and try_lock(file)):
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


def is_file_at(path: Path, file: IO[bytes]) -> bool:
    """Return whether an open file is the one at this path."""
    try:
        return is_at(str(path), os.fstat(file.fileno()))
    except OSError:
        return False


def is_at(path: str, file: os.stat_result | None) -> bool:
    """Return whether an open file with this status is the one at this path."""
    try:
        found = os.stat(path)  # noqa: PTH116 (a path object is twice as slow, and this is paid often)
    except OSError:
        return False
    return file is not None and found.st_ino == file.st_ino and found.st_dev == file.st_dev


def try_lock(file: IO[bytes]) -> bool:
    """Try to lock a file without waiting. Return whether it is locked."""
    try:
        _lock(file)
    except _Refused:
        return False
    return True

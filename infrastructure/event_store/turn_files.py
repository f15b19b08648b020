"""The lines in front of the turns of conversations: locks on a file beside the log, one range for each."""

import hashlib
import os
import struct
import sys
from pathlib import Path
from typing import IO

from refold.application.errors import LogNotWritable
from refold.application.runtime.opening_process import OpeningProcess
from refold.infrastructure.files.fork_gate import GATE
from refold.infrastructure.files.lock import lies_at, lock_at_once, unlock
from refold.infrastructure.files.private_files import open_private
from refold.infrastructure.sqlite.second_look import translated

PLACES = 64
"""Of one line, whoever has the turn included. Who comes when all are taken stands in no order."""


class FileTurns:
    """The lines of a log that other processes may have open as well.

    Nothing stands in the log, and nothing in the file: it is there to be locked.
    """

    def __init__(self, log: Path) -> None:
        self._log = log

    def place(self, thread_id: str) -> "FilePlace":
        """See ``Turns``."""
        return line_of(self._log, thread_id)


class FilePlace:
    """A place that is a file of its own for each conversation: whoever looks at the right moment is next."""

    def __init__(self, log: Path, thread_id: str) -> None:
        digest = hashlib.sha256(thread_id.encode()).digest()
        self._log = log
        self._number = int.from_bytes(digest[:8]) >> 10
        self._process = OpeningProcess(f"{log}")
        self._file: IO[bytes] | None = None
        GATE.close_in_child(self._close)

    @property
    def _path(self) -> Path:
        return Path(f"{self._log}.turn-{self._number:014x}.lock")

    def take(self) -> bool:
        """See ``Place``."""
        self._process.check()
        with translated(self._log):
            file = self._file or open_private(self._path, "ab", like=self._log, buffering=0)
            self._file = file
            if not self._is_ours(file):
                return False
            if lies_at(self._path, file):
                return True
        self.leave()  # It was deleted: others lock another one.
        return False

    def leave(self) -> None:
        """See ``Place``."""
        if self._file is not None and self._process.is_this:
            self._unlock(self._file)
        self._close()

    def _is_ours(self, file: IO[bytes]) -> bool:
        return lock_at_once(file)

    def _unlock(self, file: IO[bytes]) -> None:
        unlock(file)

    def _close(self) -> None:
        """Close the file, which gives up nothing that the parent of a forked process has."""
        if self._file is not None:
            self._file.close()
            self._file = None


line_of: type[FilePlace] = FilePlace

if sys.platform == "linux":
    from fcntl import F_OFD_SETLK, F_UNLCK, F_WRLCK, fcntl

    class RangePlace(FilePlace):
        """A place in a line is a lock on one byte; whoever has the first of them has the turn.

        A place is left only for the free one before it, so nobody is overtaken. The locks belong to the
        open file: of threads and tasks of one process as well. The system gives those of a process that
        dies free.
        """

        _at = PLACES

        @property
        def _path(self) -> Path:
            return Path(f"{self._log}.turns.lock")

        def _is_ours(self, file: IO[bytes]) -> bool:
            while self._at and _took(file, self._begin + self._at - 1):
                self._at -= 1
                if self._at < PLACES - 1:
                    _set(file, F_UNLCK, self._begin + self._at + 1, 1)
            return self._at == 0

        def _unlock(self, file: IO[bytes]) -> None:
            _set(file, F_UNLCK, self._begin, PLACES)

        def _close(self) -> None:
            self._at = PLACES
            super()._close()

        @property
        def _begin(self) -> int:
            return self._number * PLACES

    def _took(file: IO[bytes], at: int) -> bool:
        try:
            _set(file, F_WRLCK, at, 1)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _set(file: IO[bytes], kind: int, first: int, count: int) -> None:
        """Set a lock by the system's ``struct flock``: type, whence, start, length, process."""
        fcntl(file, F_OFD_SETLK, struct.pack("@hhqqi0q", kind, os.SEEK_SET, first, count, 0))

    line_of = RangePlace


class NoTurns:
    """Of a log that can only be read: there is nothing to take turns for."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def place(self, thread_id: str) -> FilePlace:
        """Refuse.

        Raises:
            LogNotWritable: nobody can append here.
        """
        del thread_id
        raise LogNotWritable(f"{self._log} can only be read here: a turn is for who appends")

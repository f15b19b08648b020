"""The line in front of the write lock: processes that wait for it get it in the order in which they came."""

import os
import struct
import sys
from typing import IO

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

"""Reading at a place of a file that others read as well: not every system has a call for it."""

import os
import sys
import threading

if sys.platform == "win32":
    _one = threading.Lock()

    def read_at(descriptor: int, size: int, offset: int) -> bytes:
        """Return up to ``size`` bytes from ``offset`` on."""
        with _one:  # Nothing else moves the place of these descriptors.
            os.lseek(descriptor, offset, os.SEEK_SET)
            return os.read(descriptor, size)

else:

    def read_at(descriptor: int, size: int, offset: int) -> bytes:
        """Return up to ``size`` bytes from ``offset`` on."""
        return os.pread(descriptor, size, offset)

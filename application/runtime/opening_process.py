"""The process that opened something, and how long its work waits for a log that another program holds."""

import ctypes
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

from refold.application.errors import OpenedBeforeFork

BRIEFLY = 1.0
"""Seconds that a request which fits as it is waits for the log, all in all, to have its decisions stored."""

LOCK_WAIT: ContextVar[float | None] = ContextVar("refold_lock_wait", default=None)
"""Seconds that a write waits for the log at most; None: as long as the log itself says."""


@contextmanager
def waiting_at_most(seconds: float | None) -> Generator[None]:
    """Have writes within wait so long at most; None: as long as they would without."""
    if seconds is None:
        yield
        return
    token = LOCK_WAIT.set(seconds)
    try:
        yield
    finally:
        LOCK_WAIT.reset(token)


_forks = 0
"""How many forks lie between this process and the one that was started."""


_kept: WeakSet[object] = WeakSet()
"""What lives for ever in a forked process."""


def live_for_ever(
    one: object,
    add: Callable[[Any], object] = ctypes.pythonapi.Py_IncRef,
    held: Callable[[object], Any] = ctypes.py_object,
) -> None:
    """Have an object never be destroyed, not even while Python takes itself down."""
    add(held(one))


def keep_in_child(one: object) -> None:
    """Have an object live for ever in a process that is forked from this one.

    For what runs when it is destroyed: there it may touch files of this process, or wait for a lock of a thread
    that does not live there.
    """
    _kept.add(one)


def _note_fork() -> None:
    global _forks
    _forks += 1
    for one in list(_kept):
        live_for_ever(one)
    _kept.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


class OpeningProcess:
    """Names the process that made it, and tells it from every process that is forked from that one.

    By its id, since a fork may bypass Python; and by the number of forks, since ids are given again.
    """

    __slots__ = ("_forks", "_pid", "what")

    def __init__(self, what: str = "this memory") -> None:
        """``what`` was opened."""
        self.what = what
        self._pid = os.getpid()
        self._forks = _forks

    @property
    def is_this(self) -> bool:
        """Whether it is the process that runs here."""
        return os.getpid() == self._pid and self._forks == _forks

    def check(self) -> None:
        """Check that it is the process that runs here.

        Raises:
            OpenedBeforeFork: this process was forked from it.
        """
        if os.getpid() != self._pid or self._forks != _forks:
            raise OpenedBeforeFork(self.what)

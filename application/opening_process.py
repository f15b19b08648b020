"""The process that opened something: what it holds is of no use in a process that was forked from it."""

import os

from .errors import OpenedBeforeFork

_forks = 0
"""How many forks lie between this process and the one that was started."""


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


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

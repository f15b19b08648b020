"""The process that runs refold: its name among the owners of attempts, its clock, and new ids."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

Clock = Callable[[], datetime]
"""Function that returns the current time with a time zone."""
NewId = Callable[[], str]
"""Function that returns a unique id of letters, digits, ``-`` and ``_``."""


class Owner(Protocol):
    """The identity of a process that works on a compaction.

    The work of a process that is certainly dead can be taken over.
    """

    @property
    def name(self) -> str:
        """Name of this process, unique on this machine."""
        ...

    def is_gone(self, name: str) -> bool:
        """Return whether the process with this name certainly no longer runs; False for ``""``."""
        ...


class UnnamedOwner:
    """An owner without a name; its unfinished work stays locked until its lease expires."""

    name = ""

    def is_gone(self, name: str) -> bool:
        """Return False: the process may still run."""
        del name
        return False


UNNAMED_OWNER = UnnamedOwner()

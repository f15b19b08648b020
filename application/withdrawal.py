"""Taking back work that waits: what has not begun to write when its caller gives it up never does."""

import threading
from contextvars import ContextVar


class Withdrawn(BaseException):
    """The caller gave this work up before anything was written; it is never seen outside of the thread."""


class Withdrawal:
    """Whether the caller of some work has given it up. Shared by the caller and the thread that works."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_withdrawn = False
        self._has_started = False
        self._writes = False

    def withdraw(self) -> bool:
        """Give the work up, unless it writes already. Whether a thread is at it, which must be waited for."""
        with self._lock:
            self._is_withdrawn = True
            return self._has_started

    def start(self) -> None:
        """Note that a thread begins to work.

        Raises:
            Withdrawn: it must not.
        """
        with self._lock:
            self._refuse()
            self._has_started = True

    def write(self) -> None:
        """Note that writing begins: from here on, the work goes on to its end.

        Raises:
            Withdrawn: it must not begin.
        """
        with self._lock:
            self._refuse()
            self._writes = True

    def refuse(self) -> None:
        """Go no further with work that was given up.

        Raises:
            Withdrawn: it was, and nothing is written yet.
        """
        with self._lock:
            self._refuse()

    def _refuse(self) -> None:
        if self._is_withdrawn and not self._writes:
            raise Withdrawn


CURRENT: ContextVar[Withdrawal | None] = ContextVar("refold_withdrawal", default=None)
"""Of the work that this thread does for a coroutine; None where nobody can give it up."""

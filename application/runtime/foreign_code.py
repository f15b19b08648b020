"""Code of the user's own, and work that its caller gives up: what it raises ends what it was asked for."""

import asyncio
import threading
from contextvars import ContextVar
from types import TracebackType

from refold.application.errors import RaisedOutside


class Withdrawn(BaseException):
    """The caller gave this work up before anything was written; it is never seen outside of the thread."""


class Withdrawal:
    """Whether the caller of some work has given it up. Shared by the caller and the thread that works."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """``loop``: the loop in which the caller waits."""
        self.loop = loop
        self._lock = threading.Lock()
        self._is_withdrawn = False
        self._has_started = False
        self._writes = False

    @property
    def is_withdrawn(self) -> bool:
        """Whether the caller has given it up; what writes already goes on all the same."""
        return self._is_withdrawn

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


def is_given_up() -> bool:
    """Whether the caller of the work that this thread does has given it up."""
    withdrawal = CURRENT.get()
    return withdrawal is not None and withdrawal.is_withdrawn


class Contained:
    """A context manager around a call of code that is not ours.

    ``SystemExit``, ``KeyboardInterrupt``, ``GeneratorExit`` and ``asyncio.CancelledError`` that the
    code raises become ``RaisedOutside``, which is an ordinary exception. What comes from the caller,
    such as a cancellation of the task or Ctrl-C in the main thread, goes on as it is.
    """

    def __enter__(self) -> "Contained":
        self._task = _task()
        self._cancellations = self._task.cancelling() if self._task else 0
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, Exception) or self._is_the_callers(error):
            return
        raise RaisedOutside(error) from error

    def _is_the_callers(self, error: BaseException) -> bool:
        if isinstance(error, Withdrawn):
            return True
        if isinstance(error, GeneratorExit):
            # A coroutine that is closed is not closed by its own task.
            return self._task is not None and _task() is not self._task
        if self._task is not None and self._task.cancelling() > self._cancellations:
            return isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
        is_main = threading.current_thread() is threading.main_thread()
        return isinstance(error, KeyboardInterrupt) and self._task is None and is_main


def described(error: BaseException) -> str:
    """Say what was raised, for a result or a log line."""
    return str(error) if isinstance(error, RaisedOutside) else f"{type(error).__name__}: {error}"


def _task() -> "asyncio.Task[object] | None":
    try:
        return asyncio.current_task()
    except RuntimeError:  # No loop runs in this thread.
        return None

"""Calls of user code, and work that its caller can withdraw."""

from __future__ import annotations

import sys
import threading
from collections.abc import Coroutine
from contextvars import Context, ContextVar, copy_context
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from refold.application.errors import RaisedOutside

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class Withdrawn(BaseException):
    """The caller withdrew the work before anything was written. Never leaves the thread."""


class Withdrawal:
    """Withdrawal state of some work, shared by the caller and the working thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """``loop``: event loop in which the caller waits."""
        self.loop = loop
        self._lock = threading.Lock()
        self._is_withdrawn = False
        self._has_started = False
        self._writes = False
        self.runs_alone = False
        """True if this thread runs a whole coroutine, with all of its steps."""
        self.loop_around: asyncio.AbstractEventLoop | None = None
        """Event loop that runs in this thread meanwhile: that of an executor that works in the thread of its loop."""

    @property
    def is_withdrawn(self) -> bool:
        """True if the caller has withdrawn the work; a write that has begun continues."""
        return self._is_withdrawn

    def withdraw(self) -> bool:
        """Withdraw the work unless it is writing. Return whether a thread runs it and must be awaited."""
        with self._lock:
            self._is_withdrawn = True
            return self._has_started

    def start(self) -> None:
        """Mark the work as started.

        Raises:
            Withdrawn: the work was withdrawn.
        """
        with self._lock:
            self._refuse()
            self._has_started = True

    def next_step(self) -> None:
        """Mark the beginning of the next step of work in several steps; what was written before has ended.

        Raises:
            Withdrawn: the work was withdrawn.
        """
        with self._lock:
            self._writes = False
            self._refuse()

    def write(self) -> None:
        """Mark the beginning of a write; from here on the work, or its step, runs to its end.

        Raises:
            Withdrawn: the work was withdrawn.
        """
        with self._lock:
            self._refuse()
            self._writes = True

    def refuse(self) -> None:
        """Raise if the work was withdrawn before writing.

        Raises:
            Withdrawn: the work was withdrawn and nothing is written yet.
        """
        with self._lock:
            self._refuse()

    def _refuse(self) -> None:
        if self._is_withdrawn and not self._writes:
            raise Withdrawn


CURRENT: ContextVar[Withdrawal | None] = ContextVar("refold_withdrawal", default=None)
"""Withdrawal state of the work that this thread does for a coroutine, or None."""


def independent_context() -> Context:
    """Return a copy of the context for work that does not end with the work of this thread."""
    context = copy_context()
    context.run(CURRENT.set, None)
    return context


def is_given_up() -> bool:
    """Return whether the caller has withdrawn the work of this thread."""
    withdrawal = CURRENT.get()
    return withdrawal is not None and withdrawal.is_withdrawn


def has_main_ended() -> bool:
    """Return whether the main thread has ended, so that Python's executors accept no more work."""
    return not threading.main_thread().is_alive()


def run_here(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in this thread, in an event loop of its own.

    Steps that it hands to threads are done here as well after the main thread has ended.
    """
    import asyncio

    async def alone() -> T:
        work = Withdrawal(asyncio.get_running_loop())
        work.runs_alone, work.loop_around = True, work.loop
        CURRENT.set(work)
        return await coroutine

    return asyncio.run(alone() if has_main_ended() else coroutine)


class Contained:
    """A context manager around a call of user code.

    ``SystemExit``, ``KeyboardInterrupt``, ``GeneratorExit`` and ``asyncio.CancelledError`` that the code
    raises become ``RaisedOutside``, which is an ordinary exception. Exceptions from the caller, such as a
    cancellation of the task or Ctrl-C in the main thread, are not changed.
    """

    def __enter__(self) -> Contained:
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
        import asyncio

        if isinstance(error, Withdrawn):
            return True
        if isinstance(error, GeneratorExit):
            # A coroutine may be closed by another task than its own.
            return self._task is not None and _task() is not self._task
        if self._task is not None and self._task.cancelling() > self._cancellations:
            return isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
        is_main = threading.current_thread() is threading.main_thread()
        return isinstance(error, KeyboardInterrupt) and self._task is None and is_main


def describe(error: BaseException) -> str:
    """Describe an exception for a result or a log message."""
    return str(error) if isinstance(error, RaisedOutside) else f"{type(error).__name__}: {error}"


def _task() -> asyncio.Task[object] | None:
    if "asyncio" not in sys.modules:
        return None  # No loop can run, and the import takes longer than most calls.
    import asyncio

    try:
        return asyncio.current_task()
    except RuntimeError:  # No loop runs in this thread.
        return None

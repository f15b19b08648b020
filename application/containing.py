"""Code of the user's own: whatever it raises ends what it was asked for, and nothing else."""

import asyncio
import threading
from types import TracebackType

from .errors import RaisedOutside
from .withdrawal import Withdrawn


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

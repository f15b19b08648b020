"""Calls with a time limit, and an event loop in a separate thread that detects calls that block or never return."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from refold.application.errors import SummariserError
from refold.application.runtime.foreign_code import Contained
from refold.testing.findings import NeverEnded

T = TypeVar("T")
BEAT = 0.002
"""Seconds between two checks of the event loop."""
ENDING = 1.0
"""Seconds that tasks and threads get to end with the loop."""


class Watched(NamedTuple):
    """The outcome of a call."""

    value: object
    """Returned value, or None if the call raised."""
    error: Exception | None
    longest_block: float
    """Longest time in seconds for which nothing else could run in the loop."""


class WatchedLoop:
    """An event loop that runs one coroutine at a time, as a memory does.

    The thread is a daemon, so that code that never ends does not block a test run.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda loop, context: None)
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._end, time.monotonic() + ENDING)
        self._thread.join(2 * ENDING)
        if not self._thread.is_alive():
            self._loop.close()

    def run(self, coroutine: Coroutine[Any, Any, T], seconds: float) -> T:
        """Run a coroutine to its end.

        Raises:
            NeverEnded: it takes longer than ``seconds``.
        """
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(seconds)
        except TimeoutError:
            if future.done():
                raise
            future.cancel()
            free = threading.Event()
            self._loop.call_soon_threadsafe(free.set)
            raise NeverEnded(seconds, blocks=not free.wait(0.5)) from None

    def _end(self, until: float) -> None:
        """Cancel running tasks, and stop when all have ended or the time is up."""
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks and time.monotonic() < until:
            self._loop.call_later(0.02, self._end, until)
        else:
            self._loop.stop()


async def watch(call: Coroutine[Any, Any, object]) -> Watched:
    """Await a call while a second task measures how long the loop is blocked."""
    loop = asyncio.get_running_loop()
    longest, last = 0.0, loop.time()

    def look() -> None:
        nonlocal longest, last
        now = loop.time()
        longest, last = max(longest, now - last), now

    async def beat() -> None:
        while True:
            await asyncio.sleep(BEAT)
            look()

    beating = asyncio.create_task(beat())
    value: object = None
    error: Exception | None = None
    try:
        await asyncio.sleep(0)
        look()
        with Contained():
            value = await call
    except Exception as raised:
        error = raised
    finally:
        call.close()  # It was never awaited, if the time was up before.
        beating.cancel()
    look()
    return Watched(value, error, longest)


class Cancelled(NamedTuple):
    """The outcome of a cancelled call."""

    was_running: bool
    """True if the call was still running when it was cancelled."""
    has_ended: bool
    was_swallowed: bool
    """True if the call ignored the cancellation and returned an answer."""


async def cancel(call: Coroutine[Any, Any, object], after: float, patience: float) -> Cancelled:
    """Cancel a call after some seconds, or at its first wait if ``after`` is 0."""

    async def contained() -> object:
        with Contained():
            return await call

    task = asyncio.create_task(contained())
    await asyncio.sleep(0)
    if after and not task.done():
        await asyncio.wait({task}, timeout=after)
    if task.done():
        with suppress(BaseException):
            task.exception()
        return Cancelled(False, True, False)
    task.cancel()
    await asyncio.wait({task}, timeout=patience)
    if not task.done():
        return Cancelled(True, False, False)
    swallowed = not task.cancelled() and (
        task.exception() is None or not isinstance(task.exception(), SummariserError)
    )
    return Cancelled(True, True, swallowed)


def run_within(work: Callable[[], object], seconds: float) -> object:
    """Run a function in a separate thread, which blocks nothing if it never returns.

    Raises:
        NeverEnded: the function takes longer than ``seconds``.
    """
    outcome: list[object] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise NeverEnded(seconds, blocks=False)
    if errors:
        raise errors[0]
    return outcome[0]

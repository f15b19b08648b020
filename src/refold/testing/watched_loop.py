"""An event loop in a thread of its own, which is watched: whether a call blocks it, or never ends."""

import asyncio
import threading
import time
from collections.abc import Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from refold.application.errors import SummariserError
from refold.application.runtime.foreign_code import Contained
from refold.testing.findings import NeverEnded

T = TypeVar("T")
BEAT = 0.002
"""Seconds between two looks at whether the loop is free."""
ENDING = 1.0
"""Seconds that tasks and threads get to end with the loop."""


class Watched(NamedTuple):
    """The outcome of a call."""

    value: object
    """What it returned; None where it raised."""
    error: Exception | None
    longest_block: float
    """The longest time in seconds in which nothing else could run in the loop."""


class WatchedLoop:
    """Runs coroutines one after the other in one loop, as a memory does.

    The thread is a daemon: code that never ends holds up no test run.
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
        """Run to the end.

        Raises:
            NeverEnded: it takes longer than that.
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
        """Cancel what still runs, and stop when nothing does, or when it is time."""
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks and time.monotonic() < until:
            self._loop.call_later(0.02, self._end, until)
        else:
            self._loop.stop()


async def watched(call: Coroutine[Any, Any, object]) -> Watched:
    """Await a call while a second task looks at how long the loop is held up."""
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
    await asyncio.sleep(0)
    look()
    value: object = None
    error: Exception | None = None
    try:
        with Contained():
            value = await call
    except Exception as raised:
        error = raised
    look()
    beating.cancel()
    return Watched(value, error, longest)


class Cancelled(NamedTuple):
    """What became of a call that was cancelled."""

    was_running: bool
    """Whether it had not ended by itself before."""
    has_ended: bool
    was_swallowed: bool
    """Whether it went on to an answer as if nothing had been said."""


async def cancelled(call: Coroutine[Any, Any, object], after: float, patience: float) -> Cancelled:
    """Cancel a call after some seconds; 0: where it waits for the first time."""

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

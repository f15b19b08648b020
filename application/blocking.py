"""The bridges between code that blocks and the one asynchronous seam: a loop in a thread, and back."""

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

from refold.domain.errors import RefoldError

P = ParamSpec("P")
T = TypeVar("T")

GRACE = 2.0
"""Seconds that what was cancelled gets to record its end; what does not end by then is left alone."""


async def to_the_end(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run in a thread; a cancellation takes effect after its end, so that what it did is known."""
    work = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({work})
        if not work.cancelled():
            work.exception()  # Nobody is there to be told.
        raise


class Runner:
    """Runs coroutines for callers without an event loop; starts its loop when first needed.

    One loop for all of them, so that a client's connections outlive a single call. It runs in a
    thread of its own: that works inside a running loop as well (a notebook, a web server). A process
    that ends without closing cancels what runs. A forked process has no such thread: it starts its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._workers: ThreadPoolExecutor | None = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run to the end and return the result; Ctrl-C cancels the coroutine.

        Raises:
            RefoldError: called by what runs in the loop itself, which would wait for itself.
        """
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RefoldError(
                "a summariser or an observer called what waits for the memory that it was called by: "
                "await asyncio.to_thread(…) of that call, or use refold.aopen"
            )
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Cancel what runs and stop the loop, if it was started; closing twice is fine."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            loop, thread, workers = self._loop, self._thread, self._workers
            self._loop = self._thread = self._workers = None
        atexit.unregister(self.close)
        if loop is None or thread is None or workers is None:
            return
        # A loop that is blocked by a summariser is not waited for either.
        with suppress(TimeoutError):
            if asyncio.run_coroutine_threadsafe(_ended(), loop).result(2 * GRACE):
                thread.join()
        # A summariser that blocks a worker thread cannot be cancelled: it is not waited for.
        ending = threading.Thread(target=workers.shutdown, daemon=True)
        ending.start()
        ending.join(GRACE)

    @property
    def started(self) -> bool:
        """Whether anything ever ran here, in this process."""
        return self._loop is not None and os.getpid() == self._pid

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, which runs."""
        if os.getpid() != self._pid:
            # Whoever held the lock may not live in this process.
            self._lock, self._pid, self._loop = threading.Lock(), os.getpid(), None
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._workers = ThreadPoolExecutor(thread_name_prefix="refold")
                self._loop.set_default_executor(self._workers)
                self._thread = threading.Thread(
                    target=_serve, args=[self._loop], name="refold", daemon=True
                )
                self._thread.start()
                atexit.register(self.close)
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


async def _ended() -> bool:
    """Cancel everything and stop the loop when all has ended; whether that is now."""
    loop, current = asyncio.get_running_loop(), asyncio.current_task()
    tasks = {task for task in asyncio.all_tasks() if task is not current}
    for task in tasks:
        task.cancel()
    if tasks:
        _, tasks = await asyncio.wait(tasks, timeout=GRACE)
    stopping = asyncio.gather(*tasks, return_exceptions=True)
    stopping.add_done_callback(lambda _: loop.call_soon(loop.stop))
    return not tasks

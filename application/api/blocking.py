"""The bridges between code that blocks and the one asynchronous seam: a loop in a thread, and back."""

import asyncio
import atexit
import inspect
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar

from refold.application.runtime.foreign_code import CURRENT, Withdrawal
from refold.application.runtime.opening_process import OpeningProcess, keep_in_child
from refold.domain.errors import RefoldError

_LOOK = 0.002
"""Seconds between two looks at what is about to end."""
P = ParamSpec("P")
T = TypeVar("T")

GRACE = 2.0
"""Seconds that what was cancelled gets to record its end; what does not end by then is left alone."""


async def to_the_end(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run what writes, in a thread. A cancellation takes effect when it is known what became of it.

    What has not begun to write by then never does; what has is waited for. So whoever is told of the
    cancellation can look: what is not stored by then will never be.
    """
    loop = asyncio.get_running_loop()
    withdrawal, context = Withdrawal(loop), copy_context()

    def work() -> T:
        CURRENT.set(withdrawal)
        withdrawal.start()
        return function(*args, **kwargs)

    future = loop.run_in_executor(None, context.run, work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        if not withdrawal.withdraw():
            future.cancel()
            raise
        while not future.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({future})
        if not future.cancelled():
            future.exception()  # There is no caller left to raise it to.
        raise


class Runner:
    """Runs coroutines for callers without an event loop; starts its loop when first needed.

    One loop for all of them, so that a client's connections outlive a single call. It runs in a
    thread of its own: that works inside a running loop as well (a notebook, a web server). A process
    that ends without closing cancels what runs. A forked process has no such thread, and is refused.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = OpeningProcess()
        keep_in_child(self)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._workers: ThreadPoolExecutor | None = None
        self._waiting: set[Future[Any]] = set()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run to the end and return the result; Ctrl-C cancels the coroutine, and waits for what it
        was writing, so that nothing is stored behind the caller's back.

        Raises:
            RefoldError: called by what runs in the loop itself, which would wait for itself; or the loop
                has ended before the coroutine.
        """
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RefoldError(
                "a summariser or an observer called what waits for the memory that it was called by: "
                "await asyncio.to_thread(…) of that call, or use refold.aopen"
            )
        loop, future = self.loop, None
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, loop)
            self._waiting.add(future)
            if loop.is_closed():  # It may have ended before anybody knew that somebody waits.
                _end(future)
            return future.result()
        except BaseException:
            # Ctrl-C may come before the future has its name; then what was begun goes on to its end.
            if future is None or future.cancel():
                _await_end(coroutine)
            raise
        finally:
            if future is not None:
                self._waiting.discard(future)

    def finish(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what writes; Ctrl-C takes effect when it is known what became of it."""
        return self.run(to_the_end(function, *args, **kwargs))

    def begin(self, function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Call a function in the loop soon, unless the work that asks for it is given up by then."""
        withdrawal, context = CURRENT.get(), copy_context()
        context.run(CURRENT.set, None)  # What begins here is work of its own.

        def begin() -> None:
            if withdrawal is None or not withdrawal.is_withdrawn:
                function(*args, **kwargs)

        self.loop.call_soon_threadsafe(begin, context=context)

    def close(self) -> None:
        """Cancel what runs and stop the loop, if it was started; closing twice is fine."""
        if not self._process.is_this:
            return
        with self._lock:
            loop, thread, workers = self._loop, self._thread, self._workers
            self._loop = self._thread = self._workers = None
        atexit.unregister(self.close)
        if loop is None or thread is None or workers is None or loop.is_closed():
            return
        # A loop that is blocked by a summariser is not waited for either.
        with suppress(TimeoutError):
            if asyncio.run_coroutine_threadsafe(_ended(), loop).result(2 * GRACE):
                thread.join()
        # A summariser that blocks a worker thread cannot be cancelled: it is not waited for.
        ending = threading.Thread(target=workers.shutdown, daemon=True)
        try:
            ending.start()
        except RuntimeError:  # No thread can begin while Python takes itself down.
            workers.shutdown(wait=False, cancel_futures=True)
        else:
            ending.join(GRACE)

    @property
    def started(self) -> bool:
        """Whether anything ever ran here, in this process."""
        return self._loop is not None and self._process.is_this

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, which runs."""
        self._process.check()  # Whoever held the lock may not live in this process.
        with self._lock:
            if self._loop is None or self._loop.is_closed():
                self._loop = self._started_loop()
            return self._loop

    def _started_loop(self) -> asyncio.AbstractEventLoop:
        """A loop whose thread runs. Where it cannot start, nothing is kept that others would wait for."""
        loop, workers = asyncio.new_event_loop(), ThreadPoolExecutor(thread_name_prefix="refold")
        thread = threading.Thread(target=self._serve, args=[loop], name="refold", daemon=True)
        try:
            loop.set_default_executor(workers)
            thread.start()
        except BaseException:
            if not thread.is_alive():
                loop.close()
            raise
        self._workers, self._thread = workers, thread
        atexit.register(self.close)
        return loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_forever()
        finally:
            # Without memory a loop can end in the middle of its work.
            loop.close()
            for future in tuple(self._waiting):
                _end(future)


class CallersLoop(Runner):
    """For asyncio: the loop in which the coroutine waits for which a thread works. It starts no thread."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop in which the caller waits."""
        work = CURRENT.get()
        assert work is not None, "only work for a coroutine asks for its loop"
        assert work.loop is not None
        return work.loop

    def finish(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what writes, here: the caller's coroutine waits for its end already."""
        return function(*args, **kwargs)


def _end(future: Future[Any]) -> None:
    """Tell who waits that no answer comes."""
    with suppress(InvalidStateError):
        future.set_exception(RefoldError("the work ended before its answer; ask again"))


def _await_end(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Wait until a coroutine that was cancelled in another thread has ended, but not for ever."""
    deadline = time.monotonic() + GRACE
    while inspect.getcoroutinestate(coroutine) != inspect.CORO_CLOSED:
        if time.monotonic() > deadline:
            return
        time.sleep(_LOOK)


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

"""Bridges between blocking code and coroutines: an event loop in a thread, and threads for coroutines."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from refold.application.errors import LogError, no_thread
from refold.application.runtime import opening_process
from refold.application.runtime.foreign_code import (
    CURRENT,
    Withdrawal,
    Withdrawn,
    has_main_ended,
    independent_context,
    run_here,
)
from refold.application.runtime.opening_process import OpeningProcess, keep_in_child, require_files
from refold.domain.errors import RefoldError

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future, ThreadPoolExecutor

_NO_RESULT = "the work ended before its result; try again"
_LOOK, _LOOK_AT_START = 0.002, 0.5
"""Seconds between two checks for the end of the work, and whether a new thread has ended before it began."""
P = ParamSpec("P")
T = TypeVar("T")

GRACE = 2.0
"""Seconds that cancelled work has to record its end; work that takes longer is abandoned."""


class WorkEnded(LogError):
    """The memory was closed before the work ended; a write that had begun may be stored."""


async def run_to_end(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that writes in a thread. A cancellation takes effect after its outcome is known.

    A write that has not begun at that point never begins; a write that has begun is awaited. So the caller
    that receives the cancellation can check the log: a write that is not stored then will never be.
    """
    if (alone := _alone()) is not None:
        alone.next_step()
        return function(*args, **kwargs)
    import asyncio

    loop = asyncio.get_running_loop()
    withdrawal, context = Withdrawal(loop), copy_context()

    def work() -> T:
        CURRENT.set(withdrawal)
        withdrawal.start()
        return _raise_plainly(function, *args, **kwargs)

    try:
        future = loop.run_in_executor(None, context.run, work)
    except RuntimeError as error:
        # The executor has it in its queue nevertheless, and a thread that starts later would run it.
        if withdrawal.withdraw():
            raise WorkEnded(f"no thread answers ({error}); check what is stored") from error
        raise no_thread(error) from error
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
            future.exception()  # No caller is left to receive the exception.
        raise


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function in a thread. A cancellation does not wait for it, so it must not write."""
    if (alone := _alone()) is not None:
        alone.next_step()
        return function(*args, **kwargs)
    import asyncio

    loop, context = asyncio.get_running_loop(), copy_context()
    try:
        future = loop.run_in_executor(
            None, context.run, lambda: _raise_plainly(function, *args, **kwargs)
        )
    except RuntimeError as error:
        raise no_thread(error) from error
    return await future


def _raise_plainly(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function. A coroutine that waits in Python 3.11 would never learn of a ``StopIteration``."""
    try:
        return function(*args, **kwargs)
    except StopIteration as error:
        raise RuntimeError("the work raised StopIteration") from error


async def pause(seconds: float) -> None:
    """Wait this many seconds. Work that runs alone uses no thread meanwhile."""
    if _alone() is not None:
        await _Pause(seconds)
        return
    import asyncio

    await asyncio.sleep(seconds)


class _Pause:
    """A request of work that runs alone to go on later."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __await__(self) -> Generator[_Pause]:
        yield self


async def run_alone(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in one thread, with all steps that it would hand to threads one by one.

    It may wait only for ``run_to_end``, ``in_thread`` and ``pause``. A cancellation takes effect between two steps.
    """
    import asyncio

    context = copy_context()
    try:
        while isinstance(made := await run_to_end(_go_on, coroutine, context), _Pause):
            await asyncio.sleep(made.seconds)
        return made
    except asyncio.CancelledError:
        if not _has_ended(coroutine):  # It has not begun, or pauses.
            with suppress(Withdrawn, StopIteration):
                context.run(coroutine.throw, Withdrawn())
        raise
    finally:
        with suppress(ValueError, RuntimeError):  # It still runs if its event loop was closed.
            context.run(coroutine.close)


def _go_on(coroutine: Coroutine[Any, Any, T], context: Context) -> T | _Pause:
    """Run a coroutine in this thread until it pauses or ends. All of it runs in the same context."""
    withdrawal = CURRENT.get()
    assert withdrawal is not None
    withdrawal.runs_alone, withdrawal.loop_around = True, _running_loop()
    context.run(CURRENT.set, withdrawal)
    try:
        waits_for = context.run(coroutine.send, None)
    except StopIteration as done:
        result: T = done.value
        return result
    if isinstance(waits_for, _Pause):
        return waits_for
    raise RuntimeError("work that runs alone waited for an event loop")


def _alone() -> Withdrawal | None:
    """Return the withdrawal state of the work that runs alone in this thread, or None.

    A token counter may run an event loop of its own in the thread: the steps of that loop are not alone.
    """
    work = CURRENT.get()
    return work if work and work.runs_alone and work.loop_around is _running_loop() else None


def _running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread, or None."""
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Runner:
    """A runner of coroutines for callers without an event loop; starts its own loop when first needed.

    All calls share one loop, so that connections of a client outlive a single call. The loop has its own
    thread, so that it also works inside a running loop (a notebook, a web server). A process that ends
    without closing cancels the running work. A forked process does not have the thread and is refused.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = OpeningProcess()
        keep_in_child(self)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._workers: ThreadPoolExecutor | None = None
        self._waiting: dict[Future[Any], asyncio.AbstractEventLoop] = {}
        self._closed = False

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return its result.

        Ctrl-C cancels the coroutine and waits for a write that has begun.

        Raises:
            RefoldError: the caller runs in this loop and would wait for itself.
            WorkEnded: the loop ended before the coroutine, or another thread closed the runner.
        """
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RefoldError(
                "a summariser or an observer called the memory that called it, and would wait forever: "
                "await asyncio.to_thread(…) of that call, or use refold.aopen"
            )
        if has_main_ended() and _running_loop() is None:
            return run_here(coroutine)
        from concurrent.futures import CancelledError

        opening_process.release_imports()
        loop, future = self._loop_for(coroutine), None
        try:
            future = self._submitted(coroutine, loop)
            self._waiting[future] = loop
            if loop.is_closed():  # The loop may have closed before the coroutine was registered.
                _end(future)
            return future.result()
        except WorkEnded:
            raise
        except CancelledError:
            _await_end(coroutine)
            raise WorkEnded(
                "the memory was closed before this ended; open it again and check what is stored"
            ) from None
        except BaseException:
            if future is None:  # Ctrl-C arrived before the assignment.
                with suppress(RuntimeError):  # The loop is closed, and the work with it.
                    loop.call_soon_threadsafe(_cancel, coroutine, loop)
            if future is None or future.cancel():
                _await_end(coroutine)
            raise
        finally:
            if future is not None:
                self._waiting.pop(future, None)

    def _loop_for(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.AbstractEventLoop:
        try:
            return self.loop
        except BaseException:
            coroutine.close()
            raise

    def _submitted(
        self, coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop
    ) -> Future[T]:
        import asyncio

        try:
            return asyncio.run_coroutine_threadsafe(coroutine, loop)
        except RuntimeError as error:
            if not loop.is_closed():
                raise
            coroutine.close()  # Another thread closed the loop since it was looked up.
            raise WorkEnded(_NO_RESULT) from error

    def finish(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that writes; Ctrl-C takes effect after its outcome is known."""
        if has_main_ended():
            return function(*args, **kwargs)
        return self.run(run_to_end(function, *args, **kwargs))

    def begin(self, function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Schedule a function in the loop, unless the requesting work is cancelled first.

        Nothing begins after another thread has closed the runner, or if no thread can start: stored work must not fail.
        """
        withdrawal, context = CURRENT.get(), independent_context()

        def begin() -> None:
            if withdrawal is None or not withdrawal.is_withdrawn:
                function(*args, **kwargs)

        with suppress(LogError):
            loop = self.loop
            try:
                loop.call_soon_threadsafe(begin, context=context)
            except RuntimeError:
                if not loop.is_closed():
                    raise

    def close(self) -> None:
        """Cancel running work and stop the loop if it was started; closing twice is safe."""
        if not self._process.is_this:
            return
        with self._lock:
            loop, thread, workers = self._loop, self._thread, self._workers
            self._loop = self._thread = self._workers = None
            self._closed = True
        atexit.unregister(self.close)
        if loop is None or thread is None or workers is None or loop.is_closed():
            return
        import asyncio

        # Do not wait for a loop that a summariser blocks.
        with suppress(TimeoutError):
            if asyncio.run_coroutine_threadsafe(_all_ended(), loop).result(2 * GRACE):
                thread.join()
        # A summariser that blocks a worker thread cannot be cancelled: do not wait for it.
        ending = threading.Thread(target=workers.shutdown, daemon=True)
        try:
            ending.start()
        except RuntimeError:  # No thread can start while the interpreter shuts down.
            workers.shutdown(wait=False, cancel_futures=True)
        else:
            ending.join(GRACE)

    @property
    def started(self) -> bool:
        """True if the loop was started in this process."""
        return self._loop is not None and self._process.is_this

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The running event loop.

        Raises:
            WorkEnded: the runner was closed.
            LogError: no thread can start, or no more files may be opened.
        """
        self._process.check()  # The thread that held the lock may not exist in this process.
        with self._lock:
            if self._closed:
                raise WorkEnded("the memory was closed; open it again to go on")
            if self._loop is None or self._loop.is_closed():
                try:
                    self._loop = self._start_loop()
                except RuntimeError as error:
                    raise no_thread(error) from error
            return self._loop

    def _start_loop(self) -> asyncio.AbstractEventLoop:
        """Return a running loop; on failure, raise and leave no state that others would wait for."""
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        require_files()  # A loop that cannot open its own would fail once more when it is destroyed.
        loop, workers = asyncio.new_event_loop(), ThreadPoolExecutor(thread_name_prefix="refold")
        thread = threading.Thread(target=self._serve, args=[loop], name="refold", daemon=True)
        running = threading.Event()
        try:
            loop.set_default_executor(workers)
            loop.set_exception_handler(_stop_without_memory)
            loop.call_soon(running.set)
            thread.start()
            while not running.wait(_LOOK_AT_START):
                if not thread.is_alive():
                    raise WorkEnded("the thread of the memory ended before its work; try again")
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
            # A loop can end in the middle of its work when memory runs out.
            loop.close()
            for future, its_loop in tuple(self._waiting.items()):
                if its_loop is loop:
                    _end(future)


def _stop_without_memory(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Stop a loop that had no memory for a step of its work, as nothing would resume this work."""
    try:
        loop.default_exception_handler(context)
    finally:
        if isinstance(context.get("exception"), MemoryError):
            loop.stop()


def _end(future: Future[Any]) -> None:
    """Notify the waiting caller that no result will come."""
    from concurrent.futures import InvalidStateError

    with suppress(InvalidStateError):
        future.set_exception(WorkEnded(_NO_RESULT))


def _cancel(coroutine: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> None:
    """Cancel the task of a coroutine, or close the coroutine if it has no task."""
    import asyncio

    for task in asyncio.all_tasks(loop):
        if task.get_coro() is coroutine:
            task.cancel()
            return
    coroutine.close()


def _await_end(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Wait for the end of a coroutine that another thread cancelled, up to a time limit."""
    deadline = time.monotonic() + GRACE
    while not _has_ended(coroutine):
        if time.monotonic() > deadline:
            return
        time.sleep(_LOOK)


def _has_ended(coroutine: Coroutine[Any, Any, Any]) -> bool:
    import inspect

    return inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED


async def _all_ended() -> bool:
    """Cancel all tasks, and stop the loop once they have ended. Return whether it was stopped."""
    import asyncio

    loop, current = asyncio.get_running_loop(), asyncio.current_task()
    tasks = {task for task in asyncio.all_tasks() if task is not current}
    for task in tasks:
        task.cancel()
    if tasks:
        _, tasks = await asyncio.wait(tasks, timeout=GRACE)
    stopping = asyncio.gather(*tasks, return_exceptions=True)
    stopping.add_done_callback(lambda _: loop.call_soon(loop.stop))
    return not tasks

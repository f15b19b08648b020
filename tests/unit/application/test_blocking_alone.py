"""Coroutines that run in one thread with all of their steps."""

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import pytest

from refold.application.api.blocking import Runner, in_thread, pause, run_alone, run_to_end
from refold.application.runtime.foreign_code import CURRENT, Withdrawn, is_given_up


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    runner = Runner()
    try:
        return runner.run(coroutine)
    finally:
        runner.close()


def test_all_steps_run_in_the_same_thread() -> None:
    async def work() -> set[int]:
        found = {await run_to_end(threading.get_ident), await in_thread(threading.get_ident)}
        await pause(0)
        return {*found, await run_to_end(threading.get_ident)}

    async def both() -> tuple[set[int], int]:
        return await run_alone(work()), threading.get_ident()

    threads, loop = run(both())
    assert len(threads) == 1
    assert threads.isdisjoint({loop, threading.get_ident()})


class Here(ThreadPoolExecutor):
    """An executor that works in the thread that asks."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


def test_all_steps_run_where_an_executor_works_in_the_thread_of_the_loop() -> None:
    async def work() -> set[int]:
        found = {await run_to_end(threading.get_ident), await in_thread(threading.get_ident)}
        await pause(0)
        return {*found, await run_to_end(threading.get_ident)}

    async def both() -> tuple[set[int], int]:
        asyncio.get_running_loop().set_default_executor(Here())
        return await run_alone(work()), threading.get_ident()

    threads, loop = run(both())
    assert threads == {loop}


def test_no_event_loop_runs_in_its_thread() -> None:
    async def work() -> None:
        with pytest.raises(RuntimeError):
            await run_to_end(asyncio.get_running_loop)

    run(run_alone(work()))


def test_no_thread_is_used_during_a_pause() -> None:
    async def work() -> str:
        await run_to_end(int)
        await pause(60)
        return "never"

    async def others() -> bool:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        task = asyncio.ensure_future(run_alone(work()))
        await asyncio.sleep(0.05)
        found = await asyncio.wait_for(in_thread(lambda: True), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 5)
        return found

    assert asyncio.run(others())


def test_a_pause_changes_neither_the_result_nor_the_context() -> None:
    spot = ContextVar("spot", default="before")

    async def work() -> list[str]:
        token = spot.set("inside")
        for _ in range(3):
            await pause(0.001)
        found = [spot.get(), await in_thread(spot.get)]
        spot.reset(token)
        return [*found, spot.get()]

    assert run(run_alone(work())) == ["inside", "inside", "before"]


def test_a_cancelled_pause_ends_the_work_in_its_own_context() -> None:
    spot, ended = ContextVar("spot", default="before"), list[str]()

    async def work() -> None:
        token = spot.set("inside")
        try:
            await pause(60)
        except Withdrawn:
            ended.append("withdrawn")
            raise
        finally:
            spot.reset(token)
            ended.append(spot.get())

    async def cancel() -> None:
        task = asyncio.ensure_future(run_alone(work()))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 5)

    asyncio.run(cancel())
    assert ended == ["withdrawn", "before"]


def test_work_that_a_step_asks_of_another_loop_hands_its_own_steps_to_threads() -> None:
    runner = Runner()

    async def nested() -> bool:
        await pause(0.001)
        threads = {await run_to_end(threading.get_ident), await in_thread(threading.get_ident)}
        return threading.get_ident() in threads

    def step() -> tuple[bool, bool]:
        return runner.run(nested()), asyncio.run(nested())

    async def work() -> tuple[bool, bool]:
        return await run_to_end(step)

    try:
        assert runner.run(run_alone(work())) == (False, False)
    finally:
        runner.close()


def test_an_error_of_a_step_reaches_the_caller() -> None:
    def fail() -> None:
        raise LookupError("of a step")

    async def work() -> None:
        with pytest.raises(LookupError):
            await run_to_end(fail)
        await in_thread(fail)

    with pytest.raises(LookupError, match="of a step"):
        run(run_alone(work()))


@pytest.mark.parametrize("hand", [run_to_end, in_thread])
@pytest.mark.parametrize("alone", [True, False])
def test_a_step_that_raises_stop_iteration_is_an_error(
    hand: Callable[..., Coroutine[Any, Any, None]], alone: bool
) -> None:
    async def work() -> None:
        await hand(next, iter(()))

    async def limited() -> None:
        await asyncio.wait_for(run_alone(work()) if alone else work(), 5)

    with pytest.raises(RuntimeError, match="raised StopIteration"):
        run(limited())


def test_work_that_waits_for_an_event_loop_is_an_error() -> None:
    async def work() -> None:
        await Never()

    with pytest.raises(RuntimeError, match="waited for an event loop"):
        run(run_alone(work()))


class Never:
    """What only an event loop could wait for."""

    def __await__(self) -> Any:
        yield self


class Interrupted:
    """A caller that is interrupted while a step works."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self._began = threading.Event()

    def step(self) -> None:
        """Work until the interruption has reached this thread."""
        self.done.append("begun")
        self._began.set()
        deadline = time.monotonic() + 10
        while not is_given_up() and time.monotonic() < deadline:
            time.sleep(0.001)
        self.done.append("ended")

    def next(self) -> None:
        """Work after the interruption."""
        self.done.append("next")

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> list[str]:
        """Return what was done until the caller was answered."""
        runner = Runner()
        threading.Thread(target=self._interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            runner.run(run_alone(coroutine))
        answered = list(self.done)
        runner.close()
        assert self.done == answered
        return answered

    def _interrupt(self) -> None:
        self._began.wait(10)
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)  # Only the main thread ends its wait for a signal.


@pytest.mark.parametrize("hand", [run_to_end, in_thread])
def test_an_interruption_takes_effect_after_the_step_and_before_the_next(
    hand: Callable[..., Coroutine[Any, Any, None]],
) -> None:
    caller = Interrupted()

    async def work() -> None:
        await hand(caller.step)
        await hand(caller.next)

    assert caller.run(work()) == ["begun", "ended"]


def test_an_interrupted_pause_is_the_last() -> None:
    caller = Interrupted()

    async def work() -> None:
        caller.step()
        await pause(0)
        caller.next()

    assert caller.run(work()) == ["begun", "ended"]


def test_a_write_of_an_earlier_step_does_not_keep_the_work_going() -> None:
    caller = Interrupted()

    def write() -> None:
        withdrawal = CURRENT.get()
        assert withdrawal is not None
        withdrawal.write()
        caller.step()
        withdrawal.write()  # A write that has begun goes on.
        caller.done.append("written")

    async def work() -> None:
        await run_to_end(write)
        await run_to_end(caller.next)

    assert caller.run(work()) == ["begun", "ended", "written"]


def test_the_work_can_record_that_it_was_withdrawn() -> None:
    caller = Interrupted()

    async def work() -> None:
        try:
            await run_to_end(caller.step)
            await run_to_end(caller.next)
        except Withdrawn:
            caller.done.append("withdrawn")
            raise

    assert caller.run(work()) == ["begun", "ended", "withdrawn"]


def test_work_that_was_cancelled_before_it_began_never_runs() -> None:
    done = list[str]()

    async def work() -> None:
        done.append("begun")

    async def cancel() -> None:
        loop, busy = asyncio.get_running_loop(), threading.Event()
        loop.set_default_executor(ThreadPoolExecutor(1))
        blocking = loop.run_in_executor(None, busy.wait)
        task = asyncio.ensure_future(run_alone(work()))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        busy.set()
        await blocking

    asyncio.run(cancel())
    assert done == []

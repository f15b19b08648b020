"""Calls that block, where nobody could ever answer them."""

import asyncio
import inspect
import signal
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future

import pytest

from refold.application.api.blocking import GRACE, Runner, WorkEnded, run_to_end
from refold.application.api.forwarding import CallersLoop
from refold.application.runtime.foreign_code import CURRENT, Withdrawal, Withdrawn
from refold.domain.errors import RefoldError


async def nothing() -> str:
    return "done"


def test_what_runs_in_the_loop_and_waits_for_it_is_refused_instead_of_waiting_for_ever() -> None:
    runner = Runner()

    async def summarise() -> str:
        return runner.run(nothing())

    ended: list[object] = []

    def ask() -> None:
        with pytest.raises(RefoldError, match="to_thread"):
            runner.run(summarise())
        ended.append(runner.run(nothing()))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(20)
    assert ended == ["done"]
    runner.close()


def test_who_interrupts_is_answered_when_what_was_written_has_ended() -> None:
    runner, ended = Runner(), list[str]()
    began, interrupted = threading.Event(), threading.Event()

    def write() -> None:
        began.set()
        interrupted.wait(10)
        time.sleep(0.2)
        ended.append("written")

    def interrupt() -> None:
        began.wait(10)
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)  # Only the main thread ends its wait for a signal.
        interrupted.set()

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        runner.run(run_to_end(write))
    assert ended == ["written"]
    runner.close()


@pytest.mark.parametrize("submitted", [True, False])
def test_an_interruption_before_the_future_is_known_cancels_the_work(
    monkeypatch: pytest.MonkeyPatch, submitted: bool
) -> None:
    runner, submit = Runner(), asyncio.run_coroutine_threadsafe
    began, ended = threading.Event(), list[str]()

    async def work() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    def interrupted(
        coroutine: Coroutine[object, object, None], loop: asyncio.AbstractEventLoop
    ) -> Future[None]:
        if submitted:
            submit(coroutine, loop)
            began.wait(10)
        raise KeyboardInterrupt

    runner.run(nothing())
    coroutine, begun = work(), time.monotonic()
    with monkeypatch.context() as early:
        early.setattr(asyncio, "run_coroutine_threadsafe", interrupted)
        with pytest.raises(KeyboardInterrupt):
            runner.run(coroutine)
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED
    assert ended == ["cancelled"] * submitted
    assert time.monotonic() - begun < GRACE
    assert runner.run(nothing()) == "done"
    runner.close()


def test_what_was_given_up_before_it_wrote_never_writes() -> None:
    withdrawal = Withdrawal()
    withdrawal.start()
    assert withdrawal.withdraw()
    for act in (withdrawal.write, withdrawal.refuse, Withdrawal.start.__get__(withdrawal)):
        with pytest.raises(Withdrawn):
            act()


def test_what_writes_already_goes_on_to_its_end() -> None:
    withdrawal = Withdrawal()
    withdrawal.start()
    withdrawal.write()
    assert withdrawal.withdraw()
    withdrawal.refuse()
    withdrawal.write()


def test_what_no_thread_has_taken_up_is_not_waited_for() -> None:
    assert not Withdrawal().withdraw()


async def begun_by_work(*, cancelled: bool) -> list[tuple[object, object]]:
    """What a thread that works for a coroutine begins: the loop that it runs in, and for which work."""
    runner, begun = CallersLoop(), list[tuple[object, object]]()
    at_work, go_on = threading.Event(), threading.Event()

    def work() -> None:
        at_work.set()
        go_on.wait(10)
        runner.begin(lambda: begun.append((asyncio.get_running_loop(), CURRENT.get())))

    task = asyncio.ensure_future(run_to_end(work))
    await asyncio.to_thread(at_work.wait, 10)
    if cancelled:
        task.cancel()
        await asyncio.sleep(0)
    go_on.set()
    await asyncio.wait({task})
    assert task.cancelled() is cancelled
    await asyncio.sleep(0)
    return [(loop is asyncio.get_running_loop(), work) for loop, work in begun]


def test_what_work_begins_runs_in_the_loop_of_its_caller_and_is_no_part_of_it() -> None:
    assert asyncio.run(begun_by_work(cancelled=False)) == [(True, None)]


def test_work_that_was_given_up_begins_nothing() -> None:
    assert asyncio.run(begun_by_work(cancelled=True)) == []


def test_a_step_of_the_work_without_memory_ends_the_wait_for_the_work() -> None:
    runner = Runner()

    async def wait_for_a_step_that_fails() -> None:
        future = asyncio.get_running_loop().create_future()

        def set_result() -> None:
            raise MemoryError

        asyncio.get_running_loop().call_soon(set_result)
        await future

    with pytest.raises(WorkEnded):
        runner.run(wait_for_a_step_that_fails())
    assert runner.run(nothing()) == "done"
    runner.close()


def test_a_thread_that_dies_before_its_work_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = Runner()

    def end_at_once(_runner: Runner, _loop: asyncio.AbstractEventLoop) -> None:
        pass

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "_serve", end_at_once)
        with pytest.raises(WorkEnded, match="try again"):
            runner.run(nothing())
    assert runner.run(nothing()) == "done"
    runner.close()

"""A runner whose thread cannot start, or ends too early: the call says so, and nothing waits for it for ever."""

import asyncio
import threading

import pytest

from refold.application.blocking import Runner
from refold.domain.errors import RefoldError


async def answer() -> int:
    return 42


@pytest.fixture
def full_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of threads is reached when the next one is to start, and not any more after that."""
    start, refused = threading.Thread.start, iter([True])

    def start_or_refuse(thread: threading.Thread) -> None:
        if next(refused, False):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_or_refuse)


@pytest.mark.usefixtures("full_once")
def test_closing_a_runner_whose_thread_could_not_start_waits_for_nothing() -> None:
    runner = Runner()
    with pytest.raises(RuntimeError, match="can't start new thread"):
        _ = runner.loop
    assert not runner.started
    runner.close()


@pytest.mark.usefixtures("full_once")
def test_a_runner_whose_thread_could_not_start_runs_once_it_can() -> None:
    runner = Runner()
    with pytest.raises(RuntimeError, match="can't start new thread"):
        _ = runner.loop
    assert runner.run(answer()) == 42
    runner.close()


async def endless() -> None:
    # As a loop ends that runs out of memory.
    asyncio.get_running_loop().stop()
    await asyncio.sleep(3600)


def test_who_waits_for_a_loop_that_ended_is_told_and_the_next_call_runs() -> None:
    runner = Runner()
    with pytest.raises(RefoldError, match="ask again"):
        runner.run(endless())
    assert runner.run(answer()) == 42
    runner.close()

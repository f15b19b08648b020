"""A runner whose thread cannot start, or ends too early: the call says so, and nothing waits for it for ever."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path

import pytest

import refold
from refold.application.api.blocking import Runner, in_thread, run_to_end
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
    with pytest.raises(RefoldError, match="can't start new thread"):
        _ = runner.loop
    assert not runner.started
    runner.close()


@pytest.mark.usefixtures("full_once")
def test_a_runner_whose_thread_could_not_start_runs_once_it_can() -> None:
    runner = Runner()
    with pytest.raises(RefoldError, match="can't start new thread"):
        _ = runner.loop
    assert runner.run(answer()) == 42
    runner.close()


@pytest.mark.usefixtures("full_once")
def test_what_follows_some_work_does_not_fail_because_no_thread_could_start() -> None:
    runner, begun = Runner(), threading.Event()
    runner.begin(begun.set)
    assert not runner.started
    runner.begin(begun.set)
    assert begun.wait(5)
    runner.close()


def test_an_append_is_stored_where_no_thread_can_compact_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with refold.open(tmp_path / "a.db", window=3_000, background=True) as memory:
        conversation = memory.conversation("t")
        monkeypatch.setattr(threading.Thread, "start", refuse)
        for number in range(40):
            conversation.append({"role": "user", "content": f"{number} " + "word " * 60})
            conversation.append({"role": "assistant", "content": "yes " * 40})
        assert len(conversation.messages()) == 80
        with pytest.raises(refold.LogError, match="can't start new thread"):
            conversation.context()
        monkeypatch.undo()
        conversation.context()
        assert conversation.summaries()


def test_what_no_thread_began_is_never_done_later(monkeypatch: pytest.MonkeyPatch) -> None:
    start, done = threading.Thread.start, list[str]()

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def refused_then_again() -> None:
        monkeypatch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RefoldError, match="nothing was done"):
            await run_to_end(done.append, "first")
        with pytest.raises(RefoldError, match="nothing was done"):
            await in_thread(len, "first")
        monkeypatch.setattr(threading.Thread, "start", start)
        await run_to_end(done.append, "second")
        await asyncio.sleep(0.05)

    asyncio.run(refused_then_again())
    assert done == ["second"]


async def endless() -> int:
    # As a loop ends that runs out of memory.
    asyncio.get_running_loop().stop()
    await asyncio.sleep(3600)
    return 0


def test_who_waits_for_a_loop_that_ended_is_told_and_the_next_call_runs() -> None:
    runner = Runner()
    with pytest.raises(RefoldError, match="try again"):
        runner.run(endless())
    assert runner.run(answer()) == 42
    runner.close()


def test_who_begins_to_wait_when_the_loop_has_ended_is_told_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner, submit, others = Runner(), asyncio.run_coroutine_threadsafe, threading.enumerate()

    def submit_late(
        coroutine: Coroutine[object, object, int], loop: asyncio.AbstractEventLoop
    ) -> Future[int]:
        [thread] = set(threading.enumerate()) - set(others)
        future = submit(coroutine, loop)
        thread.join()
        return future

    with monkeypatch.context() as late:
        late.setattr(asyncio, "run_coroutine_threadsafe", submit_late)
        with pytest.raises(RefoldError, match="try again"):
            runner.run(endless())
    assert runner.run(answer()) == 42
    runner.close()


def test_a_process_that_ends_without_closing_says_nothing() -> None:
    program = (
        "import asyncio; from refold.application.api.blocking import Runner; "
        "runner = Runner(); print(runner.run(asyncio.to_thread(int)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert (ended.stdout, ended.stderr) == ("0\n", "")


def test_work_that_begins_while_the_program_ends_is_refused_with_a_typed_error() -> None:
    program = (
        "import asyncio, atexit\n"
        "from refold.application.api.blocking import Runner, in_thread\n"
        "from refold.domain.errors import RefoldError\n"
        "@atexit.register\n"
        "def last():\n"
        "    try: asyncio.run(in_thread(int))\n"
        "    except RefoldError as error: print(error)\n"
        "    print(Runner().run(in_thread(int)))\n"  # Without a caller's loop, it needs no thread.
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    refused, done = ended.stdout.splitlines()
    assert "A program that is ending can start none" in refused
    assert done == "0"
    assert not ended.stderr


LATE = """
import pathlib, sys, threading
import refold

path, warm = sys.argv[1:]

def work():
    threading.main_thread().join()
    with refold.open(path, window=3_000, background=True) as memory:
        conversation = memory.conversation("t")
        for number in range(30):
            conversation.append({"role": "user", "content": f"{number} " + "word " * 60})
            conversation.append({"role": "assistant", "content": "yes " * 40})
            conversation.context()
        assert conversation.compact(force=True).outcome == "performed"
        conversation.erase(3)
        assert conversation.messages()[3].erased
        memory.erase_conversation("t")
        assert memory.verify().ok
    print("done")

if warm == "warm":
    with refold.open(f"{path}.other") as memory:
        memory.conversation("t").compact()
threading.Thread(target=work).start()
"""


@pytest.mark.parametrize("warm", ["cold", "warm"])
def test_a_thread_that_goes_on_after_the_main_thread_can_compact_and_erase(
    tmp_path: Path, warm: str
) -> None:
    given = [sys.executable, "-c", LATE, str(tmp_path / "a.db"), warm]
    ran = subprocess.run(given, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.stdout, ran.stderr) == ("done\n", "")

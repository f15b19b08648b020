"""Closing a memory while other threads use it: each call ends, and nothing is written afterwards."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.api.blocking import Runner, WorkEnded
from refold.infrastructure.event_store.recorder import LogRecorder
from refold.infrastructure.files.lock import WriteLock
from refold.infrastructure.sqlite.connection_pool import SteadyPool

WAIT = 20


class Held:
    """Calls of a function wait in its middle until they are let go."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.reached, self.go_on = threading.Event(), threading.Event()

    def call(self, *args: Any, **options: Any) -> Any:
        self.reached.set()
        assert self.go_on.wait(WAIT)
        return self._function(*args, **options)


def test_closing_waits_for_an_append_that_is_being_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "agent.db"
    memory = refold.open(path, scrub_megabytes=0)
    held = Held(LogRecorder.insert_events)

    def insert(*arguments: Any, **options: Any) -> Any:
        return held.call(*arguments, **options)

    monkeypatch.setattr(LogRecorder, "insert_events", insert)
    with ThreadPoolExecutor() as threads:
        said = {"role": "user", "content": "hello"}
        appended = threads.submit(memory.conversation("t").append, said)
        assert held.reached.wait(WAIT)
        closing = threads.submit(memory.close)
        with pytest.raises(TimeoutError):
            closing.result(0.3)
        held.go_on.set()
        assert appended.result(WAIT).positions == (0,)
        closing.result(WAIT)
    monkeypatch.undo()
    with refold.open(path) as again:
        assert again.conversation("t").context().messages[0]["content"] == "hello"
        assert again.verify().ok


def test_a_lock_that_was_closed_for_good_refuses_whoever_comes_later(tmp_path: Path) -> None:
    lock = WriteLock(tmp_path / "agent.db.lock", 1.0)
    with lock.held():
        pass
    with lock.closing(0):
        pass
    with pytest.raises(refold.LogError, match=r"was closed; open it again"), lock.held():
        pass


def test_a_thread_that_writes_too_long_goes_on_after_its_lock_was_closed(tmp_path: Path) -> None:
    lock = WriteLock(tmp_path / "agent.db.lock", 1.0)
    inside, go_on = threading.Event(), threading.Event()

    def write() -> str:
        with lock.held():
            inside.set()
            assert go_on.wait(WAIT)
        return "written"

    with ThreadPoolExecutor() as threads:
        written = threads.submit(write)
        assert inside.wait(WAIT)
        with lock.closing(0.01):
            pass
        go_on.set()
        assert written.result(WAIT) == "written"


def test_work_that_closing_cancels_is_a_typed_error() -> None:
    runner, begun = Runner(), threading.Event()

    async def work() -> None:
        begun.set()
        await asyncio.sleep(WAIT)

    with ThreadPoolExecutor() as threads:
        running = threads.submit(lambda: runner.run(work()))
        assert begun.wait(WAIT)
        runner.close()
        with pytest.raises(WorkEnded, match="the memory was closed before this ended"):
            running.result(WAIT)


def test_work_whose_loop_is_closed_before_it_begins_is_a_typed_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner, closed = Runner(), asyncio.new_event_loop()
    closed.close()
    monkeypatch.setattr(Runner, "loop", closed)

    async def work() -> None: ...

    with pytest.raises(WorkEnded, match="the work ended before its result"):
        runner.run(work())
    runner.begin(lambda: None)


def test_what_is_asked_after_closing_is_refused_and_opens_no_file(tmp_path: Path) -> None:
    memory = refold.open(tmp_path / "agent.db", scrub_megabytes=0)
    conversation = memory.conversation("t")
    conversation.append({"role": "user", "content": "the pier"})
    assert len(memory.conversations()) == len(conversation.recall("pier").hits) == 1
    memory.close()
    before = sorted(path.name for path in tmp_path.iterdir())
    for ask in (memory.conversations, lambda: conversation.recall("pier")):
        with pytest.raises(refold.LogError, match=r"agent\.db was closed; open it again"):
            ask()
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_an_erasure_and_two_that_close_all_end(tmp_path: Path) -> None:
    memory = refold.open(tmp_path / "agent.db")
    memory.conversation("t").append({"role": "user", "content": "secret words"})
    with ThreadPoolExecutor() as threads:
        erased = threads.submit(memory.conversation("t").erase, 0)
        closings: list[Future[None]] = [threads.submit(memory.close) for _ in range(2)]
        for closing in closings:
            closing.result(WAIT)
        error = erased.exception(WAIT)
    assert error is None or isinstance(error, refold.RefoldError)
    with refold.open(tmp_path / "agent.db") as again:
        text = str(again.conversation("t").messages())
        assert error is not None or "secret words" not in text


def test_a_runner_that_was_closed_refuses_work_and_starts_no_thread() -> None:
    runner = Runner()
    assert runner.run(asyncio.sleep(0, "done")) == "done"
    runner.close()
    begun: list[str] = []
    with pytest.raises(refold.LogError, match="the memory was closed; open it again"):
        runner.run(asyncio.sleep(0, "late"))
    runner.begin(begun.append, "late")
    assert not runner.started
    assert begun == []


def test_a_loop_that_ends_leaves_the_work_of_its_successor_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = set(threading.enumerate())
    runner = Runner()
    first = runner.loop
    [first_thread] = set(threading.enumerate()) - others
    close = first.close
    closed, go_on = threading.Event(), threading.Event()

    def close_slowly() -> None:
        close()
        closed.set()
        assert go_on.wait(WAIT)

    async def work() -> str:
        go_on.set()
        await asyncio.to_thread(first_thread.join, WAIT)
        return "done"

    monkeypatch.setattr(first, "close", close_slowly)
    first.call_soon_threadsafe(first.stop)
    assert closed.wait(WAIT)
    assert runner.run(work()) == "done"
    runner.close()


def test_a_connection_in_use_is_closed_by_its_user(tmp_path: Path) -> None:
    pool = SteadyPool(db_name=str(tmp_path / "agent.db"))
    used, idle = pool.get_connection(is_writer=False), pool.get_connection(is_writer=True)
    pool.put_connection(idle)
    with ThreadPoolExecutor() as threads:
        closing = threads.submit(pool.close)
        with pytest.raises(TimeoutError):
            closing.result(0.3)
        assert idle.closed
        cursor = used.cursor()
        cursor.execute("SELECT 1")
        assert cursor.fetchone()[0] == 1
        pool.put_connection(used)
        closing.result(1)
    assert used.closed

"""Threads of one process that append at the same time share a commit, and each gets its own answer."""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.runtime.opening_process import waiting_at_most
from refold.infrastructure.event_store.recorder import LogRecorder
from refold.infrastructure.files.lock import WriteLock
from refold.infrastructure.sqlite.connection_pool import DurableConnection

WAIT = 20
THREADS = 6
Appends = Sequence[Callable[[], refold.Appended]]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[refold.Memory]:
    with refold.open(tmp_path / "agent.db", scrub_megabytes=0) as memory:
        for number in range(THREADS):
            memory.conversation(f"t{number}").append(said("before"))
        yield memory


def said(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


@contextmanager
def kept_away(
    monkeypatch: pytest.MonkeyPatch, memory: refold.Memory, count: int
) -> Generator[None]:
    """Hold the lock of the writers until ``count`` threads wait for it."""
    held, waiting = WriteLock.held, threading.Semaphore(0)
    untyped: Any = memory
    lock: WriteLock = untyped._opened.log._log._lock

    def noted(own: WriteLock, *arguments: Any) -> Any:
        waiting.release()
        return held(own, *arguments)

    with lock.held():
        monkeypatch.setattr(WriteLock, "held", noted)
        yield
        for _ in range(count):
            assert waiting.acquire(timeout=WAIT)


def together(
    monkeypatch: pytest.MonkeyPatch, memory: refold.Memory, appends: Appends
) -> list[Future[refold.Appended]]:
    """Run appends in threads that all wait for the lock before the first one gets it."""
    pool = ThreadPoolExecutor(len(appends))
    with kept_away(monkeypatch, memory, len(appends)):
        running = [pool.submit(append) for append in appends]
    pool.shutdown()
    return running


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One entry for each commit."""
    done: list[None] = []
    commit = DurableConnection.commit

    def counted(connection: DurableConnection) -> None:
        commit(connection)
        done.append(None)

    monkeypatch.setattr(DurableConnection, "commit", counted)
    return done


def texts(memory: refold.Memory, thread_id: str) -> list[object]:
    return [one.message.content for one in memory.conversation(thread_id).messages()]


def test_appends_that_wait_together_are_one_commit(
    memory: refold.Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commits: list[None]
) -> None:
    appends = [
        partial(memory.conversation(f"t{n}").append, said(f"new {n}")) for n in range(THREADS)
    ]
    running = together(monkeypatch, memory, appends)
    assert [one.result().positions for one in running] == [(1,)] * THREADS
    assert len(commits) == 1
    memory.close()
    with refold.open(tmp_path / "agent.db") as again:
        for number in range(THREADS):
            assert texts(again, f"t{number}") == ["before", f"new {number}"]
        assert again.verify().ok


def test_appends_to_one_conversation_are_all_stored_in_some_order(
    memory: refold.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    appends = [partial(memory.conversation("t0").append, said(f"new {n}")) for n in range(THREADS)]
    running = together(monkeypatch, memory, appends)
    positions = [one.result().positions[0] for one in running]
    assert sorted(positions) == list(range(1, THREADS + 1))
    stored = texts(memory, "t0")
    assert [stored[at] for at in positions] == [f"new {n}" for n in range(THREADS)]
    assert memory.verify().ok


def test_a_repeated_key_is_stored_once(
    memory: refold.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    appends = [lambda: memory.conversation("t0").append(said("once"), key="k")] * THREADS
    running = together(monkeypatch, memory, appends)
    assert {one.result().positions for one in running} == {(1,)}
    assert sum(one.result().messages[0].new for one in running) == 1
    assert texts(memory, "t0") == ["before", "once"]


@pytest.mark.parametrize("after_commit", [False, True])
def test_after_a_failed_commit_each_is_stored_once(
    memory: refold.Memory, monkeypatch: pytest.MonkeyPatch, after_commit: bool
) -> None:
    insert = LogRecorder.insert_together
    failed: list[int] = []

    def fail(recorder: LogRecorder, groups: Any) -> Any:
        failed.append(len(groups))
        if after_commit:
            insert(recorder, groups)
        raise OSError(5, "the disk failed")

    monkeypatch.setattr(LogRecorder, "insert_together", fail)
    appends = [
        partial(memory.conversation(f"t{n}").append, said(f"new {n}")) for n in range(THREADS)
    ]
    running = together(monkeypatch, memory, appends)
    assert failed == [THREADS]
    assert [one.result().positions for one in running] == [(1,)] * THREADS
    for number in range(THREADS):
        assert texts(memory, f"t{number}") == ["before", f"new {number}"]
    assert memory.verify().ok


def test_a_refused_append_does_not_keep_the_others_from_being_stored(
    memory: refold.Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refold.open(tmp_path / "agent.db", scrub_megabytes=0) as other:
        other.conversation("t1").append(said("of another process"))
    appends = [
        lambda: memory.conversation("t0").append(said("new 0")),
        lambda: memory.conversation("t1").append(said("new 1"), expected_version=1),
        lambda: memory.conversation("t2").append(said("new 2")),
    ]
    first, second, third = together(monkeypatch, memory, appends)
    assert isinstance(second.exception(), refold.VersionConflict)
    assert first.result().positions == third.result().positions == (1,)
    assert texts(memory, "t1") == ["before", "of another process"]


def test_who_stops_waiting_before_the_commit_begins_stores_nothing(
    memory: refold.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()

    def hurried() -> None:
        try:
            with waiting_at_most(0.05):
                memory.conversation("t0").append(said("in a hurry"))
        finally:
            ended.set()

    with ThreadPoolExecutor(2) as pool:
        with kept_away(monkeypatch, memory, 2):
            patient = pool.submit(memory.conversation("t1").append, said("patient"))
            hurry = pool.submit(hurried)
            assert ended.wait(WAIT)
        assert isinstance(hurry.exception(WAIT), refold.LogBusy)
        assert patient.result(WAIT).positions == (1,)
    assert texts(memory, "t0") == ["before"]


TURNS = 12


def speak(conversation: refold.ConversationMemory, number: int) -> None:
    for turn in range(TURNS):
        conversation.append([said(f"{number}/{turn}"), said(f"{number}/{turn}+")])


def test_many_threads_and_processes_lose_and_repeat_nothing(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with refold.open(path, scrub_megabytes=0) as one, refold.open(path, scrub_megabytes=0) as two:
        with ThreadPoolExecutor(2 * THREADS) as pool:
            for number in range(2 * THREADS):
                memory = (one, two)[number % 2]
                thread = f"t{number % 5}"

                def speak(
                    memory: refold.Memory = memory, thread: str = thread, n: int = number
                ) -> None:
                    for turn in range(12):
                        memory.conversation(thread).append(
                            [said(f"{n}/{turn}"), said(f"{n}/{turn}+")]
                        )

                pool.submit(speak)
        found = [text for n in range(5) for text in texts(one, f"t{n}")]
        expected = [
            f"{n}/{turn}{end}"
            for n in range(2 * THREADS)
            for turn in range(12)
            for end in ("", "+")
        ]
        assert sorted(map(str, found)) == sorted(expected)
        assert one.verify().ok

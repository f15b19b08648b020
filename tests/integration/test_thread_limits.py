"""Where the system refuses threads, processes or memory: what needs none works, and the rest says so."""

import asyncio
import errno
import os
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import refold as refold_package
from refold.infrastructure.cli import scan_workers
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.postgres.connections import Address, Store
from tests.support.command_line import Refold, talk_file
from tests.support.scanned_sessions import compacted_session


def _refuse_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)


def test_commands_that_need_no_thread_work_where_none_can_start(
    refold: Refold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = talk_file(tmp_path / "talk.jsonl")
    assert refold("import", source, "--thread", "before").code == 0
    _refuse_threads(monkeypatch)
    assert refold("import", source, "--thread", "t").code == 0
    for command in (["list"], ["show", "t"], ["recall", "t", "words"], ["verify"], ["replay"]):
        assert refold(*command).code == 0, command
    pytest.importorskip("starlette")
    assert refold("inspect", "--bundle", "pages").code == 0
    listed = refold("list", "--json").answer["conversations"]
    assert {one["thread_id"] for one in listed} == {"before", "t"}


def test_a_command_that_needs_a_thread_says_that_none_can_start(
    refold: Refold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mcp")
    refold("import", talk_file(tmp_path / "talk.jsonl"))
    _refuse_threads(monkeypatch)
    ended = refold("mcp")
    assert ended.code == 2
    assert "can't start new thread: raise the limit of threads" in ended.err
    assert "Traceback" not in ended.err


def test_a_command_without_enough_memory_says_so_and_has_no_negative_result(
    refold: Refold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: object, **__: object) -> None:
        raise MemoryError

    refold("import", talk_file(tmp_path / "talk.jsonl"))
    monkeypatch.setattr(SQLiteLog, "load", load)
    ended = refold("context", "talk", "--json")
    assert ended.code == 2
    assert ended.answer["error"] == "MemoryError"
    assert "there is not enough memory" in ended.err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_sessions_are_scanned_where_no_process_can_start(
    refold: Refold, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fork(*_: Any) -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    Path("s").mkdir()
    for n in range(4):
        Path(f"s/{n}.jsonl").write_text(compacted_session(f"n{n}", hour=n))
    usual = refold("scan", "s", "--json")
    monkeypatch.setattr(scan_workers, "SMALL", 0)
    monkeypatch.setattr(os, "fork", fork)
    assert refold("scan", "s", "--json") == usual
    monkeypatch.undo()


def test_sessions_are_scanned_where_no_thread_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    _refuse_threads(monkeypatch)
    with scan_workers.workers(10**9) as pool:
        assert list(pool.run(str, [1, 2, 3])) == ["1", "2", "3"]


def test_a_follower_whose_thread_cannot_start_says_so_and_starts_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refold_package.open(tmp_path / "a.db") as memory:
        seen: list[int] = []
        follower = memory.follow(
            "f", lambda _, event: seen.append(event.log_position), into=tmp_path / "f.db"
        )
        memory.conversation("t").append({"role": "user", "content": "hello"})
        with monkeypatch.context() as limited:
            _refuse_threads(limited)
            with pytest.raises(refold_package.LogError, match="no thread could start"):
                follower.start(every=0.01)
        follower.start(every=0.01)
        _wait_for(lambda: seen)


def test_sessions_of_the_claude_agent_sdk_are_stored_where_no_thread_can_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("claude_agent_sdk")
    from refold.adapters.claude_agent import RefoldSessionStore

    key: Any = {"project_key": "p", "session_id": "s"}
    entry: Any = {"type": "user", "uuid": "u", "message": {"role": "user", "content": "hello"}}
    with refold_package.open(tmp_path / "a.db") as memory:
        store = RefoldSessionStore(memory)
        _refuse_threads(monkeypatch)
        asyncio.run(store.append(key, [entry]))
        assert asyncio.run(store.load(key)) == [entry]


def test_memories_of_google_adk_are_not_searched_where_no_thread_can_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("google.adk")
    from refold.adapters.google_adk import RefoldMemoryService

    async def search(memory: refold_package.Memory) -> None:
        # The loop needs a thread itself to end.
        with monkeypatch.context() as limited:
            _refuse_threads(limited)
            await RefoldMemoryService(memory).search_memory(app_name="a", user_id="u", query="hi")

    with (
        refold_package.open(tmp_path / "a.db") as memory,
        pytest.raises(refold_package.LogError, match="no thread could start"),
    ):
        asyncio.run(search(memory))


@pytest.mark.parametrize("started", [0, 2])
def test_a_log_on_a_server_is_opened_once_threads_can_start(
    database: str, monkeypatch: pytest.MonkeyPatch, started: int
) -> None:
    start, allowed = threading.Thread.start, iter(range(started))

    def start_or_refuse(thread: threading.Thread) -> None:
        if next(allowed, None) is None:
            raise RuntimeError("can't start new thread")
        start(thread)

    with closing(Store(Address.of(database))) as store:
        with monkeypatch.context() as limited:
            limited.setattr(threading.Thread, "start", start_or_refuse)
            with pytest.raises(refold_package.LogError, match="no thread could start"):
                store.rows("SELECT 1")
        assert store.rows("SELECT 1") == [(1,)]


def _wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)

"""Commands where the system refuses threads, processes or memory: what needs none works, and the rest says so."""

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from refold.infrastructure.cli import scan_workers
from refold.infrastructure.event_store.store import SQLiteLog
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

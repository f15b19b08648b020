"""What a program sees when it may open no more files: the reason, and never damage or a missing permission."""

import errno
import os
import sqlite3
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

import refold
from refold.application.errors import LogError, LogNotWritable
from refold.infrastructure.projection_store import database_file
from refold.infrastructure.projection_store.catch_up import FollowedLog

if sys.platform == "win32":
    pytest.skip("this system has no such limit", allow_module_level=True)

import resource

LIMITED = "no more files may be opened"
NUMBERS = Path("/dev/fd")


@contextmanager
def _spare(count: int) -> Generator[None]:
    """Leave room for this many more open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (max(int(one.name) for one in NUMBERS.iterdir()) + 40, hard)
    )
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for number in taken[:count]:
            os.close(number)
        del taken[:count]
        yield
    finally:
        for number in taken:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a log with read models and a recall index."""
    path = tmp_path / "agent.db"
    with refold.open(path) as memory:
        conversation = memory.conversation("a")
        conversation.append({"role": "user", "content": "Postgres listens on port 5433."})
        conversation.recall("port")
        assert memory.verify().ok
    return path


@pytest.mark.parametrize("count", range(3))
def test_a_log_that_cannot_be_opened_names_the_limit(path: Path, count: int) -> None:
    with _spare(count), pytest.raises(LogError, match=LIMITED) as caught:
        refold.open(path)
    assert not isinstance(caught.value, LogNotWritable)


def test_a_check_says_that_it_could_not_read_and_reports_no_damage(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    refusals: list[str] = []
    for count in range(16):
        with refold.open(path) as memory:
            memory.verify()
            caplog.clear()
            with _spare(count):
                try:
                    found = memory.verify()
                except LogError as error:
                    refusals.append(str(error))
                    continue
            assert found.ok
            assert "cannot be checked" not in caplog.text
    assert 3 < len(refusals) < 16
    assert all(LIMITED in one for one in refusals)


def test_without_files_for_an_event_loop_the_limit_is_named(path: Path) -> None:
    with refold.open(path) as memory:
        for count in range(3):
            with _spare(count), pytest.raises(LogError, match=LIMITED):
                memory.conversation("a").compact()
        assert memory.conversation("a").compact().outcome == "nothing_to_do"


def test_read_models_that_no_file_can_hold_are_not_called_damaged(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), "module.py")

    with refold.open(path) as memory:
        with monkeypatch.context() as broken:
            broken.setattr(FollowedLog, "_ask", ask)
            with pytest.raises(LogError, match=LIMITED) as caught:
                memory.conversations()
        assert "damaged" not in str(caught.value)
        assert [one.thread_id for one in memory.conversations()] == ["a"]


def test_read_models_and_index_are_in_their_files_again_once_files_can_be_opened(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_file, "AGAIN_AFTER", 0.0, raising=False)
    monkeypatch.setattr(database_file, "_SHARE", 0, raising=False)
    moved = 0
    for count in range(16):
        caplog.clear()
        with refold.open(path) as memory:
            conversation = memory.conversation("a")
            with _spare(count), suppress(LogError):
                memory.conversations()
            with _spare(count), suppress(LogError):
                conversation.recall("port")
            moved += "in memory instead" in caplog.text
            conversation.append({"role": "user", "content": f"Number {count} of all ports."})
            [row] = memory.conversations()
            assert len(conversation.recall("ports", limit=count + 1)) == count + 1
        for name, table in (("views", "messages"), ("recall", "passages")):
            with closing(sqlite3.connect(path.with_name(f"agent.{name}.db"))) as stored:
                found = stored.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert found == (row.messages,), (count, name)
    assert moved


def test_an_erasure_that_is_recorded_is_reported_with_what_is_left(tmp_path: Path) -> None:
    word = "secretword"
    recorded = 0
    for count in range(12):
        folder = tmp_path / f"{count}"
        folder.mkdir()
        with refold.open(folder / "agent.db") as memory:
            conversation = memory.conversation("a")
            conversation.append({"role": "user", "content": f"The {word} {count} of all ports."})
            conversation.append({"role": "user", "content": "Another."})
            assert len(conversation.messages()) == 2
            assert conversation.erase(1).complete  # Everything is imported now.
            report = None
            with _spare(count), suppress(LogError):
                report = conversation.erase(0)
            assert conversation.messages()[0].erased is (report is not None)
            if report is None or report.complete:
                continue
            recorded += 1
            assert report.positions == (0,)
            assert {(one.place[-10:], one.state) for one in report.places} == {
                ("of the log", "pending")
            }
            assert all("the erasure is recorded" in one.detail for one in report.places)
            assert conversation.erase(0).complete
            assert all(word.encode() not in one.read_bytes() for one in folder.iterdir())
    assert recorded


class _NoModule:
    """A finder for which too many files are open to import one module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, name: str, *_: object) -> None:
        if name == self._name:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), f"{name}.py")


def test_closing_goes_on_where_a_module_cannot_be_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "refold.application.ports.observer"
    memory = refold.open(path)
    memory.conversation("a").compact()
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [_NoModule(name), *sys.meta_path])
    memory.close()


def test_a_method_whose_module_cannot_be_read_raises_an_error_of_the_log(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "refold.application.compaction.pinning"
    with refold.open(path) as memory:
        monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setattr(sys, "meta_path", [_NoModule(name), *sys.meta_path])
        with pytest.raises(LogError, match=LIMITED):
            memory.conversation("a").pin(0)

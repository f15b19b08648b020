"""What a program sees where files may not grow, or have too long a name: the reason, and no failing disk."""

import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from sqlite3 import OperationalError

import pytest

import refold
from refold.application.erasure.erasure_report import ErasureReport
from refold.application.errors import LogError, LogFull, LogNotWritable
from refold.infrastructure.sqlite.sqlite_failures import as_log_error, is_passing

if sys.platform == "win32":
    pytest.skip("this system has no such limit", allow_module_level=True)

import resource


@contextmanager
def _sizes_up_to(count: int) -> Generator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_an_append_beyond_the_largest_size_names_the_limit_and_stores_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "agent.db"
    with refold.open(path) as memory:
        conversation = memory.conversation("a")
        conversation.append({"role": "user", "content": "Begin."})
        large = {"role": "assistant", "content": "word " * 100_000}
        with _sizes_up_to(200_000), pytest.raises(LogFull, match="ulimit -f"):
            conversation.append(large)
        assert len(conversation.messages()) == 1
        conversation.append(large)
        assert memory.verify().ok


def test_an_erasure_whose_file_may_not_grow_is_recorded_and_says_what_is_left(
    tmp_path: Path,
) -> None:
    reports: list[ErasureReport] = []
    for size in range(20_000, 60_000, 5_000):
        path = tmp_path / f"{size}.db"
        with refold.open(path) as memory:
            for n in range(6):
                words = f"part {n} " + "secretword " * 50
                memory.conversation("a").append({"role": "user", "content": words})
            assert memory.conversation("a").erase(5).complete
        with refold.open(path) as memory:
            conversation = memory.conversation("a")
            conversation.messages()
            with _sizes_up_to(size), suppress(LogFull):
                reports.append(conversation.erase(1))
            assert conversation.erase(range(6)).complete
        assert all(b"secretword" not in one.read_bytes() for one in tmp_path.iterdir())
    left = [place for one in reports if not one.complete for place in one.places]
    assert left
    assert {(place.place, place.state) for place in left} == {("files of the log", "pending")}
    assert all("the erasure is recorded" in place.detail for place in left)


def test_an_index_of_the_write_ahead_log_without_room_means_a_full_disk() -> None:
    error = OperationalError("disk I/O error")
    error.sqlite_errorname = "SQLITE_IOERR_SHMSIZE"
    found = as_log_error(Path("/agent.db"), error)
    assert isinstance(found, LogFull)
    assert "is full" in str(found)
    assert not is_passing(error)


@pytest.mark.parametrize("length", [248, 252, 300])
def test_a_name_that_is_too_long_is_said_to_be_so_and_leaves_no_file(
    tmp_path: Path, length: int
) -> None:
    with pytest.raises(LogError, match="give a shorter name") as caught:
        refold.open(tmp_path / f"{'n' * (length - 3)}.db")
    assert not isinstance(caught.value, LogNotWritable)
    assert list(tmp_path.iterdir()) == []


def _path_of(folder: Path, length: int) -> Path:
    while (rest := length - len(f"{folder}/a.db")) > 1:
        folder /= "d" * min(rest - 1, 200)
    if rest == 1:
        folder = folder.with_name(f"{folder.name}d")
    folder.mkdir(parents=True)
    path = folder / "a.db"
    assert len(f"{path}") == length
    return path


def test_files_next_to_a_log_whose_paths_are_too_long_are_said_to_be(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with refold.open(_path_of(tmp_path.resolve(), 500)) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "the port is 5433"})
        assert conversation.recall("port").hits
        assert memory.conversations()
    said = [one.getMessage() for one in caplog.records if "kept in memory" in one.getMessage()]
    assert len(said) == 2
    assert all("File name too long" in one for one in said)


@pytest.mark.parametrize("length", [504, 505, 600, 3_000])
def test_a_path_that_sqlite_cannot_open_is_said_to_be_too_long_and_leaves_no_file(
    tmp_path: Path, length: int
) -> None:
    path = _path_of(tmp_path.resolve(), length)
    folder = path.parent
    if length == 504:
        refold.open(path).close()
        return
    with pytest.raises(LogError, match="give a shorter name or path") as caught:
        refold.open(path)
    assert not isinstance(caught.value, LogNotWritable)
    assert list(folder.iterdir()) == []
    link = tmp_path / "link"
    link.symlink_to(folder)
    with pytest.raises(LogError, match="give a shorter name or path"):
        refold.open(link / "a.db")

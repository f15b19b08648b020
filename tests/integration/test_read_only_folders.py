"""A log in a folder that cannot be written is read like any other, and nothing is written there."""

import logging
import re
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import refold
from refold.application.api.memory import Memory
from refold.application.errors import LogBusy, LogDamaged, LogError, LogNotWritable
from refold.infrastructure.maintenance.restore import salvage_file, verify_file
from tests.support.golden_files import golden_text
from tests.support.golden_log import from_sql
from tests.support.other_user import as_other_user, readable_by_all

MESSAGES = 24


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that other users can reach; what is imported late is imported before."""
    with refold.open(tmp_path / "warm.db", window=8_000) as memory:
        talk_on(memory, 40)
        read_everything(memory)
        memory.verify()
        memory.backup(tmp_path / "warm-backup.db")
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    yield place
    for path in (place, *place.iterdir()):
        path.chmod(0o700)
    shutil.rmtree(place)


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that everybody can write to."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o777)
    yield place
    shutil.rmtree(place)


def talk_on(memory: Memory, turns: int = MESSAGES // 2) -> None:
    for n in range(turns):
        memory.conversation("t").append(
            [
                {"role": "user", "content": f"question {n} about pytest"},
                {"role": "assistant", "content": f"answer {n}"},
            ]
        )


def closed(path: Path) -> None:
    """A log that was closed, with its derived files."""
    with refold.open(path) as memory:
        talk_on(memory)
        read_everything(memory)


def copied_open(path: Path, *suffixes: str) -> None:
    """The files of a log as they lay there while it was open."""
    with tempfile.TemporaryDirectory() as elsewhere:
        live = Path(elsewhere) / "live.db"
        with refold.open(live) as memory:
            talk_on(memory)
            for suffix in ("", *suffixes):
                shutil.copy(f"{live}{suffix}", f"{path}{suffix}")


STATES: dict[str, Callable[[Path], None]] = {
    "closed": closed,
    "left with a write-ahead log": lambda path: copied_open(path, "-wal", ".anchor"),
    "left with shared memory": lambda path: copied_open(path, "-wal", "-shm", ".anchor"),
}


@pytest.fixture(params=STATES)
def log(request: pytest.FixtureRequest, folder: Path) -> Path:
    """A log that cannot be written, in each state that it can be in."""
    path = folder / "agent.db"
    STATES[request.param](path)
    readable_by_all(folder)
    return path


@contextmanager
def unchanged(folder: Path) -> Generator[None]:
    """Nothing in the folder may change meanwhile."""

    def found() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    before = found()
    yield
    assert found() == before


def read_everything(memory: Memory) -> None:
    conversation = memory.conversation("t")
    assert [row.thread_id for row in memory.conversations()] == ["t"]
    assert conversation.messages()
    assert conversation.context().messages
    assert conversation.explain()
    assert conversation.recall("pytest").hits
    assert memory.search("pytest").hits
    assert memory.stats().events
    assert memory.anchor().conversations == 1


def test_everything_that_reads_works_and_writes_nothing(log: Path, outside: Path) -> None:
    with unchanged(log.parent), as_other_user(), refold.open(log) as memory:
        read_everything(memory)
        assert len(memory.conversation("t").messages()) == MESSAGES
        assert memory.verify().ok
        assert memory.backup(outside / "backup.db").events == MESSAGES
        assert memory.salvage(outside / "salvaged.db").events == MESSAGES
        assert memory.anchor(outside / "exported.anchor").conversations == 1
    with refold.open(outside / "backup.db") as memory:
        assert memory.verify(anchor=outside / "exported.anchor").ok


def test_what_writes_is_refused_and_says_what_to_do(log: Path) -> None:
    with unchanged(log.parent), as_other_user(), refold.open(log) as memory:
        conversation = memory.conversation("t")
        for act in (
            lambda: conversation.append({"role": "user", "content": "more"}),
            lambda: conversation.erase(0),
            lambda: conversation.pin(0),
            lambda: conversation.fork(at=3, thread_id="u"),
            lambda: memory.anchor(accept=True),
        ):
            with pytest.raises(LogNotWritable, match="check its permissions, and those of the fol"):
                act()
        assert len(conversation.messages()) == MESSAGES


def test_a_log_of_the_first_format_is_read_there_as_well(folder: Path, outside: Path) -> None:
    def read(path: Path) -> None:
        with refold.open(path) as memory:
            for row in memory.conversations():
                conversation = memory.conversation(row.thread_id)
                assert len(conversation.messages()) == row.messages > 0
                assert conversation.context(at=row.version).messages
            assert memory.verify().ok

    sql = golden_text("log-1.sql")
    read(from_sql(sql, outside / "warm.db"))
    log = from_sql(sql, folder / "agent.db")
    readable_by_all(folder)
    with unchanged(folder), as_other_user():
        read(log)
        with refold.open(log) as memory, pytest.raises(LogNotWritable):
            memory.conversation("new").append({"role": "user", "content": "more"})


def test_files_that_are_not_opened_as_a_log_are_read_there_as_well(
    log: Path, outside: Path
) -> None:
    refused = LogDamaged("", 0, "not opened")
    with unchanged(log.parent), as_other_user():
        with pytest.raises(LogDamaged, match="not opened"):  # Nothing is wrong with it.
            verify_file(log, refused)
        assert salvage_file(log, outside / "salvaged.db").events == MESSAGES


def test_a_context_that_fits_is_given_though_nothing_can_be_made_smaller(folder: Path) -> None:
    path = folder / "agent.db"
    with refold.open(path) as memory:
        for n in range(90):
            memory.conversation("t").append({"role": "user", "content": f"{n} " + "word " * 60})
            memory.conversation("t").append({"role": "assistant", "content": "yes"})
    readable_by_all(folder)
    with as_other_user(), refold.open(path, window=9_000) as memory:
        context = memory.conversation("t").context()
        assert context.tokens > context.budget.trigger
    with (
        as_other_user(),
        refold.open(path, window=8_000) as memory,
        pytest.raises(LogNotWritable),
    ):
        memory.conversation("t").context()


def test_a_log_that_another_program_writes_to_meanwhile_is_not_misread(folder: Path) -> None:
    path = folder / "agent.db"
    closed(path)
    readable_by_all(folder)
    with as_other_user():
        reader = refold.open(path)
        assert len(reader.conversation("t").messages()) == MESSAGES
    with refold.open(path) as writer:  # Root may.
        talk_on(writer)
    with as_other_user():
        with pytest.raises(LogBusy, match="open it again"):
            reader.conversation("t").messages()
        reader.close()
        with refold.open(path) as again:
            assert len(again.conversation("t").messages()) == 2 * MESSAGES


def test_a_file_that_cannot_be_read_is_no_damage(folder: Path, outside: Path) -> None:
    path = folder / "agent.db"
    closed(path)
    path.chmod(0o000)
    with as_other_user():
        with pytest.raises(LogNotWritable, match="cannot be read") as refused:
            refold.open(path)
        with pytest.raises(LogNotWritable, match="cannot be read"):
            verify_file(path, refused.value)
        with pytest.raises(LogNotWritable, match="cannot be read"):
            salvage_file(path, outside / "salvaged.db")
    folder.chmod(0o000)
    with as_other_user(), pytest.raises(LogNotWritable):
        refold.open(path)
    folder.chmod(0o755)


def test_derived_files_that_cannot_be_read_are_no_damage(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = folder / "agent.db"
    closed(path)
    readable_by_all(folder)
    for name in ("agent.views.db", "agent.recall.db"):
        (folder / name).chmod(0o000)
    with as_other_user(), refold.open(path) as memory:
        caplog.set_level(logging.WARNING)
        assert memory.verify().ok
        assert "cannot be checked" in caplog.text


@pytest.mark.parametrize("mode", [0o444, 0o000])
def test_the_file_that_cannot_be_written_is_named(folder: Path, outside: Path, mode: int) -> None:
    path = folder / "agent.db"
    closed(path)
    lock = folder / "agent.db.lock"
    folder.chmod(0o777)
    for file in folder.iterdir():
        file.chmod(0o666)
    lock.chmod(mode)
    outside.chmod(0o755)
    with as_other_user(), refold.open(path) as memory:
        with pytest.raises(LogNotWritable, match=re.escape(f"because {lock} cannot be opened")):
            memory.conversation("t").append({"role": "user", "content": "more"})
        with pytest.raises(LogNotWritable, match=re.escape(f"the folder {outside}")):
            memory.backup(outside / "copy.db")
    outside.chmod(0o777)


@pytest.mark.parametrize("suffix", [".lock", "-wal", ".turns.lock"])
def test_what_lies_in_the_place_of_a_file_is_named(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "agent.db"
    closed(path)
    place = Path(f"{path}{suffix}")
    place.unlink(missing_ok=True)

    def use() -> None:
        with refold.open(path) as memory, memory.conversation("t").turn():
            memory.conversation("t").append({"role": "user", "content": "more"})

    place.symlink_to(tmp_path / "missing" / "file")
    with pytest.raises(LogNotWritable):
        use()
    place.unlink()
    place.mkdir()
    with pytest.raises(LogError, match=f"{re.escape(str(place))}: Is a directory; move it away"):
        use()
    place.rmdir()
    use()


@pytest.mark.parametrize("mode", [0o555, 0o700], ids=["not writable", "not readable"])
def test_a_folder_that_cannot_be_used_is_a_typed_error(
    folder: Path, outside: Path, mode: int
) -> None:
    path = folder / "agent.db"
    closed(path)
    readable_by_all(folder)
    target = outside / "locked" / "new.db"
    target.parent.mkdir()
    target.parent.chmod(mode)
    with as_other_user(), refold.open(path) as memory:
        for copy in (
            lambda: memory.backup(target),
            lambda: memory.salvage(target),
            lambda: salvage_file(path, target),
            lambda: refold.restore(path, target),
            lambda: refold.open(target),
        ):
            with pytest.raises(LogNotWritable, match=re.escape(str(target.parent))):
                copy()
        if mode == 0o700:
            with pytest.raises(LogNotWritable, match=re.escape(str(target))):
                refold.restore(target, outside / "restored.db")
            with pytest.raises(LogNotWritable, match=re.escape(str(target))):
                salvage_file(target, outside / "salvaged.db")
    assert not list(target.parent.iterdir())

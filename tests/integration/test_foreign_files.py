"""A file of somebody else that has the name of one beside the log is never deleted or replaced."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import refold
from refold.application.errors import TargetExists
from tests.support.fake_embedders import DigestEmbedder

NAMES = ("views", "recall", "vectors")
KEY = "00" * 32


def a_log(path: Path) -> None:
    with refold.open(path) as other:
        other.conversation("t").append({"role": "user", "content": "precious"})


def a_log_that_was_killed(path: Path) -> None:
    """All that it holds is in its write-ahead log, and nothing but the lock tells who used it."""
    made = path.with_name("killed.db")
    with refold.open(made, anchor=False) as other:
        other.conversation("t").append({"role": "user", "content": "precious"})
        for suffix in ("", "-wal"):
            Path(f"{path}{suffix}").write_bytes(Path(f"{made}{suffix}").read_bytes())
    Path(f"{path}.lock").touch()


def a_log_with_a_broken_header(path: Path) -> None:
    a_log(path)
    content = path.read_bytes()
    path.write_bytes(b"\0" * 16 + content[16:])


def a_log_that_cannot_be_read(path: Path) -> None:
    a_log(path)
    path.write_bytes(b"\xff" * path.stat().st_size)


def a_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("CREATE TABLE messages (body TEXT)")
        other.execute("INSERT INTO messages VALUES ('precious')")


def an_unfinished_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version=7")


def a_text(path: Path) -> None:
    path.write_text("precious\n" * 1_000)


def a_link(path: Path) -> None:
    real = path.with_name("notes.txt")
    a_text(real)
    path.symlink_to(real)


FOREIGN = (
    a_log,
    a_log_that_was_killed,
    a_log_with_a_broken_header,
    a_log_that_cannot_be_read,
    a_database,
    an_unfinished_database,
    a_text,
    a_link,
)


def fill(path: Path, *, key: str | None = None) -> None:
    with refold.open(path, embedder=DigestEmbedder(), encryption_key=key) as memory:
        conversation = memory.conversation("x")
        conversation.append([{"role": "user", "content": f"port {n}"} for n in range(3)])


def read_all(path: Path) -> None:
    with refold.open(path, embedder=DigestEmbedder()) as memory:
        assert len(memory.conversation("x").messages()) == 3
        assert memory.conversation("x").recall("port").hits
        progress = memory.embed(30.0)
        assert progress is not None
        assert progress.done == 3


def erase(path: Path) -> None:
    with refold.open(path, embedder=DigestEmbedder()) as memory:
        memory.embed(30.0)
        assert memory.conversation("x").messages()
        assert memory.conversation("x").erase(0).complete


def replay(path: Path) -> None:
    with refold.open(path) as memory:
        memory.replay()


def open_with_a_key(path: Path) -> None:
    with refold.open(path, encryption_key=KEY) as memory:
        assert memory.conversations()


def repair(path: Path) -> None:
    with refold.open(path) as memory:
        for found in (memory.verify(), memory.verify(repair=True)):
            assert [one.kind for one in found.damage] == ["foreign"]
            assert "name" in found.damage[0].remedy
            assert found.repaired == ()


def contents(folder: Path) -> dict[str, bytes]:
    """Of every file but those that only order processes."""
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.is_file() and not path.name.endswith((".lock", "-shm"))
    }


@pytest.mark.slow(
    but=["recall-a_link-repair", "recall-a_link-open_with_a_key", "views-a_link-replay"]
)
@pytest.mark.parametrize("use", [read_all, erase, replay, open_with_a_key, repair])
@pytest.mark.parametrize("make", FOREIGN)
@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_somebody_else_is_left_as_it_is(
    tmp_path: Path, name: str, make: Callable[[Path], None], use: Callable[[Path], None]
) -> None:
    fill(tmp_path / "team.db")
    for own in NAMES:
        for path in tmp_path.glob(f"team.{own}.*"):
            path.unlink()
    make(tmp_path / f"team.{name}.db")
    before = contents(tmp_path)
    is_link = (tmp_path / f"team.{name}.db").is_symlink()
    use(tmp_path / "team.db")
    after = contents(tmp_path)
    mine = {"team.db", "team.db.anchor", "team.db.checked"}
    assert {n: after.get(n) for n in before.keys() - mine} == {
        n: before[n] for n in before.keys() - mine
    }
    assert (tmp_path / f"team.{name}.db").is_symlink() == is_link


def test_it_is_said_which_file_it_is_and_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    a_log(tmp_path / "team.recall.db")
    fill(tmp_path / "team.db")
    read_all(tmp_path / "team.db")
    assert "team.recall.db is a log of refold" in caplog.text
    assert "give one of the two files another name" in caplog.text
    with refold.open(tmp_path / "team.recall.db") as other:
        assert other.conversation("t").messages()[0].text == "precious"


def test_a_log_that_is_made_while_another_is_in_use_is_left(tmp_path: Path) -> None:
    with refold.open(tmp_path / "team.db") as memory:
        conversation = memory.conversation("x")
        conversation.append({"role": "user", "content": "port"})
        assert conversation.recall("port").hits
        for path in tmp_path.glob("team.recall.*"):
            path.unlink()
        a_log(tmp_path / "team.recall.db")
        before = contents(tmp_path)["team.recall.db"]
        assert conversation.recall("port").hits
        conversation.erase(0)
    assert contents(tmp_path)["team.recall.db"] == before


@pytest.mark.parametrize("name", NAMES)
def test_a_log_is_not_salvaged_or_anchored_into_a_file_of_its_own(
    tmp_path: Path, name: str
) -> None:
    fill(tmp_path / "team.db")
    to = tmp_path / f"team.{name}.db"
    with refold.open(tmp_path / "team.db") as memory:
        for write in (memory.salvage, memory.anchor, memory.backup):
            with pytest.raises(TargetExists, match="a file of the log itself"):
                write(to)
    assert not to.exists()


@pytest.mark.slow(but="vectors")
@pytest.mark.parametrize("name", NAMES)
def test_files_of_before_there_were_marks_are_taken_for_ours(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    fill(tmp_path / "team.db")
    read_all(tmp_path / "team.db")
    with closing(sqlite3.connect(tmp_path / f"team.{name}.db")) as other:
        (mark,) = other.execute("PRAGMA application_id").fetchone()
        assert mark
        other.execute("PRAGMA application_id=0")
    Path(f"{tmp_path / f'team.{name}.db'}.lock").unlink()
    caplog.clear()
    read_all(tmp_path / "team.db")
    assert caplog.records == []
    erase(tmp_path / "team.db")
    assert not any(b"port 0" in content for content in contents(tmp_path).values())


@pytest.mark.slow(but=["views-48", "vectors-27", "vectors-33"])
@pytest.mark.parametrize("at", range(0, 100, 3))
@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_header_does_not_make_it_somebody_elses(
    tmp_path: Path, name: str, at: int, caplog: pytest.LogCaptureFixture
) -> None:
    fill(tmp_path / "team.db")
    read_all(tmp_path / "team.db")
    path = tmp_path / f"team.{name}.db"
    content = bytearray(path.read_bytes())
    content[at : at + 3] = bytes(byte ^ 0x41 for byte in content[at : at + 3])
    path.write_bytes(content)
    read_all(tmp_path / "team.db")
    assert "in memory" not in caplog.text

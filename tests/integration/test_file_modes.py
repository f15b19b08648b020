"""New files are their owner's alone, whatever the umask; files that exist keep their modes."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import refold
from refold.infrastructure.files.private_files import make_private, open_private


@pytest.fixture(params=[0o000, 0o022, 0o277], ids=oct, autouse=True)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_every_file_of_a_new_store_is_its_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    folder.chmod(0o755)
    with refold.open(folder / "agent.db") as memory:
        memory.conversation("t").append({"role": "user", "content": "hello"})
        memory.conversations()
        memory.search("hello")
        found = {path.name: mode_of(path) for path in folder.iterdir()}
    beside = {"agent.db-wal", "agent.db-shm", "agent.db.lock", "agent.views.db", "agent.recall.db"}
    assert {"agent.db", *beside} <= set(found)
    assert found == dict.fromkeys(found, 0o600)


def test_a_log_that_a_group_shares_stays_shared(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    folder.chmod(0o755)
    refold.open(folder / "agent.db").close()
    for path in folder.iterdir():
        path.unlink() if path.name != "agent.db" else path.chmod(0o660)
    with refold.open(folder / "agent.db") as memory:
        memory.conversation("t").append({"role": "user", "content": "hello"})
        memory.conversations()
        memory.search("hello")
        found = {path.name: mode_of(path) for path in folder.iterdir()}
    beside = {"agent.db", "agent.db-wal", "agent.db.lock", "agent.views.db", "agent.db.anchor"}
    assert beside | {"agent.recall.db"} <= set(found)
    assert found == dict.fromkeys(found, 0o660)


def test_a_file_that_exists_keeps_its_mode_and_content(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"mine")
    path.chmod(0o644)
    assert not make_private(path)
    assert (path.read_bytes(), mode_of(path)) == (b"mine", 0o644)


def test_a_new_file_is_made_where_a_link_points(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "there")
    assert make_private(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert mode_of(tmp_path / "there") == 0o600


def test_a_file_that_must_be_new_is_not_opened_if_it_exists(tmp_path: Path) -> None:
    with open_private(tmp_path / "a", "xb") as file:
        file.write(b"one")
    with pytest.raises(FileExistsError):
        open_private(tmp_path / "a", "xb")
    with open_private(tmp_path / "a", "ab") as file:
        file.write(b" two")
    assert (tmp_path / "a").read_bytes() == b"one two"
    assert mode_of(tmp_path / "a") == 0o600

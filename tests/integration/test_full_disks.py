"""A log on a disk without any room is read, checked and copied, and is written again once there is room."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import refold
from refold.application.errors import LogFull
from refold.infrastructure.maintenance.restore import salvage_file
from tests.support.small_disk import Mounted

if sys.platform == "win32":
    pytest.skip("no small disk can be mounted here", allow_module_level=True)

import resource

MESSAGES = 24


@pytest.fixture(
    params=["size=900k,nr_inodes=40", "size=4m,nr_inodes=14"], ids=["no blocks", "no names"]
)
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Mounted]:
    """A small disk with a log that was closed."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    mounted = Mounted(tmp_path / "disk", request.param)
    _talk(mounted.place / "a.db")
    yield mounted
    mounted.unmount()


def _talk(path: Path) -> None:
    with refold.open(path, window=8_000) as memory:
        conversation = memory.conversation("t")
        for n in range(MESSAGES):
            role = "assistant" if n % 2 else "user"
            conversation.append({"role": role, "content": f"part {n} about pytest"})
        memory.conversations()
        conversation.recall("pytest")


def _fill(disk: Mounted) -> list[Path]:
    """Take every block and every name of a disk. Return the files that take them."""
    taken = [disk.fill()]
    try:
        while True:
            taken.append(disk.place / f"name{len(taken)}")
            taken[-1].touch()
    except OSError:
        return taken[:-1]


def test_everything_that_reads_works_and_a_write_says_that_the_disk_is_full(
    disk: Mounted, tmp_path: Path
) -> None:
    _fill(disk)
    with refold.open(disk.place / "a.db", window=8_000) as memory:
        conversation = memory.conversation("t")
        assert len(conversation.messages()) == MESSAGES
        assert [row.thread_id for row in memory.conversations()] == ["t"]
        assert conversation.recall("pytest")
        assert conversation.context().messages
        assert memory.verify().damage == ()
        memory.backup(tmp_path / "backup.db")
        for _ in range(2):
            with pytest.raises(LogFull, match="free some space"):
                conversation.append({"role": "user", "content": "more"})
        assert len(conversation.messages()) == MESSAGES
    with refold.open(tmp_path / "backup.db") as copy:
        assert len(copy.conversation("t").messages()) == MESSAGES


def test_the_same_memory_writes_again_once_there_is_room(disk: Mounted) -> None:
    taken = _fill(disk)
    with refold.open(disk.place / "a.db", window=8_000) as memory:
        conversation = memory.conversation("t")
        assert len(conversation.messages()) == MESSAGES
        for file in taken:
            file.unlink()
        conversation.append({"role": "user", "content": "more"})
        assert conversation.messages()[-1].message.content == "more"
        assert memory.verify().ok
    with refold.open(disk.place / "a.db") as memory:
        assert len(memory.conversation("t").messages()) == MESSAGES + 1


def test_a_write_ahead_log_without_its_index_is_read_as_well(disk: Mounted, tmp_path: Path) -> None:
    live = tmp_path / "live.db"
    with refold.open(live) as memory:
        memory.conversation("t").append({"role": "user", "content": "only ahead"})
        for end in ("", "-wal"):
            shutil.copy(f"{live}{end}", disk.place / f"b.db{end}")
    _fill(disk)
    with refold.open(disk.place / "b.db") as memory:
        [message] = memory.conversation("t").messages()
        assert message.message.content == "only ahead"
    salvage_file(disk.place / "b.db", tmp_path / "salvaged.db")
    with refold.open(tmp_path / "salvaged.db") as memory:
        assert len(memory.conversation("t").messages()) == 1


def test_where_files_may_not_grow_at_all_a_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    _talk(path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with refold.open(path) as memory:
            found = len(memory.conversation("t").messages())
            with pytest.raises(LogFull, match="ulimit -f"):
                memory.conversation("t").append({"role": "user", "content": "more"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert found == MESSAGES

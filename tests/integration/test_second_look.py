"""A disk that fails for a moment is not called damage; what is damaged is, at the second look."""

import errno
import os
import sqlite3
from pathlib import Path

import pytest

import refold
from refold.application.errors import LogDamaged, LogError
from refold.infrastructure.sqlite.sqlite_failures import diagnose


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with enough pages that some are not read at opening."""
    path = tmp_path / "agent.db"
    with refold.open(path) as memory:
        for n in range(20):
            memory.conversation("t").append(
                {"role": "user", "content": f"needle-{n} " + "x" * 3_000}
            )
    return path


def flip(path: Path, text: bytes) -> None:
    """Turn a bit over, in a file that may be open."""
    at = path.read_bytes().find(text)
    descriptor = os.open(path, os.O_RDWR)
    os.pwrite(descriptor, bytes([os.pread(descriptor, 1, at)[0] ^ 1]), at)
    # It stays open: closing it would end the locks of this process.


def corrupt() -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError("database disk image is malformed")
    error.sqlite_errorname = "SQLITE_CORRUPT"
    return error


def test_what_was_misread_once_is_read_again_before_it_is_called_damage(log: Path) -> None:
    with refold.open(log, scrub_megabytes=0) as memory:
        conversation = memory.conversation("t")
        assert len(conversation.messages()) == 20
    with refold.open(log, scrub_megabytes=0) as memory:
        conversation = memory.conversation("t")
        flip(log, b"needle-7 ")
        with pytest.raises(LogDamaged):
            conversation.context()
        flip(log, b"oeedle-7 ")
        # SQLite still has the wrong page in memory.
        assert conversation.context().version == 20
        assert memory.verify().ok


def test_a_backup_and_a_check_look_again_as_well(log: Path, tmp_path: Path) -> None:
    with refold.open(log, scrub_megabytes=0) as memory:
        flip(log, b"needle-7 ")
        with pytest.raises(refold.RefoldError):
            memory.backup(tmp_path / "first.db")
        assert not memory.verify().ok
        flip(log, b"oeedle-7 ")
        assert memory.backup(tmp_path / "second.db").events == 20
        assert memory.verify().ok


def test_a_read_that_failed_for_a_moment_is_a_fault_of_the_device(log: Path) -> None:
    error = diagnose(log, corrupt())
    assert not isinstance(error, LogDamaged)
    assert "try again" in str(error)


def test_a_disk_that_cannot_be_read_is_a_fault_of_the_device(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(descriptor: int, size: int, at: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pread", failing)
    error = diagnose(log, corrupt())
    assert type(error) is LogError
    assert "check the disk" in str(error)


def test_what_is_damaged_at_the_second_look_is_damage(log: Path) -> None:
    content = bytearray(log.read_bytes())
    content[4096:8192] = bytes(4096)
    log.write_bytes(content)
    assert isinstance(diagnose(log, corrupt()), LogDamaged)
    with pytest.raises(LogDamaged), refold.open(log, scrub_megabytes=0) as memory:
        memory.conversation("t").messages()


def test_looking_again_leaves_the_locks_of_this_process(log: Path) -> None:
    with refold.open(log, scrub_megabytes=0) as memory:
        memory.conversation("t").append({"role": "user", "content": "one more"})
        diagnose(log, corrupt())
        other = sqlite3.connect(log, timeout=0)
        # The last one that closes deletes the file: it must see that somebody has the log open.
        other.execute("SELECT count(*) FROM stored_events").fetchone()
        other.close()
        assert Path(f"{log}-wal").exists()
        memory.conversation("t").append({"role": "user", "content": "and more"})
    with refold.open(log, scrub_megabytes=0) as memory:
        assert len(memory.conversation("t").messages()) == 22

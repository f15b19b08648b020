"""A write-ahead log that is written to while it is examined is not called damaged."""

import shutil
import sqlite3
from contextlib import closing
from io import BytesIO
from pathlib import Path

import pytest

from refold.infrastructure.write_ahead import examination as examining
from refold.infrastructure.write_ahead.frames import FILE_HEAD, Chain, read_chain


def written(folder: Path, start: Path | None, *values: str) -> tuple[Path, bytes]:
    """A copy of a database with its write-ahead log, and these values committed to it one by one."""
    folder.mkdir()
    live, path = folder / "live.db", folder / "a.db"
    if start is not None:
        for end in ("", "-wal"):
            shutil.copy(f"{start}{end}", f"{live}{end}")
    with closing(sqlite3.connect(live, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE IF NOT EXISTS t (value)")
        for value in values:
            connection.execute("INSERT INTO t VALUES (?)", (value * 700,))
        for end in ("", "-wal"):
            shutil.copy(f"{live}{end}", f"{path}{end}")
    return path, Path(f"{path}-wal").read_bytes()


def test_a_frame_that_was_read_before_it_was_written_again_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, before = written(tmp_path / "begun", None, "one")
    # What a killed process left, and what the next one has written over it.
    _, left = written(tmp_path / "left", begun, "left")
    path, now = written(tmp_path / "now", begun, "two", "three", "four", "five")
    size = 4096 + 24
    until = len(before) + 4 * size  # Of what was left, then those frames that are there now.
    assert (len(before) - FILE_HEAD) % size == 0
    mixed = read_chain(BytesIO(left[:until] + now[until:]))
    looks: list[Chain | None] = [mixed]
    usual = examining.read_write_ahead

    def read(place: Path) -> Chain | None:
        return looks.pop() if looks else usual(place)

    monkeypatch.setattr(examining, "read_write_ahead", read)
    assert examining.examine(path) is None
    assert not looks

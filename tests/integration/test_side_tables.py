"""What lies in the log's file with the events is never believed without proof: odd values, rows gone or twice."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

import refold
from refold.application.errors import LogDamaged, LogLocked
from refold.infrastructure.maintenance.restore import salvage_file

KEY = bytes(range(32))
TABLES = {
    "encryption_keys": ("fingerprint",),
    "plain_heads": ("originator_id", "originator_version", "state"),
    "dictionaries": ("id", "content"),
    "pending_erasures": ("number",),
    "stored_snapshots": ("originator_id", "originator_version", "topic", "state"),
    "sqlite_sequence": ("name", "seq"),
}
ODD: list[object] = [None, 2**63 - 1, "text", b"\x00\xff"]
THREADS = ("old", "both", "new")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with all of these tables: plain at first, then with a key, compacted, compressed, erased from."""
    path = tmp_path_factory.mktemp("side") / "a.db"
    with refold.open(path) as memory:
        for thread_id in ("old", "both"):
            deliver(memory, thread_id, range(3))
    with refold.open(path, encryption_key=KEY, window=8_000) as memory:
        deliver(memory, "both", range(3, 5))
        deliver(memory, "new", range(60))
        assert memory.conversation("new").compact().outcome == "performed"
        assert memory.compress().dictionary
        memory.conversation("new").erase(3)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO pending_erasures DEFAULT VALUES")
        found = connection.execute("SELECT name FROM sqlite_schema WHERE type='table'").fetchall()
        assert set(TABLES) <= {name for (name,) in found}
    return path


def deliver(memory: refold.Memory, thread_id: str, numbers: range) -> None:
    for number in numbers:
        memory.conversation(thread_id).append(message_of(thread_id, number), key=f"k{number}")


def message_of(thread_id: str, number: int) -> dict[str, str]:
    role = "assistant" if number % 2 else "user"
    return {"role": role, "content": f"{number} of {thread_id} " + "word " * 90}


def copy_of(whole: Path, folder: Path) -> Path:
    folder.mkdir()
    for file in whole.parent.glob("a.db*"):
        shutil.copy(file, folder / file.name)
    return folder / "a.db"


def harms(table: str) -> Iterator[tuple[str, tuple[object, ...]]]:
    for column in TABLES[table]:
        for odd in ODD:
            yield f"UPDATE OR REPLACE {table} SET {column}=?", (odd,)
    yield f"DELETE FROM {table}", ()
    yield f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}", ()
    if table != "sqlite_sequence":
        yield f"DROP TABLE {table}", ()


@pytest.mark.slow(but=["encryption_keys", "pending_erasures"])
@pytest.mark.parametrize("table", TABLES)
def test_nothing_is_lost_doubled_or_acknowledged_in_vain(
    whole: Path, tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFOLD_ENCRYPTION_KEY", KEY.hex())
    for at, (statement, values) in enumerate(harms(table)):
        path = copy_of(whole, tmp_path / str(at))
        with closing(sqlite3.connect(path)) as connection, connection, suppress(sqlite3.Error):
            connection.execute(statement, values)
        monkeypatch.delenv("REFOLD_ENCRYPTION_KEY")
        with pytest.raises((LogLocked, LogDamaged)):
            refold.open(path)
        monkeypatch.setenv("REFOLD_ENCRYPTION_KEY", KEY.hex())
        stored = dict(appended_to(path))
        salvage_file(path, path.with_name("salvaged.db"))
        with refold.open(path.with_name("salvaged.db")) as memory:
            for thread_id, number in stored.items():
                texts = [str(m.message.content) for m in memory.conversation(thread_id).messages()]
                assert texts.count("acknowledged") == 1, (statement, values, thread_id, number)


def appended_to(path: Path) -> Iterator[tuple[str, int]]:
    """The conversations that took a message, and its position; a delivery of before is never taken."""
    try:
        memory = refold.open(path)
    except LogDamaged:
        return
    with memory:
        for thread_id in THREADS:
            conversation = memory.conversation(thread_id)
            with suppress(LogDamaged):
                again = conversation.append(message_of(thread_id, 2), key="k2")
                assert (again.positions, again.messages[0].new) == ((2,), False)
            with suppress(LogDamaged):
                yield (
                    thread_id,
                    conversation.append({"role": "user", "content": "acknowledged"}).positions[0],
                )
        with suppress(refold.RefoldError):
            memory.verify(repair=True)


def test_an_encrypted_log_whose_note_of_the_key_is_lost_takes_nothing_without_it(
    whole: Path, tmp_path: Path
) -> None:
    path = copy_of(whole, tmp_path / "a")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM encryption_keys")
    with pytest.raises(LogLocked, match="no key was given"):
        refold.open(path)


def test_a_snapshot_that_does_not_say_its_version_is_told_and_removed(
    whole: Path, tmp_path: Path
) -> None:
    path = copy_of(whole, tmp_path / "a")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE stored_snapshots SET originator_version='text'")
    with refold.open(path, encryption_key=KEY) as memory:
        assert memory.conversation("new").context().messages
        assert [d.place for d in memory.verify().damage] == ["snapshots"]
        assert memory.verify(repair=True).ok

"""A backup is a whole and checked copy of one moment, or there is none."""

import asyncio
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from eventsourcing.sqlite import SQLiteDatastore

from refold.application.errors import BackupDamaged, LogError, TargetExists
from refold.infrastructure.bootstrap import open_async_memory, open_memory
from refold.infrastructure.event_store.anchor import anchor_path
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.maintenance import backup as backing_up
from tests.support.command_line import START, Refold, process, talk
from tests.support.log_files import execute, log_of, rows, set_state

ROOT = Path(__file__).resolve().parents[2]


def writer(path: Path, name: str, count: int) -> "subprocess.Popen[bytes]":
    words = ["-m", "tests.support.writer_process", "write", str(path), name, name, str(count)]
    return subprocess.Popen([sys.executable, *words], cwd=ROOT)


def test_a_backup_is_a_log_that_opens_by_itself(tmp_path: Path) -> None:
    path, copy = tmp_path / "agent.db", tmp_path / "copies" / "monday.db"
    copy.parent.mkdir()
    with open_memory(path, window=8_000) as memory:
        memory.conversation("t").append(talk(40), recorded=True)
        assert memory.conversation("t").compact().outcome == "performed"
        made = memory.backup(copy)
        assert (made.path, made.conversations) == (copy, 1)
        assert made.events == len(rows(path)) == len(rows(copy))
        assert made.bytes == copy.stat().st_size
        memory.conversation("t").append({"role": "user", "content": "after it"})
    assert sorted(p.name for p in copy.parent.iterdir()) == ["monday.db", "monday.db.anchor"]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with open_memory(copy) as memory:
        assert memory.verify().ok
        assert len(memory.conversation("t").messages()) == 160


def test_numbers_are_kept_so_that_followers_go_on_where_they_were(tmp_path: Path) -> None:
    path = log_of(tmp_path / "agent.db", "one", "two", thread_id="a")
    log_of(path, "three", thread_id="b")
    with open_memory(path) as memory:
        memory.backup(tmp_path / "copy.db")
    assert numbers(tmp_path / "copy.db") == numbers(path)


@pytest.mark.slow
def test_a_backup_has_no_free_pages_and_every_number_of_ten_thousand_with_gaps(
    tmp_path: Path,
) -> None:
    path, copy = tmp_path / "agent.db", tmp_path / "copy.db"
    with open_memory(path, window=8_000) as memory:
        for thread_id in ("a", "b", "c"):
            memory.conversation(thread_id).append(talk(850), recorded=True)
            assert memory.conversation(thread_id).compact().outcome == "performed"
        memory.conversation("b").fork(thread_id="gone", at=500)
        memory.erase_conversation("gone")
        memory.conversation("a").erase(list(range(100, 200)))
        assert memory.compress().events > 1_000
        # Nothing of ours makes gaps; a log must not depend on that.
        execute(path, "UPDATE stored_events SET rowid=rowid + 10 * (rowid / 7) + 1000000")
        made = memory.backup(copy)
    assert made.events > 10_000
    assert made.bytes < path.stat().st_size * 0.9
    assert numbers(copy) == numbers(path)
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)
    for table in ("stored_snapshots", "stored_events"):
        assert rows(copy, table) == rows(path, table)


def test_where_the_numbers_would_change_every_page_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log_of(tmp_path / "agent.db", "one", "two", "three")
    tight = backing_up.copy_tight

    def renumbered(source: SQLiteDatastore, made: Path) -> None:
        tight(source, made)
        execute(made, "UPDATE stored_events SET rowid=rowid+1 WHERE originator_version=3")

    monkeypatch.setattr(backing_up, "copy_tight", renumbered)
    with open_memory(path) as memory:
        assert memory.backup(tmp_path / "copy.db").events == 3
    assert numbers(tmp_path / "copy.db") == numbers(path)


def numbers(path: Path) -> list[tuple[int, str, int]]:
    kept = "SELECT rowid, originator_id, originator_version FROM stored_events ORDER BY rowid"
    with closing(sqlite3.connect(path)) as connection:
        found: list[tuple[int, str, int]] = connection.execute(kept).fetchall()
        return found


@pytest.mark.slow
def test_writers_go_on_while_it_is_made_and_it_is_of_one_moment(tmp_path: Path) -> None:
    path = log_of(tmp_path / "agent.db", *["long " * 2_000] * 300)
    writers = [writer(path, name, 100) for name in ("a", "b")]
    copies: list[Path] = []
    sizes: list[int] = []
    with open_memory(path) as memory:
        while None in [process.poll() for process in writers]:
            copies.append(tmp_path / f"{len(copies)}.db")
            sizes.append(memory.backup(copies[-1]).events)
    assert [process.returncode for process in writers] == [0, 0]
    assert sizes == sorted(sizes)
    # Some of them were made in between.
    assert {300, len(rows(path))} < set(sizes) | {300, len(rows(path))}
    everything = {row[:2]: row for row in rows(path)}
    for copy in copies:
        log = SQLiteLog(copy)
        assert list(log.check()) == []
        log.close()
        # Of each conversation the first events, all of them, as they are in the log.
        assert all(everything[row[:2]] == row for row in rows(copy))


def test_a_log_in_memory_can_be_kept(tmp_path: Path) -> None:
    with open_memory(":memory:") as memory:
        memory.conversation("t").append({"role": "user", "content": "Keep this."})
        assert memory.backup(tmp_path / "kept.db").events == 1
    with open_memory(tmp_path / "kept.db") as memory:
        assert memory.conversation("t").messages()[0].text == "Keep this."


def test_from_asyncio(tmp_path: Path) -> None:
    async def keep() -> int:
        async with open_async_memory(tmp_path / "agent.db") as memory:
            await memory.conversation("t").append({"role": "user", "content": "Hello."})
            assert (await memory.stats()).messages == 1
            assert len(await memory.conversation("t").export()) == 1
            return (await memory.backup(tmp_path / "copy.db")).events

    assert asyncio.run(keep()) == 1


def test_a_file_that_is_there_is_replaced_on_purpose_only(tmp_path: Path) -> None:
    path, copy = log_of(tmp_path / "agent.db", "one"), tmp_path / "copy.db"
    copy.write_text("mine")
    with open_memory(path) as memory:
        with pytest.raises(TargetExists, match="exists already"):
            memory.backup(copy)
        assert copy.read_text() == "mine"
        assert memory.backup(copy, replace=True).events == 1
        memory.conversation("t").append({"role": "user", "content": "two"})
        assert memory.backup(copy, replace=True).events == 2
        used = ["agent.db-wal", "agent.db.anchor", "agent.views.db", "agent.recall.db.lock"]
        for place in (path, tmp_path, *(tmp_path / name for name in used)):
            with pytest.raises(TargetExists):
                memory.backup(place, replace=True)
        assert memory.verify().ok
    with open_memory(copy) as memory:
        assert memory.verify().ok


def test_a_file_that_another_program_has_open_is_not_replaced(tmp_path: Path) -> None:
    path, other = log_of(tmp_path / "agent.db", "one"), log_of(tmp_path / "other.db", "other")
    with open_memory(path) as memory, open_memory(other) as busy:
        busy.conversation("t").append({"role": "user", "content": "more"})
        with pytest.raises(LogError, match="in use"):
            memory.backup(other, replace=True)
        assert len(busy.conversation("t").messages()) == 2


def test_a_damaged_log_gives_no_backup(tmp_path: Path) -> None:
    path = log_of(tmp_path / "agent.db", "one", "two", "three")
    set_state(path, 2, b"damaged")
    with open_memory(path) as memory, pytest.raises(BackupDamaged, match="event 2") as refused:
        memory.backup(tmp_path / "copy.db")
    assert [damage.version for damage in refused.value.damage] == [2]
    assert not list(tmp_path.glob("*copy*"))


def test_of_torn_pages_the_damage_is_told(tmp_path: Path) -> None:
    path = log_of(tmp_path / "agent.db", *["long " * 2_000] * 30)
    with path.open("r+b") as file:
        file.seek(4096 * 20)
        file.write(b"\xff" * 4096 * 3)
    with open_memory(path) as memory, pytest.raises(BackupDamaged) as refused:
        memory.backup(tmp_path / "copy.db")
    assert refused.value.path == path
    assert not list(tmp_path.glob("*copy*"))


def test_a_copy_that_lacks_its_end_is_noticed_by_the_anchor_beside_it(tmp_path: Path) -> None:
    path, copy = log_of(tmp_path / "agent.db", "one", "two"), tmp_path / "copy.db"
    with open_memory(path) as memory:
        memory.backup(copy)
    assert anchor_path(copy).is_file()
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("DELETE FROM stored_events WHERE originator_version=2")
        connection.execute("DELETE FROM message_keys WHERE originator_version=2")
    with open_memory(copy) as memory, pytest.raises(LogError, match="were stored"):
        memory.conversation("t").context()


@pytest.mark.slow
def test_ctrl_c_leaves_no_half_file(tmp_path: Path) -> None:
    log_of(tmp_path / "agent.db", *["long " * 20_000] * 150)
    with process("backup", "copy.db", folder=tmp_path) as command:
        wait_for_part(tmp_path)
        command.send_signal(signal.SIGINT)
        _, err = command.communicate(timeout=60)
    assert command.returncode == 130, err
    assert not list(tmp_path.glob("*copy*"))
    assert not list(tmp_path.glob(".copy*"))


def wait_for_part(folder: Path) -> None:
    """Until a command has begun to copy."""
    deadline = time.monotonic() + 30
    while not any(part.stat().st_size for part in folder.glob(".copy*/copy.db")):
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.slow
def test_a_disk_that_is_full_gives_no_half_file(tmp_path: Path) -> None:
    log_of(tmp_path / "agent.db", *["long " * 20_000] * 30)
    # What a full disk does, a limit of the size of files does for one process.
    limited = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
{START}"""
    ran = subprocess.run(
        [sys.executable, "-c", limited, "backup", "copy.db"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.returncode == 2
    assert "Log" in ran.stderr, ran.stderr
    assert not list(tmp_path.glob("*copy*"))


def test_the_command_says_what_it_made(tmp_path: Path, refold: Refold, stored: Path) -> None:
    made = refold("backup", "copy.db")
    assert made.code == 0
    assert f"{len(rows(stored))} events of 1 conversations" in made.out
    again = refold("backup", "copy.db", "--json")
    assert (again.code, again.answer["error"]) == (2, "TargetExists")
    assert refold("backup", "copy.db", "--force", "--json").answer["events"] == len(rows(stored))
    assert refold("backup", "none/copy.db").code == 2
    assert refold("backup", "copy2.db", "--db", "none.db").code == 2
    assert not (tmp_path / "copy2.db").exists()

"""Opening a log: what is refused, with which error, and that a foreign file is left as it was."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from eventsourcing.persistence import PersistenceError

import refold
from refold.application.errors import (
    LogBusy,
    LogDamaged,
    LogError,
    LogFull,
    LogGone,
    LogNotFound,
    LogNotWritable,
    NewerLog,
    NotARefoldLog,
)
from refold.infrastructure.event_store.file_format import APPLICATION_ID, FORMAT_VERSION, identify
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.sqlite.sqlite_connection import ProcessCursor
from refold.infrastructure.sqlite.sqlite_failures import translate_errors
from tests.support.log_files import execute, log_of, rows, say, words_of
from tests.support.small_disk import Mounted


def test_a_new_log_is_marked_with_its_format(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db")
    with closing(sqlite3.connect(path)) as connection:
        found = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version", "journal_mode")
        ]
    assert found == [APPLICATION_ID, FORMAT_VERSION, "wal"]


def test_a_missing_file_is_created_only_where_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with pytest.raises(LogNotFound, match="no log at"):
        SQLiteLog(path, create=False)
    assert list(tmp_path.iterdir()) == []
    SQLiteLog(path).close()
    SQLiteLog(path, create=False).close()


def test_a_missing_folder_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(LogNotFound, match="create it first"):
        SQLiteLog(tmp_path / "no" / "a.db")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(NotARefoldLog, match="is a folder"):
        SQLiteLog(tmp_path)


@pytest.mark.parametrize("content", [b"hello", b"not a database\n" * 1_000, b"\0" * 5_000])
def test_a_file_that_is_no_database_is_left_as_it_was(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(content)
    with pytest.raises(NotARefoldLog):
        SQLiteLog(path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_database_of_something_else_is_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    execute(path, "CREATE TABLE people (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(NotARefoldLog, match="another program"):
        SQLiteLog(path)
    assert path.read_bytes() == before


class Interrupted(sqlite3.Connection):
    """A connection between whose first two statements another process creates the log."""

    done = False

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        rows = super().execute(sql, parameters)
        if not Interrupted.done:
            found = rows.fetchall()
            Interrupted.done = True
            path = next(super().execute("PRAGMA database_list"))[2]
            SQLiteLog(path).close()
            marks = ",".join("?" * len(found[0]))
            return super().execute(f"SELECT {marks}", found[0])
        return rows


def test_a_log_that_is_created_meanwhile_is_not_taken_for_something_else(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path, factory=Interrupted)) as connection:
        identify(connection, str(path))
    assert Interrupted.done


def test_a_log_of_a_newer_format_is_left_as_it_was(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", "one")
    execute(path, f"PRAGMA user_version={FORMAT_VERSION + 1}")
    before = path.read_bytes()
    with pytest.raises(NewerLog, match="install a newer refold"):
        SQLiteLog(path)
    assert path.read_bytes() == before


def test_a_log_whose_pages_are_torn_is_damaged_and_not_foreign(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", *["word " * 200] * 40)
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + b"\xa5" * (len(whole) - 8192))
    with pytest.raises(LogError) as caught:
        words_of(SQLiteLog(path))
    assert isinstance(caught.value, LogDamaged)


def test_a_name_with_odd_characters_is_a_name(tmp_path: Path) -> None:
    path = log_of(tmp_path / "日志 #1?mode=ro&x%20.db", "one")
    assert path.exists()
    log = SQLiteLog(path, create=False)
    assert words_of(log) == ["one"]
    log.close()


def test_a_relative_path_stays_where_it_was_when_the_folder_changes(tmp_path: Path) -> None:
    here = Path.cwd()
    (tmp_path / "elsewhere").mkdir()
    try:
        os.chdir(tmp_path)
        log = SQLiteLog("a.db")
        os.chdir("elsewhere")
        say(log, "one")
        assert words_of(log) == ["one"]
        log.close()
    finally:
        os.chdir(here)
    assert sorted(p.name for p in (tmp_path / "elsewhere").iterdir()) == []


def test_closing_twice_is_fine(tmp_path: Path) -> None:
    log = SQLiteLog(tmp_path / "a.db")
    say(log, "one")
    log.close()
    log.close()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Mounted]:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    mounted = Mounted(tmp_path / "disk")
    yield mounted
    mounted.unmount()


def test_a_full_disk_is_told_and_nothing_acknowledged_is_lost(disk: Mounted) -> None:
    path = log_of(disk.place / "a.db", "one", "two")
    log = SQLiteLog(path)
    ballast = disk.fill()
    said: list[str] = []

    def talk_on() -> None:
        for number in range(1_000):
            word = f"{number}" + "x" * 20_000
            say(log, word)
            said.append(word)

    with pytest.raises(LogFull, match="free some space"):
        talk_on()
    assert words_of(log) == ["one", "two", *said]
    ballast.unlink()
    say(log, "three")
    assert words_of(log) == ["one", "two", *said, "three"]
    log.close()
    again = SQLiteLog(path)
    assert words_of(again) == ["one", "two", *said, "three"]
    assert list(again.check()) == []
    again.close()


def test_a_log_cannot_be_created_on_a_full_disk(disk: Mounted) -> None:
    disk.fill()
    with pytest.raises(LogFull):
        SQLiteLog(disk.place / "a.db")


def test_a_disk_that_became_read_only_is_told(disk: Mounted) -> None:
    path = log_of(disk.place / "a.db", "one")
    disk.run("mount", "-o", "remount,ro", str(disk.place))
    with pytest.raises(LogNotWritable, match="check its permissions"):
        say(SQLiteLog(path), "two")
    with pytest.raises(LogNotWritable):
        SQLiteLog(disk.place / "b.db")
    disk.run("mount", "-o", "remount,rw", str(disk.place))
    log = SQLiteLog(path)
    assert words_of(log) == ["one"]
    log.close()


def test_a_file_of_another_user_is_told(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("permissions do not hold root back")
    path = log_of(tmp_path / "a.db", "one")
    path.chmod(0o400)
    with pytest.raises(LogNotWritable):
        say(SQLiteLog(path), "two")


def test_a_log_that_may_not_grow_is_full_and_keeps_what_it_has(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", "one")
    log = SQLiteLog(path)
    with log._datastore.transaction(commit=False) as cursor:  # pyright: ignore[reportPrivateUsage]
        cursor.execute("PRAGMA max_page_count=1")
    with pytest.raises(LogFull):
        say(log, "x" * 100_000)
    assert words_of(log) == ["one"]
    assert len(rows(path)) == 1
    log.close()


def sqlite_error(name: str) -> sqlite3.Error:
    """An error as SQLite's driver raises it."""
    error = sqlite3.OperationalError("a full, locked and readonly text that says nothing")
    error.sqlite_errorname = name
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (sqlite_error("SQLITE_FULL"), LogFull),
        (OSError(28, "No space left on device", "/x/a.db.lock"), LogFull),
        (sqlite_error("SQLITE_READONLY_DBMOVED"), LogGone),
        (sqlite_error("SQLITE_CANTOPEN"), LogNotWritable),
        (PermissionError(13, "Permission denied", "/x/full/busy.lock"), LogNotWritable),
        (OSError(30, "Read-only file system", "/x/a.db.lock"), LogNotWritable),
        (sqlite_error("SQLITE_BUSY"), LogBusy),
        (sqlite_error("SQLITE_NOTADB"), NotARefoldLog),
        (sqlite_error("SQLITE_CORRUPT"), LogDamaged),
        (sqlite_error("SQLITE_ERROR"), LogError),
        (IsADirectoryError(21, "Is a directory", "/x/full/a.db.lock"), LogError),
    ],
    ids=lambda v: getattr(v, "sqlite_errorname", str(v)[:40]),
)
def test_errors_from_below_become_errors_of_the_log(error: Exception, kind: type[LogError]) -> None:
    with pytest.raises(LogError) as caught, translate_errors(Path("/x/full/a.db")):
        raise PersistenceError("the library below") from error
    assert type(caught.value) is kind
    assert str(caught.value)


def test_a_log_is_written_through_a_link(tmp_path: Path) -> None:
    folder = tmp_path / "real"
    folder.mkdir()
    link = tmp_path / "link.db"
    with refold.open(folder / "a.db") as memory:
        memory.conversation("t").append({"role": "user", "content": "one"})
        link.symlink_to(folder / "a.db")
        with refold.open(link) as linked:
            linked.conversation("t").append({"role": "user", "content": "two"})
        assert len(memory.conversation("t").messages()) == 2
    with refold.open(link) as linked:
        assert len(linked.conversation("t").messages()) == 2
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["link.db"]


def test_the_first_append_of_a_new_log_is_one_transaction_that_creates_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: list[str] = []
    execute = ProcessCursor.execute

    def note(cursor: ProcessCursor, sql: str, parameters: Any = (), /) -> ProcessCursor:
        run.append(sql.split()[0])
        return execute(cursor, sql, parameters)

    monkeypatch.setattr(ProcessCursor, "execute", note)
    with closing(SQLiteLog(tmp_path / "a.db")) as log:
        files = {path.name for path in tmp_path.iterdir()}
        run.clear()
        say(log, "one")
        assert run == ["BEGIN", "INSERT", "SELECT"]
        assert {path.name for path in tmp_path.iterdir()} == files
        run.clear()
        say(log, "two", thread_id="another")
        assert run == ["BEGIN", "INSERT", "SELECT", "SELECT"]


def test_a_log_with_two_names_is_opened_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = log_of(tmp_path / "a.db", "one")
    SQLiteLog(path).close()
    assert "more than one name" not in caplog.text
    (tmp_path / "b.db").hardlink_to(path)
    log = SQLiteLog(path)
    assert words_of(log) == ["one"]
    log.close()
    assert "more than one name" in caplog.text


@pytest.mark.parametrize("is_closed_before", [False, True])
def test_a_log_that_is_open_under_another_name_is_refused_with_that_name(
    tmp_path: Path, *, is_closed_before: bool
) -> None:
    path, link = tmp_path / "a.db", tmp_path / "b.db"
    first = SQLiteLog(path)
    say(first, "one")
    if is_closed_before:
        first.close()
    link.hardlink_to(path)
    if is_closed_before:
        first = SQLiteLog(path)
    with pytest.raises(LogError, match=r"b\.db is open in this process as .*a\.db"):
        SQLiteLog(link)
    SQLiteLog(path).close()
    say(first, "two")
    first.close()
    with closing(SQLiteLog(link)) as log:
        assert words_of(log) == ["one", "two"]

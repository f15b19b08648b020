"""Two versions of refold on one file: typed errors, and nothing is lost."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from refold.application.errors import NewerLog
from refold.infrastructure.event_store.file_format import FORMAT_VERSION, identify
from refold.infrastructure.event_store.store import SQLiteLog
from tests.support.golden_files import golden_text
from tests.support.golden_log import from_sql
from tests.support.log_files import execute, log_of, rows, say, words_of

ROOT = Path(__file__).resolve().parents[2]

OLDER = """
import sys
from pathlib import Path
from refold.infrastructure.event_store import file_format
file_format.FORMAT_VERSION = 1
from refold.application.errors import LogError
from refold.infrastructure.event_store.store import SQLiteLog
from tests.support.log_files import say, words_of
try:
    log = SQLiteLog(Path(sys.argv[1]))
    for line in sys.stdin:
        say(log, line.strip())
        print("said", flush=True)
    log.close()
except LogError as error:
    print(type(error).__name__, error, flush=True)
"""


def older_refold(path: Path) -> subprocess.Popen[str]:
    """A process that knows format 1 only, and says what it reads."""
    return subprocess.Popen(
        [sys.executable, "-c", OLDER, str(path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def format_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


@pytest.mark.parametrize("name", ["log-1", "log-2"])
def test_a_log_of_format_1_is_raised_and_no_row_of_it_changes(tmp_path: Path, name: str) -> None:
    path = from_sql(golden_text(f"{name}.sql"), tmp_path / "a.db")
    before = (rows(path), rows(path, "stored_snapshots"))
    assert format_of(path) == 1
    log = SQLiteLog(path)
    assert list(log.check()) == []
    log.close()
    assert format_of(path) == FORMAT_VERSION
    assert (rows(path), rows(path, "stored_snapshots")) == before


def test_an_older_refold_is_told_that_the_log_is_newer(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", "one")
    before = path.read_bytes()
    printed, _ = older_refold(path).communicate("two\n", timeout=60)
    assert printed.startswith("NewerLog")
    assert "install a newer refold" in printed
    assert path.read_bytes() == before


@pytest.mark.slow
def test_an_older_refold_that_has_the_log_open_loses_nothing_when_it_is_raised(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    older = older_refold(path)
    assert older.stdin is not None
    assert older.stdout is not None
    older.stdin.write("one\n")
    older.stdin.flush()
    assert older.stdout.readline() == "said\n"
    assert format_of(path) == 1
    log = SQLiteLog(path)
    assert format_of(path) == FORMAT_VERSION
    say(log, "two")
    printed, _ = older.communicate("three\n", timeout=60)
    assert older.returncode == 0
    say(log, "four")
    # What it was told was stored is there; else it was told why not.
    third = ["three"] if printed == "said\n" else []
    assert third or printed.startswith("NewerLog")
    assert words_of(log) == ["one", "two", *third, "four"]
    assert list(log.check()) == []
    log.close()


def test_a_log_that_is_raised_further_meanwhile_is_not_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refold.infrastructure.event_store import file_format

    path = log_of(tmp_path / "a.db", "one")
    execute(path, "PRAGMA user_version=1")
    asked: list[bool] = []

    def overtaken(connection: sqlite3.Connection, name: str) -> bool:
        if asked:
            return identify(connection, name)
        asked.append(identify(connection, name))
        execute(path, f"PRAGMA user_version={FORMAT_VERSION + 1}")
        return asked[0]

    monkeypatch.setattr(file_format, "identify", overtaken)
    with pytest.raises(NewerLog):
        SQLiteLog(path)
    assert format_of(path) == FORMAT_VERSION + 1

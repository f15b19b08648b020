"""A log on a server that an earlier version stored: its rows give the same events for ever."""

import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import psycopg

import refold
from tests.support.golden_files import golden_text
from tests.support.golden_log import from_sql
from tests.support.postgres import wheel_programs

SOURCE = Path(__file__).with_name("log-1.sql")
_TOKEN = re.compile(r"^\\(un)?restrict .*$", re.MULTILINE)
"""Lines for psql alone, with a random word."""


def dumped(place: str, file: Path) -> str:
    """Return the SQL that makes a log again that was copied from the kept file."""
    refold.copy_log(file, place)
    program, *words = wheel_programs().words("pg_dump")
    options = ("--inserts", "--no-owner", "--no-unlogged-table-data")
    done = subprocess.run(
        [program, *words, *options, "-d", place], check=True, capture_output=True, text=True
    )
    return _TOKEN.sub("", done.stdout)


def rows(file: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        query = "SELECT * FROM stored_events ORDER BY rowid"
        return connection.execute(query).fetchall()


def test_a_log_that_was_stored_on_a_server_gives_the_events_that_it_was_made_of(
    tmp_path: Path, database: str
) -> None:
    source = from_sql(SOURCE.read_text("utf-8"), tmp_path / "source.db")
    script = golden_text("postgres-1.sql", lambda: dumped(database, source))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS refold CASCADE")
        connection.execute(script.encode())
    refold.copy_log(database, tmp_path / "again.db")
    assert rows(tmp_path / "again.db") == rows(source)
    with refold.open(database) as memory, refold.open(source) as before:
        threads = [one.thread_id for one in before.conversations()]
        assert [one.thread_id for one in memory.conversations()] == threads
        for thread_id in threads:
            there, here = before.conversation(thread_id), memory.conversation(thread_id)
            assert here.messages() == there.messages()
        assert memory.verify().ok

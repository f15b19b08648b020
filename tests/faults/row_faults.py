"""Faults of single cells and rows of a derived file, made by SQL: pages stay whole, and only their content is wrong."""

import random
import sqlite3
from pathlib import Path

from .children import run_apart

VALUES = (None, 0, -1, 7, 1.5, "", "7", "another text", b"", b"\x00\xff\xfe")


def strike_row(folder: Path, word: str, draw: random.Random) -> str:
    """Change, delete or double a row of a table of ``agent.WORD.db``, drawn by chance."""
    path = folder / f"agent.{word}.db"
    ended = run_apart(lambda: _struck(path, draw))
    return str(ended.answer or f"nothing: {ended.err.strip()[-200:]}")


def _struck(path: Path, draw: random.Random) -> str:
    # Never closed, so that the WAL stays.
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    tables = [
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        if connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
    ]
    for _ in range(20):
        table = draw.choice(sorted(tables))
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
        names = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")') if row[5]]
        row_name = " AND ".join(f'"{n}" = ?' for n in names) or "rowid = ?"
        wanted = ", ".join(f'"{n}"' for n in names) or "rowid"
        try:
            row = draw.choice(connection.execute(f'SELECT {wanted} FROM "{table}"').fetchall())
            return _changed(connection, table, draw.choice(columns), (row_name, row), draw)
        except sqlite3.Error:
            continue
    return "nothing: no row could be changed"


def _changed(
    connection: sqlite3.Connection,
    table: str,
    column: str,
    row: tuple[str, tuple[object, ...]],
    draw: random.Random,
) -> str:
    where, names = row
    if draw.random() < 0.25:
        count = connection.execute(f'DELETE FROM "{table}" WHERE {where}', names).rowcount
        return f"{count} rows deleted from {table}: {names}"
    value = draw.choice(VALUES)
    change = f'UPDATE "{table}" SET "{column}" = ? WHERE {where}'
    count = connection.execute(change, (value, *names)).rowcount
    return f"{table}.{column} = {value!r} in {count} rows: {names}"

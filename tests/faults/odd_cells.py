"""Every column of every table of a store, with values that cannot be: nothing is raised but errors of the log.

python -m tests.faults.odd_cells            # every column, value and command
python -m tests.faults.odd_cells --every 9  # a sample
"""

import argparse
import collections
import itertools
import logging
import shutil
import sqlite3
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import refold
from refold.domain.errors import RefoldError

from .derived_bits import ERASED, FILES, LOG, READING, SECRET_AT, make_store, opened

VALUES: Mapping[str, object] = {
    "NULL": None,
    "an integer": 7,
    "a negative one": -(2**63),
    "a huge one": 2**63 - 1,
    "a real": 0.5,
    "infinity": float("inf"),
    "a text": "seven",
    "a long text": "seven " * 40_000,
    "a blob": b"\xff\xfe\x00\x01",
    "an empty blob": b"",
}
BYTES = "bytes that are no text"
RIGHT, REFUSED = "right", "refused with an error of refold"
UNTYPED, WRONG, LEFT = "AN ERROR OF SOMETHING ELSE", "WRONG AND SILENT", "ERASED TEXT IS LEFT"
Command = Callable[[refold.Memory], object]


class Odd(NamedTuple):
    """A value that is put into a column of all rows, or of the first one."""

    file: str
    table: str
    column: str
    value: str
    rows: str


class Outcome(NamedTuple):
    """What a command gave afterwards."""

    odd: Odd
    command: str
    kind: str
    detail: str = ""


def _append(memory: refold.Memory) -> object:
    return memory.conversation("one").append(
        {"role": "user", "content": "and one more"}, key="more"
    )


def _salvage(memory: refold.Memory) -> object:
    with tempfile.TemporaryDirectory() as folder:
        return memory.salvage(Path(folder) / "saved.db")


def _backup(memory: refold.Memory) -> object:
    with tempfile.TemporaryDirectory() as folder:
        return memory.backup(Path(folder) / "copy.db")


def _ask(memory: refold.Memory) -> object:
    return {name: read(memory) for name, read in READING.items()}


COMMANDS: Mapping[str, Command] = {
    "ask": _ask,
    "verify": lambda memory: memory.verify(),
    "repair": lambda memory: (memory.verify(repair=True), _ask(memory))[1],
    "erase": lambda memory: memory.conversation("one").erase(SECRET_AT),
    "append": _append,
    "salvage": _salvage,
    "list": lambda memory: memory.conversations(),
}
OF_LOG: Mapping[str, Command] = {
    **COMMANDS,
    "context": lambda memory: memory.conversation("one").context().messages,
    "backup": _backup,
    "stats": lambda memory: memory.stats(),
    "compress": lambda memory: memory.compress(),
    "fork": lambda memory: memory.conversation("one").fork(thread_id="copy"),
    "anchor": lambda memory: memory.anchor(accept=True),
    "replay": lambda memory: memory.replay(),
}


def odd_cells(store: Path) -> Iterator[Odd]:
    """Everything that can be put in."""
    for file in (LOG, *FILES):
        with closing(sqlite3.connect(store / file)) as connection:
            tables = connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
            ).fetchall()
            for (table,) in tables:
                for _, column, *_ in connection.execute(f"PRAGMA table_info({table})").fetchall():
                    for value, rows in itertools.product((*VALUES, BYTES), ("first", "all")):
                        yield Odd(file, table, column, value, rows)


def put(path: Path, odd: Odd) -> bool:
    """Put the value in, past all that the database itself would check; whether anything was."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        connection.execute("PRAGMA writable_schema=ON")
        before = connection.execute("SELECT name, sql FROM sqlite_schema").fetchall()
        version = connection.execute("PRAGMA schema_version").fetchone()[0]
        # Without types, without NOT NULL, and without its other name for the number of the row.
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(replace(replace(sql, 'NOT NULL', ''), "
            "') STRICT, WITHOUT ROWID', ') WITHOUT ROWID'), ') STRICT', ')') WHERE name = ?",
            (odd.table,),
        )
        connection.execute(f"PRAGMA schema_version={version + 1}")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        try:
            changed = _update(connection, odd)
        except sqlite3.Error:
            changed = False
        connection.execute("PRAGMA writable_schema=ON")
        for name, sql in before:
            connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (sql, name))
        connection.execute(f"PRAGMA schema_version={version}")
    return changed


def _update(connection: sqlite3.Connection, odd: Odd) -> bool:
    where = f" WHERE {odd.column} IS (SELECT {odd.column} FROM {odd.table} LIMIT 1)"
    value = "CAST(x'fffe41' AS TEXT)" if odd.value == BYTES else "?"
    values = () if odd.value == BYTES else (VALUES[odd.value],)
    statement = f"UPDATE OR IGNORE {odd.table} SET {odd.column} = {value}"
    done = connection.execute(statement + (where if odd.rows == "first" else ""), values)
    return done.rowcount > 0


class Judge:
    """Gives a command after a value was put in."""

    def __init__(self, store: Path, folder: Path) -> None:
        self.store = store
        with opened(Path(shutil.copytree(store, folder / "whole"))) as memory:
            self.right = _ask(memory)

    def outcome(self, odd: Odd, command: str, folder: Path) -> Outcome | None:
        """What it gave; None if the value could not be put in."""
        copy = Path(shutil.copytree(self.store, folder / "copy"))
        try:
            if not put(copy / odd.file, odd):
                return None
            return Outcome(odd, command, *self._judged(copy, odd, command))
        finally:
            shutil.rmtree(copy)

    def _judged(self, copy: Path, odd: Odd, command: str) -> tuple[str, str]:
        is_of_log = odd.file == LOG
        try:
            with opened(copy) as memory:
                found = OF_LOG[command](memory)
        except RefoldError as error:
            return (REFUSED if is_of_log else WRONG), repr(error)
        except Exception as error:  # Whatever it is: it is what is looked for.
            return UNTYPED, f"{error!r} at {_place_of(error)}"
        if is_of_log:
            return RIGHT, ""
        if command in ("ask", "repair") and found != self.right:
            return WRONG, f"{found}"[:300]
        if command == "erase":
            left = [file.name for file in copy.iterdir() if ERASED in file.read_bytes()]
            return (LEFT, ", ".join(left)) if left else (RIGHT, "")
        return RIGHT, ""


def _place_of(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [
        frame
        for frame in frames
        if "infrastructure" in frame.filename or "application" in frame.filename
    ]
    return f"{ours[-1].filename.rpartition('src/refold/')[2]}:{ours[-1].lineno}" if ours else "?"


def run(wanted: Sequence[tuple[Odd, str]], store: Path, folder: Path) -> Iterator[Outcome]:
    """What each of them gave."""
    logging.disable(logging.CRITICAL)
    try:
        judge = Judge(store, folder)
        for odd, command in wanted:
            if (outcome := judge.outcome(odd, command, folder)) is not None:
                yield outcome
    finally:
        logging.disable(logging.NOTSET)


def every(store: Path, step: int) -> list[tuple[Odd, str]]:
    """Every so-manieth pair of a value and a command."""
    pairs = [
        (odd, command)
        for odd in odd_cells(store)
        for command in (OF_LOG if odd.file == LOG else COMMANDS)
    ]
    return pairs[::step]


def main() -> int:
    """Print what came of it; the exit code says whether anything was bad."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--file", help="only of this one")
    given = parser.parse_args()
    counts = collections.Counter[tuple[str, str]]()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        store = make_store(Path(name))
        wanted = [pair for pair in every(store, given.every) if given.file in (None, pair[0].file)]
        print(f"{len(wanted)} values and commands", flush=True)
        for outcome in run(wanted, store, Path(name)):
            counts[outcome.odd.file, outcome.kind] += 1
            if outcome.kind not in (RIGHT, REFUSED):
                print(outcome, flush=True)
    for (file, kind), count in sorted(counts.items()):
        print(f"{file:18} {kind:34} {count:7}")
    return 1 if {kind for _, kind in counts} - {RIGHT, REFUSED} else 0


if __name__ == "__main__":
    raise SystemExit(main())

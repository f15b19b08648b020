"""The one way to a connection of SQLite: nothing temporary reaches a file, and nothing outlives a fork."""

import os
import sqlite3
import weakref
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from refold.application.runtime.opening_process import OpeningProcess, prevent_destruction
from refold.infrastructure.files.fork_gate import GATE, OpenFile

Isolation = Literal["DEFERRED", "EXCLUSIVE", "IMMEDIATE"] | None
CURSORS = 32
"""So many cursors are remembered before those that are gone are looked for."""


def open_sqlite(
    place: str | Path,
    *,
    timeout: float = 5.0,
    isolation_level: Isolation = "DEFERRED",
    check_same_thread: bool = True,
    uri: bool = False,
    kept: bool = False,
    of: Path | None = None,
) -> sqlite3.Connection:
    """Open a database as ``sqlite3.connect`` does, with everything temporary in memory.

    SQLite sorts, keeps the pages of a statement that it may undo, and makes tables for itself in files
    of the system's temporary folder. They are deleted at once, but their blocks are not overwritten:
    what an encrypted log says would lie there in plain text, and what was erased would stay. A database
    without a name lies there as well: one that is needed for a while is ``:memory:``.

    ``kept``: whether it is held open while it is idle, by somebody whom ``GATE`` asks to close it before
    a fork; a fork waits for any other to be closed. ``of``: the log that the file was made from.

    Raises:
        OpenedBeforeFork: the file was open when this process was forked.
        sqlite3.Error: it cannot be opened.
    """
    path = _path_of(place, uri=uri)
    with GATE.used():
        # What is kept in memory is used in turns that are known, and never closed before a fork.
        file = None if path is None and kept else GATE.opening(path, of, kept=kept)
        with _noted(file):
            connection = sqlite3.connect(
                place,
                timeout=timeout,
                isolation_level=isolation_level,
                check_same_thread=check_same_thread,
                uri=uri,
                factory=ProcessConnection,
            )
        connection.file = file
        connection.execute("PRAGMA temp_store=MEMORY")
    return connection


@contextmanager
def _noted(file: OpenFile | None) -> Generator[None]:
    """Note that nothing was opened, where it cannot be."""
    try:
        yield
    except BaseException:
        if file is not None:
            GATE.closed(file)
        raise


def _path_of(place: str | Path, *, uri: bool) -> Path | None:
    """The file that is meant; None for a database in memory."""
    text = str(place)
    if text == ":memory:" or (uri and "mode=memory" in text):
        return None
    is_uri = uri and text.startswith("file:")
    return Path(unquote(urlsplit(text).path)) if is_uri else Path(text)


class ProcessCursor(sqlite3.Cursor):
    """A cursor that runs nothing in a forked process."""

    process: OpeningProcess

    def execute(self, sql: str, parameters: Any = (), /) -> "ProcessCursor":
        """As in the library."""
        self.process.check()
        super().execute(sql, parameters)
        return self

    def executemany(self, sql: str, seq_of_parameters: Iterable[Any], /) -> "ProcessCursor":
        """As in the library."""
        self.process.check()
        super().executemany(sql, seq_of_parameters)
        return self

    def executescript(self, sql_script: str, /) -> "ProcessCursor":
        """As in the library."""
        self.process.check()
        super().executescript(sql_script)
        return self

    def close(self) -> None:
        """Close, in the process that it belongs to."""
        if self.process.is_this:
            super().close()


class ProcessConnection(sqlite3.Connection):
    """A connection of one process. In one that is forked from it, it runs nothing and is never closed:
    closing would write to files of the process that it belongs to, and delete some.
    """

    file: OpenFile | None = None
    """Noted in ``GATE`` while it is open."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.process = OpeningProcess(f"{args[0]}")
        self._pid = os.getpid()
        self._is_closed = False
        self._is_let_go = False
        """Whether it is to be closed by whoever uses it last."""
        self._cursors: list[weakref.ref[sqlite3.Cursor]] = []
        super().__init__(*args, **options)

    def cursor(self, factory: Any = ProcessCursor) -> Any:
        """As in the library."""
        self.process.check()
        made: Any = super().cursor(factory)
        made.process = self.process
        if len(self._cursors) >= CURSORS:
            self._cursors = [one for one in self._cursors if one() is not None]
        self._cursors.append(weakref.ref(made))
        return made

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """As in the library."""
        made: sqlite3.Cursor = self.cursor()
        return made.execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        """As in the library."""
        made: sqlite3.Cursor = self.cursor()
        return made.executemany(sql, parameters)

    def executescript(self, sql_script: str, /) -> sqlite3.Cursor:
        """As in the library."""
        made: sqlite3.Cursor = self.cursor()
        return made.executescript(sql_script)

    def commit(self) -> None:
        """As in the library."""
        self.process.check()
        super().commit()

    def rollback(self) -> None:
        """As in the library; nothing in a forked process."""
        if self.process.is_this:
            super().rollback()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> Literal[False]:
        if self.process.is_this:
            super().__exit__(kind, error, trace)
        return False

    def close(self) -> None:
        """Close, in the process that it belongs to; a cursor would keep the file open.

        While another thread runs a statement, closing would crash Python: then it is closed when that
        thread has let go of it.
        """
        if not self.process.is_this:
            return
        for one in self._cursors:
            if (cursor := one()) is not None:
                try:
                    cursor.close()
                except sqlite3.ProgrammingError:
                    self._is_let_go = True
                    return
        super().close()
        self._is_closed = True
        file, self.file = self.file, None
        if file is not None:
            GATE.closed(file)

    def __del__(
        self,
        getpid: Callable[[], int] = os.getpid,
        keep: Callable[[object], None] = prevent_destruction,
        closed: Callable[[OpenFile], None] = GATE.closed,
    ) -> None:
        """Live for ever in a forked process. All that is needed is at hand while Python takes itself down."""
        if getpid() != self._pid and not self._is_closed:
            keep(self)
            return
        finish = getattr(super(), "__del__", None)
        if finish is not None and not self._is_let_go:  # It warns of what nobody has closed.
            finish()
        try:
            self.close()
        except (
            Exception
        ):  # It belongs to another thread, or Python is half gone: the library closes it.
            if self.file is not None:
                closed(self.file)


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str) -> Generator[None]:
    """All of what is done inside, or nothing."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")

"""The tables of followers: in an SQLite file, or where a projection of ``eventsourcing`` keeps them."""

import json
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refold.application.ports.follower_store import FollowerStore, FollowerTables, Reached
from refold.domain.errors import InvalidSetting, RefoldError
from refold.infrastructure.event_store.file_format import APPLICATION_ID
from refold.infrastructure.files.log_place import MEMORY, is_address, require_psycopg
from refold.infrastructure.files.private_files import make_private
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite, transaction
from refold.infrastructure.sqlite.sqlite_failures import as_log_error, kind_of

from .ownership import MARKS

if TYPE_CHECKING:
    from eventsourcing.persistence import TrackingRecorder
    from eventsourcing.projection import Projection

    from refold.application.api.followed_events import Fold, FollowedEvent

TABLE = "refold_followers"
_CREATE = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (
    name TEXT PRIMARY KEY, version INTEGER NOT NULL, position INTEGER NOT NULL, mark TEXT NOT NULL,
    origin TEXT NOT NULL, read_from INTEGER NOT NULL, objects TEXT NOT NULL
) STRICT
"""
_STORE = f"INSERT OR REPLACE INTO {TABLE} VALUES (?, ?, ?, ?, ?, ?, ?)"
_REACHED = f"SELECT version, position, mark, origin, read_from FROM {TABLE} WHERE name = ?"
_OBJECTS = f"SELECT objects FROM {TABLE} WHERE name = ?"
_EXISTS = f"SELECT count(*) FROM sqlite_schema WHERE name = '{TABLE}'"
_MARK = "SELECT application_id FROM pragma_application_id"
_DECLARED = "SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'view')"
_CHANGES = frozenset(
    {
        sqlite3.SQLITE_INSERT,
        sqlite3.SQLITE_UPDATE,
        sqlite3.SQLITE_DELETE,
        sqlite3.SQLITE_DROP_TABLE,
        sqlite3.SQLITE_DROP_VIEW,
    }
)
READER_PATIENCE_MS = 5_000
"""Milliseconds to wait for readers of the write-ahead log."""
PATIENCE = 30.0
"""Seconds to wait for another process that fills the same file."""


def follower_parts(
    name: str, version: int, fold: "Fold | Projection[TrackingRecorder]", into: object
) -> tuple[FollowerStore, "Fold"]:
    """Return the store of a follower, and the function that folds an event into it.

    Raises:
        InvalidSetting: ``into`` is no place for tables, or is missing for a function.
    """
    if not callable(fold):
        if into is not None:
            raise InvalidSetting(
                "into: a projection of eventsourcing has a view of its own; leave into out",
                setting="into",
            )
        store = ProjectionStore(name, version, fold)
        return store, store.fold
    if is_address(into):
        require_psycopg()
        from refold.infrastructure.postgres.follower_schema import ServerTables

        return ServerTables(name, str(into)), fold
    if not isinstance(into, str | Path) or str(into).strip() in ("", MEMORY):
        raise InvalidSetting(
            f"into: must be the path of an SQLite file or an address of PostgreSQL, not {into!r:.60}",
            setting="into",
            value=into,
        )
    return FileTables(name, Path(into).absolute()), fold


class FileTables:
    """The tables of one follower in an SQLite file, which may have other tables."""

    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._path = path

    @property
    def place(self) -> str:
        """Path of the file."""
        return str(self._path)

    def reached(self) -> Reached | None:
        """Return the place that was reached."""
        if not self._path.exists():
            return None
        with self._errors(), closing(open_sqlite(self._path, isolation_level=None)) as connection:
            if not connection.execute(_EXISTS).fetchone()[0]:
                return None
            return _reached(connection, self._name)

    @contextmanager
    def transaction(self) -> Generator[FollowerTables]:
        """Run a transaction in the file, which is created if it is missing."""
        from sqlite_utils import Database

        with self._errors(), self._open() as connection:
            if connection.execute(_MARK).fetchone()[0] in (APPLICATION_ID, *MARKS.values()):
                raise InvalidSetting(
                    f"into: {self._path} is a log of refold or derived from one; give another file",
                    setting="into",
                )
            # Without the plugins that a user may have installed.
            handle = Database(connection, execute_plugins=False)
            with transaction(connection, "IMMEDIATE"):
                connection.execute(_CREATE)
                yield _OpenFile(self._name, connection, handle)

    def forget(self) -> bool:
        """Empty the write-ahead log, and return whether no reader prevents it.

        Deleted rows are overwritten in the file already.
        """
        with self._errors(), self._open() as connection:
            connection.execute(f"PRAGMA busy_timeout={READER_PATIENCE_MS}")
            ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return not busy

    def close(self) -> None:
        """Do nothing: the file is closed after each transaction."""

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        if not self._path.parent.is_dir() or self._path.is_dir():
            wrong = "is a folder" if self._path.is_dir() else "is in a folder that does not exist"
            raise InvalidSetting(
                f"into: {self._path} {wrong}; give the path of a file in an existing folder",
                setting="into",
                value=self._path,
            )
        is_new = make_private(self._path)
        opened = open_sqlite(
            self._path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        with closing(opened) as connection:
            connection.execute("PRAGMA secure_delete=ON")
            if is_new:
                _use_write_ahead_log(connection)
            yield connection

    @contextmanager
    def _errors(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if kind_of(error) == "SQLITE_NOTADB":
                raise InvalidSetting(
                    f"into: {self._path} is not an SQLite file; give another path", setting="into"
                ) from error
            raise as_log_error(self._path, error) from error


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch a new file to a write-ahead log. SQLite itself does not wait for other connections here."""
    from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

    trying = Retrying(
        retry=retry_if_exception(lambda error: kind_of(error) == "SQLITE_BUSY"),
        stop=stop_after_delay(PATIENCE),
        wait=wait_fixed(0.02),
        reraise=True,
    )
    trying(connection.execute, "PRAGMA journal_mode=WAL")


def _reached(connection: sqlite3.Connection, name: str) -> Reached | None:
    row = connection.execute(_REACHED, (name,)).fetchone()
    return None if row is None else Reached(*row)


class _OpenFile:
    """The tables of a follower in an open transaction."""

    def __init__(self, name: str, connection: sqlite3.Connection, handle: Any) -> None:
        self.handle = handle
        self._name = name
        self._connection = connection
        self._before = self._declared()
        self._foreign = {name for _, name in self._before - {*self._own()}} - {TABLE}
        self.problem = ""
        connection.set_authorizer(self._authorise)

    def _authorise(self, action: int, name: str | None, *_: object) -> int:
        """Refuse a change of a table that is not the follower's own."""
        if action in _CHANGES and name in self._foreign:
            self.problem = (
                f"the table {name} is that of another follower or program, so use another name"
            )
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    def reached(self) -> Reached | None:
        """Return the place that was reached."""
        return _reached(self._connection, self._name)

    def reach(self, place: Reached) -> None:
        """Store the place, and which tables and views the fold created."""
        own = {*self._own(), *(self._declared() - self._before)} & self._declared()
        row = (self._name, *place, json.dumps(sorted(own)))
        self._connection.execute(_STORE, row)

    def clear(self) -> None:
        """Drop the tables and views that the fold created."""
        for kind, name in sorted(self._own(), key=lambda one: one[0] == "table"):
            # The tables of a virtual table are dropped with it.
            if (kind, name) in self._declared():
                self.handle[name].drop()
        self._connection.execute(f"DELETE FROM {TABLE} WHERE name = ?", (self._name,))
        self._before = self._declared()

    def check(self) -> None:
        """Check that the fold did not end the transaction."""
        if not self._connection.in_transaction:
            raise RefoldError(
                "the fold ended the transaction; leave out commit and rollback, refold commits"
            )

    def _own(self) -> Iterator[tuple[str, str]]:
        row = self._connection.execute(_OBJECTS, (self._name,)).fetchone()
        return ((kind, name) for kind, name in (json.loads(row[0]) if row else ()))

    def _declared(self) -> frozenset[tuple[str, str]]:
        return frozenset(self._connection.execute(_DECLARED).fetchall())


class ProjectionStore:
    """The view of a projection of ``eventsourcing``, which stores its tracking by itself.

    ``process_event`` gets each event with its tracking. A method ``clear`` empties the view for a rebuild, its tracking
    included.
    """

    problem = ""

    def __init__(self, name: str, version: int, projection: "Projection[TrackingRecorder]") -> None:
        self._name = name
        self._version = version
        self._projection = projection

    @property
    def place(self) -> str:
        """Name and class of the view."""
        return f"{self._name} ({type(self._projection.view).__name__})"

    def reached(self) -> Reached | None:
        """Return the place of the newest version that has tracking. Its marks are unknown."""
        view = self._projection.view
        for version in range(self._version, 0, -1):
            position = view.max_tracking_id(self._tracked(version))
            if position is not None:
                return Reached(version, position, "", "", read_from=position)
        return None

    @contextmanager
    def transaction(self) -> Generator[FollowerTables]:
        """Return the view. Each event is a transaction of its own."""
        yield self

    @property
    def handle(self) -> "Projection[TrackingRecorder]":
        """The projection."""
        return self._projection

    def reach(self, place: Reached) -> None:
        """Do nothing: the projection has stored the tracking with its event."""

    def check(self) -> None:
        """Do nothing: the projection has transactions of its own."""

    def forget(self) -> bool:
        """Return True: the view decides about its files."""
        return True

    def close(self) -> None:
        """Do nothing: whoever created the view closes it."""

    def clear(self) -> None:
        """Empty the view."""
        clear = getattr(self._projection, "clear", None)
        if clear is None:
            raise InvalidSetting(
                f"{type(self._projection).__name__} cannot be rebuilt: give it a method clear(), which empties "
                "its view and its tracking",
                setting="fold",
            )
        clear()

    def fold(self, projection: "Projection[TrackingRecorder]", event: "FollowedEvent") -> None:
        """Let the projection process an event."""
        from eventsourcing.persistence import Tracking

        projection.process_event(event, Tracking(self._tracked(self._version), event.log_position))

    def _tracked(self, version: int) -> str:
        return self._name if version == 1 else f"{self._name}.{version}"

"""The tables of a follower on a server, in a schema of their own."""

from collections.abc import Generator
from contextlib import contextmanager

from psycopg import Connection, sql
from psycopg.rows import TupleRow

from refold.application.ports.follower_store import FollowerTables, Reached
from refold.domain.errors import InvalidSetting

from .connections import Address, Store, from_text, to_text
from .failures import as_log_errors

_CREATE = """
CREATE TABLE IF NOT EXISTS {refold_follower} (
    id smallint PRIMARY KEY, version bigint NOT NULL, position bigint NOT NULL, mark text NOT NULL,
    origin text NOT NULL, read_from bigint NOT NULL
)
"""
_REACHED = "SELECT version, position, mark, origin, read_from FROM {refold_follower}"
_REACH = """
INSERT INTO {refold_follower} VALUES (1, %s, %s, %s, %s, %s) ON CONFLICT (id) DO UPDATE SET
version = EXCLUDED.version, position = EXCLUDED.position, mark = EXCLUDED.mark, origin = EXCLUDED.origin,
read_from = EXCLUDED.read_from
"""
_IS_OURS = "SELECT to_regclass(%s) IS NOT NULL, to_regnamespace(%s) IS NOT NULL"
_TABLES = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relkind = 'r'
"""
_POOL = 2


class ServerTables:
    """The tables of one follower, in the schema that has its name."""

    def __init__(self, name: str, place: str) -> None:
        self._store = Store(Address.of(place, schema=name, pool=_POOL))
        self._name = name

    @property
    def place(self) -> str:
        """Address and schema, without the password."""
        return f"{self._store.address.shown} (schema {self._name})"

    def reached(self) -> Reached | None:
        """Return the place that was reached."""
        with as_log_errors(self.place):
            is_ours, _ = self._look()
            return self._reached() if is_ours else None

    @contextmanager
    def transaction(self) -> Generator[FollowerTables]:
        """Run a transaction, in which new tables are created in the schema."""
        with as_log_errors(self.place), self._store.transaction() as connection:
            self._store.lock("follower")
            is_ours, exists = self._look()
            if exists and not is_ours:
                raise InvalidSetting(
                    f"name: {self.place} exists already and is not one of a follower; give another name",
                    setting="name",
                    value=self._name,
                )
            yield _OpenSchema(self._store, connection, is_ours=is_ours)

    def forget(self) -> bool:
        """Write each table again without its deleted rows, and return whether none stays."""
        with as_log_errors(self.place):
            self._store.wait_for_older_writers()
            names = [name for (name,) in self._store.rows(_TABLES, (self._name,))]
            return not sum([self._store.rewrite(name, has_key=False) for name in names])

    def close(self) -> None:
        """Close all connections."""
        self._store.close()

    def _look(self) -> tuple[bool, bool]:
        schema = sql.Identifier(self._name).as_string()
        ((is_ours, exists),) = self._store.rows(_IS_OURS, (f"{schema}.refold_follower", schema))
        return bool(is_ours), bool(exists)

    def _reached(self) -> Reached | None:
        return _stored_place(self._store)


def _stored_place(store: Store) -> Reached | None:
    rows = store.rows(_REACHED)
    if not rows:
        return None
    version, position, mark, origin, read_from = rows[0]
    return Reached(version, position, from_text(mark), from_text(origin), read_from)


class _OpenSchema:
    """The tables of a follower in an open transaction."""

    problem = ""

    def __init__(self, store: Store, connection: Connection[TupleRow], *, is_ours: bool) -> None:
        self.handle = connection
        self._store = store
        if not is_ours:
            self._create()
        store.use_schema()

    def reached(self) -> Reached | None:
        """Return the place that was reached."""
        return _stored_place(self._store)

    def reach(self, place: Reached) -> None:
        """Store the place that was reached."""
        version, position, mark, origin, read_from = place
        values = (version, position, to_text(mark), to_text(origin), read_from)
        self._store.run(_REACH, values)

    def clear(self) -> None:
        """Drop the schema with all that is in it, and create it again."""
        self._store.drop_schema()
        self._create()

    def check(self) -> None:
        """Do nothing: the library refuses to end the transaction within its block."""

    def _create(self) -> None:
        self._store.create_schema()
        self._store.run_script(_CREATE)

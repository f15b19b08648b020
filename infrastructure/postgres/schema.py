"""The schema of a log on a server: its tables, created and upgraded once under a lock."""

from contextlib import closing
from typing import NamedTuple

from refold.application.errors import LogNotFound, LogNotWritable, NewerLog, NotARefoldLog
from refold.domain.errors import InvalidSetting

from .connections import Address, Store
from .failures import as_log_errors
from .vector_tables import TABLES as VECTORS
from .vector_tables import add_pgvector

PARTITIONS = 16
"""Number of partitions of the keys. Erasing rewrites one."""

LOG = """
CREATE SEQUENCE {event_ids};
CREATE TABLE {stored_events} (
    id bigint NOT NULL UNIQUE DEFAULT CASE WHEN pg_current_xact_id() IS NOT NULL THEN nextval('{event_ids}') END,
    originator_id text COLLATE "C" NOT NULL,
    originator_version bigint NOT NULL,
    topic text COLLATE "C" NOT NULL,
    state bytea NOT NULL,
    PRIMARY KEY (originator_id, originator_version)
);
ALTER TABLE {stored_events} ALTER COLUMN state SET STORAGE EXTERNAL;
CREATE INDEX stored_forks ON {stored_events} (id) WHERE topic = 'conversation_forked';
CREATE TABLE {payload_keys} (
    originator_id text COLLATE "C" NOT NULL,
    originator_version bigint NOT NULL,
    key bytea NOT NULL,
    PRIMARY KEY (originator_id, originator_version)
) PARTITION BY HASH (originator_id);
CREATE TABLE {message_keys} (
    originator_id text COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    originator_version bigint NOT NULL,
    PRIMARY KEY (originator_id, digest)
);
CREATE TABLE {log_positions} (position bigint PRIMARY KEY, id bigint NOT NULL);
CREATE TABLE {numbering} (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    position bigint NOT NULL,
    last_id bigint NOT NULL
);
INSERT INTO {numbering} (position, last_id) VALUES (0, 0);
CREATE TABLE {missing_ids} (first_id bigint PRIMARY KEY, last_id bigint NOT NULL, ended_by text NOT NULL);
CREATE UNLOGGED TABLE {stored_snapshots} (
    originator_id text COLLATE "C" NOT NULL,
    originator_version bigint NOT NULL,
    topic text COLLATE "C" NOT NULL,
    state bytea NOT NULL,
    PRIMARY KEY (originator_id, originator_version)
);
ALTER TABLE {stored_snapshots} ALTER COLUMN state SET STORAGE EXTERNAL;
CREATE TABLE {pending_erasures} (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    originator_id text COLLATE "C" NOT NULL
);
CREATE TABLE {encryption_keys} (fingerprint text PRIMARY KEY);
CREATE TABLE {erased_keys_in_wal} (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    written_at pg_lsn NOT NULL,
    highest text
);
"""
"""The log. Identifiers are given at insertion, with gaps; positions are given afterwards, without.

A transaction has its number before it takes an identifier: see ``positions``.

Texts that people wrote are in ``state`` alone, sealed by the key in ``payload_keys``, and nowhere in statistics.
Snapshots are under negative versions there.
"""


class Step(NamedTuple):
    """One upgrade of the schema."""

    version: int
    oldest_code: int
    """Schema version of the oldest code that may use the upgraded schema."""
    statements: str


STEPS = (Step(1, 1, LOG + VECTORS),)
VERSION = STEPS[-1].version

_VERSIONS = """
CREATE TABLE IF NOT EXISTS {schema_versions} (
    version integer PRIMARY KEY,
    oldest_code integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""


class Found(NamedTuple):
    """The version of a schema, and that of the oldest code that may use it."""

    version: int
    oldest_code: int


_LONGEST_NAME = 63
"""Bytes of a name. The server cuts longer ones off."""
_UNUSABLE_NAME = frozenset("\"'{}%?\0")
"""Characters with a meaning in statements."""


def _refuse_unusable_name(name: str) -> None:
    if _UNUSABLE_NAME.isdisjoint(name) and len(name.encode()) <= _LONGEST_NAME:
        return
    raise InvalidSetting(
        f"postgres_schema = {name!r}: must be a name of at most {_LONGEST_NAME} bytes, without quotation marks, "
        "braces, percent signs and question marks",
        setting="postgres_schema",
        value=name,
    )


def find_version(store: Store) -> Found | None:
    """Return the version of the schema, or None if it was not created yet.

    Raises:
        InvalidSetting: the schema cannot have this name.
    """
    _refuse_unusable_name(store.address.schema)
    name = f'"{store.address.schema}".schema_versions'
    ((there,),) = store.rows("SELECT to_regclass(%s) IS NOT NULL", (name,))
    if not there:
        return None
    ((version, oldest),) = store.rows(
        "SELECT coalesce(max(version), 0), coalesce(max(oldest_code), 0) FROM {schema_versions}"
    )
    return Found(version, oldest)


def prepare_schema(store: Store, *, create: bool) -> None:
    """Create the schema, or upgrade one of an earlier version. Several processes may call this at once.

    Raises:
        LogNotFound: there is no log in this schema, and ``create`` is False.
        NewerLog: a newer refold upgraded the schema so that this one cannot use it.
        NotARefoldLog: other tables are in this schema.
        LogNotWritable: the database has an encoding that cannot store every text.
    """
    found = find_version(store)
    if found is None and not create:
        raise LogNotFound(
            f"{_shown(store.address)}: there is no log here; `refold import`, `refold db upgrade` or refold.open "
            "creates it"
        )
    _refuse_newer(store.address, found)
    if found is None or found.version < VERSION:
        upgrade(store)


def _refuse_newer(address: Address, found: Found | None) -> None:
    if found is not None and found.oldest_code > VERSION:
        raise NewerLog(
            f"{_shown(address)} has version {found.version}; install a newer refold to use it"
        )


def _shown(address: Address) -> str:
    return f"{address.shown}, schema {address.schema}"


def upgrade(store: Store) -> tuple[int, ...]:
    """Apply the missing upgrades in one transaction, and return their versions."""
    with store.transaction() as connection:
        store.lock("schema")
        if find_version(store) is None:
            _refuse_encoding(store, connection.info.parameter_status("server_encoding"))
            _refuse_other_tables(store)
            store.create_schema()
            store.run(_VERSIONS)
        found = find_version(store)
        missing = [step for step in STEPS if found is None or step.version > found.version]
        for step in missing:
            store.run_script(step.statements)
            if step.version == 1:
                _create_partitions(store)
            store.run(
                "INSERT INTO {schema_versions} (version, oldest_code) VALUES (%s, %s)",
                (step.version, step.oldest_code),
            )
    # At other times too: the extension may be installed later.
    add_pgvector(store)
    return tuple(step.version for step in missing)


class Upgraded(NamedTuple):
    """A schema that was created or upgraded."""

    shown: str
    """Address and schema, without a password."""
    before: int
    """Version of the schema before; 0 if there was none."""
    version: int
    applied: tuple[int, ...]
    """Versions of the upgrades that were applied now."""


def upgrade_schema(address: Address) -> Upgraded:
    """Create the schema at an address, or apply the upgrades that it does not have.

    Raises:
        LogError: the server cannot be used, or the schema is not suitable; see ``prepare_schema``.
    """
    store = Store(address)
    with closing(store), as_log_errors(address.shown):
        before = find_version(store)
        _refuse_newer(address, before)
        applied = upgrade(store)
        after = find_version(store)
    return Upgraded(
        _shown(address), before.version if before else 0, after.version if after else 0, applied
    )


_ENCODINGS = frozenset((None, "UTF8", "SQL_ASCII"))
"""Encodings that store every text; None if a pooler does not say."""


def _refuse_encoding(store: Store, encoding: str | None) -> None:
    if encoding not in _ENCODINGS:
        raise LogNotWritable(
            f"{store.address.shown}: the database has the encoding {encoding}, which cannot store every text; create "
            "one with createdb --encoding=UTF8 --template=template0"
        )


def _refuse_other_tables(store: Store) -> None:
    taken = store.rows(
        "SELECT tablename FROM pg_tables WHERE schemaname = %s LIMIT 1", (store.address.schema,)
    )
    if taken:
        raise NotARefoldLog(
            f"{store.address.shown}: the schema {store.address.schema} has tables of another program; set another "
            "with REFOLD_POSTGRES_SCHEMA"
        )


def partition_name(number: int) -> str:
    """Return the name of a partition of the keys."""
    return f"payload_keys_{number:02d}"


def _create_partitions(store: Store) -> None:
    for number in range(PARTITIONS):
        name = partition_name(number)
        store.run(
            f"CREATE TABLE {{{name}}} PARTITION OF {{payload_keys}} "
            f"FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {number})"
        )
    # A sample of the keys would outlive their erasure in the statistics, of the partitions as of the whole table.
    store.run("ALTER TABLE {payload_keys} ALTER COLUMN key SET STATISTICS 0")
    store.run("ALTER TABLE {stored_events} ALTER COLUMN state SET STATISTICS 0")
    store.run("ALTER TABLE {stored_snapshots} ALTER COLUMN state SET STATISTICS 0")

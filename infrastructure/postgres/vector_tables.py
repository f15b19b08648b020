"""The tables of vectors on a server, and pgvector where the server has it."""

import json
import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from eventsourcing.persistence import PersistenceError
from psycopg import sql

from refold.application.errors import EmbedderError
from refold.application.runtime.plain_lines import plain_logger

from .connections import Store, to_text
from .failures import code_of

logger = plain_logger(__name__)

TABLES = """
CREATE UNLOGGED TABLE {vector_models} (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    dimension integer NOT NULL,
    made_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNLOGGED TABLE {vectors} (
    id bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    model integer NOT NULL,
    digest text COLLATE "C" NOT NULL,
    vector bytea NOT NULL,
    checksum bigint NOT NULL,
    PRIMARY KEY (model, digest)
);
ALTER TABLE {vectors} ALTER COLUMN vector SET STORAGE EXTERNAL;
CREATE UNLOGGED TABLE {vector_prunings} (only_row boolean PRIMARY KEY DEFAULT true, number bigint NOT NULL);
ALTER TABLE {vectors} ALTER COLUMN vector SET STATISTICS 0, ALTER COLUMN digest SET STATISTICS 0;
"""
"""Vectors by model and by the digest of their text. They are a cache: a crash of the server empties the tables."""

LOCK = "vectors"
"""Purpose of the lock of everything that writes, so that numbers ascend in the order of commits."""
LOCK_TIMEOUT = "5s"
"""Time to wait for the table before it is rewritten. Its readers and writers wait as long."""
WIDEST = 16_000
"""Largest number of dimensions of the type ``halfvec``."""
WIDEST_INDEXED = 4_000
"""Largest number of dimensions that an index of ``halfvec`` takes."""
MANY = 20_000
"""Number of vectors of a model above which an index finds them faster than a comparison with each."""
_OLDEST = (0, 8)
"""First version of pgvector with the searches that are used here."""
_AT_ONCE = 1_000


class Model(NamedTuple):
    """A model that has vectors."""

    number: int
    dimension: int
    made_at: int = 0
    """Microseconds since 1970. A model that was deleted, or lost in a crash of the server, has another time later."""


class StoredVector(NamedTuple):
    """A vector and the number of its row."""

    number: int
    digest: str
    vector: bytes
    is_intact: bool


class Pgvector(NamedTuple):
    """The extension of a database. Its names are qualified, because no search path is set."""

    schema: str
    """Quoted name of its schema."""

    def half(self, dimension: int) -> str:
        """Return the type of half-precision vectors."""
        return f"{self.schema}.halfvec({dimension})"


class NearQuery(NamedTuple):
    """A search among the vectors of a model."""

    pgvector: Pgvector
    model: Model
    query: bytes
    limit: int


def find_pgvector(store: Store) -> Pgvector | None:
    """Return pgvector if it is there, or may be created, and the vectors have a column for it."""
    rows = store.rows(_EXTENSION)
    if not rows or tuple(int(part) for part in rows[0][1].split(".")[:2]) < _OLDEST:
        return None
    found = Pgvector(sql.Identifier(rows[0][0]).as_string())
    table = f'"{store.address.schema}".vectors'
    query = (
        "SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = 'half'"
    )
    ((columns,),) = store.rows(query, (table,))
    return found if columns else None


def add_pgvector(store: Store) -> Pgvector | None:
    """Create the extension and its column if they are missing and this role may. Never fail."""
    try:
        if (found := find_pgvector(store)) is not None:
            return found
        with store.transaction():
            store.lock(LOCK)
            store.run(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
            store.run("CREATE EXTENSION IF NOT EXISTS vector")
            _add_column(store)
    except PersistenceError as error:
        logger.info("the server has no pgvector for this role (SQLSTATE %s)", code_of(error))
        return None
    return find_pgvector(store)


def _add_column(store: Store) -> None:
    ((schema, _),) = store.rows(_EXTENSION)
    if not _UNUSABLE_NAME.isdisjoint(schema):
        return
    half = sql.Identifier(schema, "halfvec").as_string()
    store.run(f"{_ADD_COLUMN} {half}")
    store.run(_IN_PLACE)
    store.run(_WITHOUT_HALF)


_EXTENSION = """
SELECT n.nspname, e.extversion FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'vector'
"""
_UNUSABLE_NAME = frozenset("{}%?<>")
"""Characters with a meaning in our statements. No schema of an extension has them."""
_ADD_COLUMN = "ALTER TABLE {vectors} ADD COLUMN IF NOT EXISTS half"
# In place: reading the vectors from a side table for each comparison would take most of the time.
_IN_PLACE = """
ALTER TABLE {vectors} ALTER COLUMN half SET STORAGE MAIN, ALTER COLUMN half SET STATISTICS 0
"""
_WITHOUT_HALF = """
CREATE INDEX IF NOT EXISTS vectors_without_half ON {vectors} (model) WHERE half IS NULL
"""


def model_in(store: Store, name: str) -> Model | None:
    """Return the model with this name, or None if it has no vectors."""
    rows = store.rows(
        "SELECT number, dimension, (extract(epoch FROM made_at) * 1000000)::bigint FROM {vector_models} "
        "WHERE name = %s",
        (to_text(name),),
    )
    return Model(*rows[0]) if rows else None


def model_for(store: Store, name: str, dimension: int) -> Model:
    """Return the model with this name, and insert it if it is new.

    Raises:
        EmbedderError: ``dimension``, because its vectors have another one.
    """
    store.run(
        "INSERT INTO {vector_models} (name, dimension) VALUES (%s, %s) ON CONFLICT DO NOTHING",
        (to_text(name), dimension),
    )
    known = model_in(store, name)
    assert known is not None
    if known.dimension != dimension:
        raise EmbedderError(
            "dimension",
            f"the vectors of {name} on the server have {known.dimension} dimensions, and the embedder "
            f"now gives {dimension}: that is another model, so give it another name "
            "(embedder_model), or the next search by meaning computes all vectors again",
        )
    return known


def digests_in(store: Store, name: str, digests: Sequence[str]) -> set[str]:
    """Return those of these digests that have a vector of this model."""
    rows = store.rows(
        "SELECT v.digest FROM {vectors} v JOIN {vector_models} m ON m.number = v.model "
        "WHERE m.name = %s AND v.digest = ANY(%s)",
        (to_text(name), list(digests)),
    )
    return {digest for (digest,) in rows}


def vectors_in(store: Store, model: Model, digests: Sequence[str]) -> list[StoredVector]:
    """Return the vectors of these texts."""
    rows = store.rows(
        "SELECT id, digest, vector, checksum FROM {vectors} WHERE model = %s AND digest = ANY(%s)",
        (model.number, list(digests)),
    )
    return [stored_vector(row, model.dimension) for row in rows]


def stored_vector(row: Sequence[object], dimension: object) -> StoredVector:
    """Return the vector of a row: number, digest, bytes and checksum."""
    number, digest, vector, check = row
    assert isinstance(number, int)
    assert isinstance(digest, str)
    assert isinstance(vector, bytes)
    is_intact = (
        isinstance(dimension, int)
        and len(vector) == 4 * dimension
        and _checksum(digest, vector) == check
    )
    return StoredVector(number, digest, vector, is_intact)


def _checksum(digest: str, vector: bytes) -> int:
    return zlib.crc32(vector, zlib.crc32(digest.encode()))


def put_vectors(
    store: Store, model: Model, vectors: Mapping[str, bytes], pgvector: Pgvector | None
) -> None:
    """Store vectors and replace existing ones, in the open transaction."""
    digests = list(vectors)
    values = [
        [model.number],
        digests,
        [*vectors.values()],
        [_checksum(*v) for v in vectors.items()],
    ]
    if pgvector is None or model.dimension > WIDEST:
        store.run(_PUT, [model.number, *values[1:]])
        return
    put = _PUT_HALF.replace("HALF", pgvector.half(model.dimension))
    store.run(put, [model.number, *values[1:], [*map(half_of, vectors.values())]])


_PUT = """
INSERT INTO {vectors} (model, digest, vector, checksum)
SELECT %s, n.* FROM unnest(%s::text[], %s::bytea[], %s::bigint[]) AS n
ON CONFLICT (model, digest) DO UPDATE SET vector = excluded.vector, checksum = excluded.checksum
"""
_PUT_HALF = """
INSERT INTO {vectors} (model, digest, vector, checksum, half)
SELECT %s, n.digest, n.vector, n.checksum, n.half::HALF
FROM unnest(%s::text[], %s::bytea[], %s::bigint[], %s::text[]) AS n(digest, vector, checksum, half)
ON CONFLICT (model, digest)
DO UPDATE SET vector = excluded.vector, checksum = excluded.checksum, half = excluded.half
"""


def half_of(vector: bytes) -> str:
    """Return a stored vector as the text of a half-precision vector."""
    import numpy as np

    return json.dumps(np.frombuffer(vector, "<f4").astype("<f2").astype("<f4").tolist())


def fill_halves(store: Store, pgvector: Pgvector) -> None:
    """Give the vectors that were stored before pgvector was there their half-precision form."""
    for number, dimension in store.rows("SELECT number, dimension FROM {vector_models}"):
        while dimension <= WIDEST:
            rows = store.rows(
                "SELECT id, digest, vector, checksum FROM {vectors} WHERE model = %s AND half IS NULL LIMIT %s",
                (number, _AT_ONCE),
            )
            if not rows:
                break
            found = [stored_vector(row, dimension) for row in rows]
            delete_rows(store, [one.number for one in found if not one.is_intact])
            whole = {one.digest: one.vector for one in found if one.is_intact}
            put_vectors(store, Model(number, dimension), whole, pgvector)


def prunings(store: Store) -> int:
    """Return how often vectors of erased texts were deleted."""
    rows = store.rows("SELECT number FROM {vector_prunings}")
    return int(rows[0][0]) if rows else 0


def note_pruning(store: Store) -> None:
    """Count that vectors of erased texts are deleted, in the open transaction."""
    store.run(
        "INSERT INTO {vector_prunings} AS p (number) VALUES (1) "
        "ON CONFLICT (only_row) DO UPDATE SET number = p.number + 1"
    )


def lacks_halves(store: Store, model: Model) -> bool:
    """Return whether vectors of a model have no half-precision form yet."""
    query = "SELECT FROM {vectors} WHERE model = %s AND half IS NULL LIMIT 1"
    return bool(store.rows(query, (model.number,)))


def delete_rows(store: Store, numbers: Sequence[int]) -> None:
    """Delete damaged rows, and models without vectors. They will be computed again."""
    if numbers:
        store.run("DELETE FROM {vectors} WHERE id = ANY(%s)", (list(numbers),))
        # If all vectors of a model are damaged, its dimension may be wrong.
        delete_empty_models(store)


def delete_empty_models(store: Store) -> None:
    """Delete models without vectors."""
    store.run(
        "DELETE FROM {vector_models} m WHERE NOT EXISTS (SELECT FROM {vectors} v WHERE v.model = m.number)"
    )


def count_of(store: Store, name: str) -> int:
    """Return the number of vectors of a model."""
    ((count,),) = store.rows(
        "SELECT count(*) FROM {vectors} v JOIN {vector_models} m ON m.number = v.model WHERE m.name = %s",
        (to_text(name),),
    )
    return int(count)


def rewrite(store: Store, keep: Collection[str]) -> None:
    """Write the vectors of these texts to new files, in the open transaction. Its end deletes the old files.

    The indexes of ``settle`` are dropped: filling them here would keep readers waiting.
    """
    store.run(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
    store.run("LOCK TABLE {vectors} IN ACCESS EXCLUSIVE MODE")
    for (number,) in store.rows("SELECT number FROM {vector_models}"):
        _drop_index(store, number)
    store.run(
        "CREATE TEMPORARY TABLE kept_vectors ON COMMIT DROP AS SELECT * FROM {vectors} WHERE "
        "digest = ANY(%s)",
        (list(keep),),
    )
    store.run("TRUNCATE {vectors}")
    store.run(
        "INSERT INTO {vectors} OVERRIDING SYSTEM VALUE SELECT * FROM pg_temp.kept_vectors ORDER BY id"
    )
    store.run("DROP TABLE pg_temp.kept_vectors")
    delete_empty_models(store)


def _drop_index(store: Store, number: int) -> None:
    store.run(f"DROP INDEX IF EXISTS {{vectors_near_{number}}}")


def has_index(store: Store, model: Model) -> bool:
    """Return whether the vectors of a model have an index."""
    query = "SELECT count(*) FROM pg_indexes WHERE schemaname = %s AND indexname = %s"
    ((count,),) = store.rows(query, (store.address.schema, f"vectors_near_{model.number}"))
    return bool(count)


def create_index(store: Store, model: Model, pgvector: Pgvector) -> None:
    """Create the index of a model's vectors.

    Vectors cannot be stored in the meantime. Searches go on.
    """
    with store.transaction():
        store.lock(LOCK)
        create = _CREATE_INDEX.replace("NUMBER", str(model.number)).replace(
            "SCHEMA", pgvector.schema
        )
        store.run(create.replace("HALF", pgvector.half(model.dimension)))


_CREATE_INDEX = """
CREATE INDEX IF NOT EXISTS vectors_near_NUMBER ON {vectors}
USING hnsw ((half::HALF) SCHEMA.halfvec_ip_ops) WHERE model = NUMBER
"""

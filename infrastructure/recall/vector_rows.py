"""Read, write and check the rows of the vector file."""

import json
import sqlite3
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from refold.application.errors import EmbedderError
from refold.infrastructure.projection_store.row_checksums import FoldDamaged

_OVERWRITTEN = "-"
_FEW = 4
"""Rows are overwritten if at most one in this many must be deleted. Otherwise the file is rebuilt."""
AT_ONCE = 2_000
"""Number of digests in one statement."""


class Model(NamedTuple):
    """A model that has vectors."""

    number: int
    dimension: int


class Stored(NamedTuple):
    """Vectors by the digests of their texts, and the damaged rows."""

    vectors: Mapping[str, bytes]
    damaged: Sequence[int]


def model_in(db: sqlite3.Connection, name: str) -> Model | None:
    """Return the model with this name, or None if it has no vectors."""
    row = db.execute("SELECT id, dimension FROM models WHERE name = ?", (name,)).fetchone()
    if row is None:
        return None
    if not isinstance(row[1], int):
        raise FoldDamaged(f"the dimension of {name} is {row[1]!r}")
    return Model(*row)


def model_for(db: sqlite3.Connection, name: str, dimension: int) -> Model:
    """Return the model with this name, and insert it if it is new.

    Raises:
        EmbedderError: ``dimension``, because its vectors have another one.
    """
    known = model_in(db, name)
    if known is None:
        db.execute("INSERT INTO models (name, dimension) VALUES (?, ?)", (name, dimension))
        known = model_in(db, name)
        assert known is not None
    if known.dimension != dimension:
        raise EmbedderError(
            "dimension",
            f"the vectors of {name} in the file have {known.dimension} dimensions, and the embedder "
            f"now gives {dimension}: that is another model, so give it another name "
            "(embedder_model), or the next search by meaning computes all vectors again",
        )
    return known


def digests_in(db: sqlite3.Connection, model: Model, digests: Sequence[str]) -> set[str]:
    """Return those of these digests that have a vector."""
    found: set[str] = set()
    for begin in range(0, len(digests), AT_ONCE):
        asked = (model.number, json.dumps(digests[begin : begin + AT_ONCE]))
        found.update(
            digest
            for (digest,) in db.execute(
                "SELECT digest FROM vectors WHERE model = ? "
                "AND digest IN (SELECT value FROM json_each(?))",
                asked,
            )
        )
    return found


def vectors_in(db: sqlite3.Connection, model: Model, digests: Sequence[str]) -> Stored:
    """Return the stored, intact vectors of these texts."""
    vectors: dict[str, bytes] = {}
    damaged: list[int] = []
    for begin in range(0, len(digests), AT_ONCE):
        asked = (model.number, json.dumps(digests[begin : begin + AT_ONCE]))
        for number, digest, vector, check in db.execute(
            "SELECT id, digest, vector, checksum FROM vectors WHERE model = ? "
            "AND digest IN (SELECT value FROM json_each(?))",
            asked,
        ):
            if _is_stored(model.dimension, digest, vector, check):
                vectors[digest] = vector
            else:
                damaged.append(number)
    return Stored(vectors, damaged)


def _is_stored(dimension: object, digest: object, vector: object, check: object) -> bool:
    """Return whether these columns are as they were stored. Damaged ones may have any value."""
    return (
        isinstance(dimension, int)
        and isinstance(digest, str)
        and isinstance(vector, bytes)
        and len(vector) == 4 * dimension
        and checksum(digest.encode(), vector) == check
    )


def checksum(digest: bytes, vector: bytes) -> int:
    """Return a checksum that detects damage of a vector."""
    return zlib.crc32(vector, zlib.crc32(digest))


def problems_of(db: sqlite3.Connection) -> Iterator[str]:
    """Yield the problems that SQLite finds in the file."""
    for (problem,) in db.execute("PRAGMA integrity_check"):
        if problem != "ok":
            yield str(problem)


def damaged_in(db: sqlite3.Connection) -> Iterator[int]:
    """Yield the damaged rows of all models."""
    for number, dimension, digest, vector, check in db.execute(
        "SELECT v.id, m.dimension, iif(typeof(v.digest) = 'text', CAST(v.digest AS BLOB), NULL), "
        "v.vector, v.checksum FROM vectors AS v LEFT JOIN models AS m ON m.id = v.model"
    ):
        # As bytes, because a damaged text may not be decodable.
        if not _is_stored(dimension, _decode(digest), vector, check):
            yield number


def _decode(raw: object) -> str | None:
    return raw.decode(errors="replace") if isinstance(raw, bytes) else None


def put_vectors(db: sqlite3.Connection, model: Model, vectors: Mapping[str, bytes]) -> None:
    """Store vectors and replace existing ones."""
    db.executemany(
        "INSERT OR REPLACE INTO vectors (model, digest, vector, checksum) VALUES (?, ?, ?, ?)",
        [
            (model.number, digest, row, checksum(digest.encode(), row))
            for digest, row in vectors.items()
        ],
    )


def newest_in(db: sqlite3.Connection) -> int:
    """Return the number of the newest row, or 0 if none exists."""
    return int(db.execute("SELECT max(id) FROM vectors").fetchone()[0] or 0)


def digests_since(db: sqlite3.Connection, model: Model, number: int) -> Sequence[str]:
    """Return the digests of the texts whose vectors were stored after the row with this number."""
    rows = db.execute(
        "SELECT digest FROM vectors WHERE id > ? AND model = ?", (number, model.number)
    )
    return [digest for (digest,) in rows]


def delete_rows(db: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Delete damaged rows, and models without vectors. They will be computed again."""
    db.executemany("DELETE FROM vectors WHERE id = ?", [(number,) for number in numbers])
    # If all vectors of a model are damaged, its dimension may be wrong.
    db.execute("DELETE FROM models WHERE id NOT IN (SELECT model FROM vectors)")


def has_others(db: sqlite3.Connection, name: str) -> bool:
    """Return whether another model has vectors."""
    return db.execute("SELECT 1 FROM models WHERE name != ?", (name,)).fetchone() is not None


def forget_model(db: sqlite3.Connection, model: Model) -> int:
    """Delete a model and its vectors, and return the number of vectors."""
    vectors = count_of(db, model)
    db.execute("DELETE FROM vectors WHERE model = ?", (model.number,))
    db.execute("DELETE FROM models WHERE id = ?", (model.number,))
    return vectors


def keep_model(db: sqlite3.Connection, name: str) -> int:
    """Delete the vectors of all other models, and return their number."""
    models = db.execute("SELECT id, dimension FROM models WHERE name != ?", (name,)).fetchall()
    vectors = sum(count_of(db, Model(*model)) for model in models)
    db.execute(
        "DELETE FROM vectors WHERE model NOT IN (SELECT id FROM models WHERE name = ?)", (name,)
    )
    db.execute("DELETE FROM models WHERE name != ?", (name,))
    return vectors


def overwrite_others(db: sqlite3.Connection, keep: Collection[str]) -> bool:
    """Overwrite the vectors of all other texts. Return False if they are too many for that.

    Rows are not deleted, because SQLite would move others and leave bytes of them behind. For the same
    reason, the index of the table is rebuilt.
    """
    known = [digest for (digest,) in db.execute("SELECT DISTINCT digest FROM vectors")]
    gone = [digest for digest in known if digest not in keep and not is_overwritten(digest)]
    if len(gone) * _FEW > len(known):
        return False
    found = "SELECT id, length(vector) FROM vectors WHERE digest = ?"
    for number, size in [row for one in gone for row in db.execute(found, (one,)).fetchall()]:
        digest, vector = f"{_OVERWRITTEN}{number}", bytes(size)
        db.execute(
            "UPDATE vectors SET digest = ?, vector = ?, checksum = ? WHERE id = ?",
            (digest, vector, checksum(digest.encode(), vector), number),
        )
    if gone:
        db.execute("REINDEX vectors")
    return True


def is_overwritten(digest: object) -> bool:
    """Return whether a row with this digest replaces a deleted vector."""
    return isinstance(digest, str) and digest.startswith(_OVERWRITTEN)


def count_of(db: sqlite3.Connection, model: Model) -> int:
    """Return the number of vectors of the model."""
    rows = db.execute(
        "SELECT count(*) FROM vectors WHERE model = ? AND digest NOT LIKE ?",
        (model.number, f"{_OVERWRITTEN}%"),
    )
    return int(rows.fetchone()[0])

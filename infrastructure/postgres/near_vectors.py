"""Find the nearest passages with pgvector: candidates by half-precision vectors, ranked by the whole ones."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from psycopg import sql

from refold.application.ports.recall_index import Filters
from refold.application.ports.vectors import Nearest
from refold.domain.lazy_pattern import lazy_pattern
from refold.infrastructure.projection_store.tables import Tables
from refold.infrastructure.recall.vector_matrices import cosines

from .connections import Store
from .passage_search import Condition, passing, run_query
from .vector_tables import NearQuery, StoredVector, half_of, stored_vector

ROUNDING = 0.002
"""Largest error of a cosine that was computed from half-precision vectors of length 1.

Each component has a relative error of 2**-11, in both vectors, so the sum has at most 2**-10.
"""
MORE = 50
"""Number of candidates beyond twice the wanted number in the first attempt."""
GROWTH = 4
_EFFORT = (100, 1_000)
"""Smallest and largest ``hnsw.ef_search``; the largest is pgvector's limit."""

_NEAR = """
SELECT p.number, v.id, v.digest, v.vector, v.checksum, <DISTANCE> AS distance
FROM {passages} p JOIN <VECTORS> v ON v.digest = p.digest
WHERE v.model = <MODEL> AND v.half IS NOT NULL AND <CONDITION>
ORDER BY <ORDER> LIMIT ?
"""
_PARTS = lazy_pattern(r"<([A-Z]+)>")


class Damaged(Exception):
    """Candidates whose vectors were changed."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__(numbers)
        self.numbers = numbers


def nearest_by_pgvector(
    db: Tables, store: Store, asked: NearQuery, filters: Filters, *, indexed: bool
) -> list[Nearest]:
    """Return the nearest passages that pass the filters, best first.

    Without an index they are exactly those that a comparison with every whole vector finds. With one, nearly
    all of them; if the filters leave too few, every vector is compared.

    Raises:
        Damaged: vectors of candidates were changed.
    """
    where = passing(filters)
    wanted = 2 * asked.limit + MORE
    if indexed:
        effort = min(max(wanted, _EFFORT[0]), _EFFORT[1])
        db.execute("SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true)")
        db.execute("SELECT set_config('hnsw.ef_search', ?, true)", (str(effort),))
        found = _candidates(db, store, asked, where, wanted, indexed=True)
        if len(found) >= asked.limit:
            return _ranked(asked, found)
    while True:
        found = _candidates(db, store, asked, where, wanted, indexed=False)
        best = _ranked(asked, found)
        if len(found) < wanted or found[-1].cosine < best[-1].cosine - ROUNDING:
            return best
        wanted *= GROWTH


class _Candidate(NamedTuple):
    number: int
    stored: StoredVector
    cosine: float


def _candidates(
    db: Tables, store: Store, asked: NearQuery, where: Condition, wanted: int, *, indexed: bool
) -> list[_Candidate]:
    half = asked.pgvector.half(asked.model.dimension)
    # Only the expression of the index is found by the index.
    column = f"(v.half::{half})" if indexed else "v.half"
    statement = _fill(
        VECTORS=sql.Identifier(store.address.schema, "vectors").as_string(),
        DISTANCE=f"{column} OPERATOR({asked.pgvector.schema}.<#>) ?::{half}",
        MODEL=str(asked.model.number),
        # In brackets and IS TRUE, so that no condition keeps the index from being taken.
        CONDITION=f"({where.text}) IS TRUE" if indexed else where.text,
        ORDER="distance" if indexed else "distance, p.number",
    )
    rows = run_query(db, statement, half_of(asked.query), *where.values, wanted)
    found = [
        _Candidate(number, stored_vector(row, asked.model.dimension), -distance)
        for number, *row, distance in rows
    ]
    if damaged := {one.stored.number for one in found if not one.stored.is_intact}:
        raise Damaged(sorted(damaged))
    return found


def _fill(**parts: str) -> str:
    return _PARTS.sub(lambda found: parts[found[1]], _NEAR)


def _ranked(asked: NearQuery, found: Sequence[_Candidate]) -> list[Nearest]:
    """Return the best candidates by the cosines of the whole vectors; of equal ones, older passages first."""
    exact = cosines(asked.query, {one.number: one.stored.vector for one in found})
    numbers = np.fromiter(exact.keys(), dtype=np.int64)
    scores = np.fromiter(exact.values(), dtype=np.float32)
    best = np.lexsort((numbers, -scores))[: asked.limit]
    return list(map(Nearest, numbers[best].tolist(), scores[best].tolist()))

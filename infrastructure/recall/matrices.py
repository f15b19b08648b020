"""Vectors as matrices: the only module of recall that computes with numpy."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from refold.application.errors import EmbedderError
from refold.application.recall.index import Filters
from refold.application.recall.passages import Passage
from refold.application.recall.vectors import Nearest, Vector

BLOCK = 1_024
"""Rows of a matrix; a scope has as many matrices as it needs."""
_FEWEST = 16
_SINGLE = np.dtype("<f4")
_COLUMNS = np.dtype(
    [
        ("number", "i8"),
        ("position", "i8"),
        ("role", "i4"),
        ("kind", "i4"),
        ("tool", "i4"),
        ("at", "S40"),
        ("has", "?"),
    ]
)

Matrix = NDArray[np.float32]
Mask = NDArray[np.bool_]
Reading = Callable[[Sequence[str]], Mapping[str, bytes]]
"""Gives the stored vectors of these digests, as far as there are any."""


def packed(vector: Vector) -> bytes:
    """A vector of length 1 (or 0), as it is stored.

    Raises:
        EmbedderError: ``bad_answer``, it is no vector.
    """
    try:
        row = np.asarray(vector, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise EmbedderError("bad_answer", f"the embedder gave no vector: {error}") from error
    if row.ndim != 1 or not row.size or not np.isfinite(row).all():
        raise EmbedderError(
            "bad_answer", "the embedder gave no vector: not a row of finite numbers"
        )
    length = np.linalg.norm(row)
    return (row / length if length else row).astype(_SINGLE).tobytes()


def same_length(rows: Iterable[bytes]) -> int:
    """The dimension of stored vectors; 0 if there are none.

    Raises:
        EmbedderError: ``bad_answer``, they have several.
    """
    lengths = {len(row) for row in rows}
    if len(lengths) > 1:
        raise EmbedderError("bad_answer", "the embedder gave vectors of several dimensions at once")
    return lengths.pop() // _SINGLE.itemsize if lengths else 0


def checksum(digest: str, vector: bytes) -> int:
    """What tells a damaged vector."""
    return zlib.crc32(vector, zlib.crc32(digest.encode()))


def row_of(stored: bytes) -> Matrix:
    """A stored vector to compute with."""
    return np.frombuffer(stored, dtype=_SINGLE)


def cosines(query: bytes, stored: Mapping[int, bytes]) -> dict[int, float]:
    """How near each is to the query, all of them of one dimension."""
    if not stored:
        return {}
    rows = np.frombuffer(b"".join(stored.values()), dtype=_SINGLE).reshape(len(stored), -1)
    return dict(zip(stored, (rows @ row_of(query)).tolist(), strict=True))


class _Block:
    """Passages in the order of the index, with room for their vectors."""

    def __init__(self, dimension: int) -> None:
        self.size = 0
        self.columns = np.zeros(_FEWEST, dtype=_COLUMNS)
        self.rows: Matrix = np.zeros((_FEWEST, dimension), dtype=np.float32)

    @property
    def is_full(self) -> bool:
        return self.size == BLOCK

    def put(self, row: tuple[int, int, int, int, int, bytes, bool], vector: bytes | None) -> None:
        if self.size == len(self.columns):
            more = min(2 * self.size, BLOCK)
            self.columns = np.resize(self.columns, more)
            rows = np.zeros((more, self.rows.shape[1]), dtype=np.float32)
            rows[: self.size] = self.rows
            self.rows = rows
        self.columns[self.size] = row
        if vector is not None:
            self.rows[self.size] = row_of(vector)
        self.size += 1

    def nearest(self, query: Matrix, mask: Mask, limit: int) -> Iterator[Nearest]:
        there = np.flatnonzero(mask)
        if not there.size:
            return
        scores = (self.rows[: self.size] @ query)[there]
        if there.size > limit:
            best = np.argpartition(-scores, limit - 1)[:limit]
            there, scores = there[best], scores[best]
        numbers = self.columns["number"][there]
        yield from map(Nearest, numbers.tolist(), scores.tolist())


class Scope:
    """The passages of one conversation, or of all, as far as the index had them when it was asked."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.last = 0
        """The number of the newest passage."""
        self._blocks: list[_Block] = []
        self._codes: dict[str, int] = {}
        self._waiting: dict[str, list[tuple[_Block, int]]] = {}

    @property
    def bytes(self) -> int:
        """The room that it takes."""
        return sum(block.rows.nbytes + block.columns.nbytes for block in self._blocks)

    @property
    def is_waiting(self) -> bool:
        """Whether any passage has no vector yet."""
        return bool(self._waiting)

    def extend(self, passages: Sequence[Passage], read: Reading) -> None:
        """Add the next passages of the index, with the vectors that are there."""
        stored = read([passage.digest for passage in passages])
        for passage in passages:
            if not self._blocks or self._blocks[-1].is_full:
                self._blocks.append(_Block(self.dimension))
            block, vector = self._blocks[-1], stored.get(passage.digest)
            if vector is None:
                self._waiting.setdefault(passage.digest, []).append((block, block.size))
            block.put(self._row(passage, has=vector is not None), vector)
            self.last = passage.number

    def fill(self, fresh: Sequence[str], read: Reading) -> None:
        """Fill in the vectors that were made since, of these texts."""
        wanted = [digest for digest in fresh if digest in self._waiting]
        for digest, vector in read(wanted).items():
            for block, place in self._waiting.pop(digest):
                block.rows[place] = row_of(vector)
                block.columns["has"][place] = True

    def nearest(self, query: bytes, filters: Filters, limit: int) -> list[Nearest]:
        """The nearest passages that the filters let through, best first."""
        direction = row_of(query)
        found: list[Nearest] = []
        for block in self._blocks:
            found += block.nearest(direction, self._mask(block, filters), limit)
        found.sort(key=lambda one: (-one.cosine, one.number))
        return found[:limit]

    def _row(self, passage: Passage, *, has: bool) -> tuple[int, int, int, int, int, bytes, bool]:
        role, kind, tool = (
            self._codes.setdefault(name, len(self._codes))
            for name in (passage.role, passage.kind, passage.tool)
        )
        at = passage.at.encode("ascii", "replace")
        return passage.number, passage.position, role, kind, tool, at, has

    def _mask(self, block: _Block, filters: Filters) -> Mask:
        columns = block.columns[: block.size]
        mask: Mask = columns["has"].copy()
        for column, names in (
            ("role", filters.roles),
            ("kind", filters.kinds),
            ("tool", filters.tools),
        ):
            if names:
                codes = [self._codes[name] for name in names if name in self._codes]
                mask &= np.isin(columns[column], codes)
        if filters.since is not None:
            mask &= columns["at"] >= filters.since.encode("ascii", "replace")
        if filters.until is not None:
            mask &= columns["at"] < filters.until.encode("ascii", "replace")
        if filters.positions is not None:
            first, stop = filters.positions
            mask &= (columns["position"] >= first) & (columns["position"] < stop)
        if filters.leave_out:
            mask &= ~np.isin(columns["position"], list(filters.leave_out))
        return mask

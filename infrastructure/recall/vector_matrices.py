"""Vectors as matrices. The only other module of recall that uses numpy is ``index_tables``."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from refold.application.errors import EmbedderError
from refold.application.ports.embedder import Vector
from refold.application.ports.recall_index import Filters, RecallIndex
from refold.application.ports.vectors import Nearest
from refold.application.recall.passages import Passage

BLOCK = 1_024
"""Number of rows of a matrix. A scope has as many matrices as it needs."""
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
        ("whose", "i4"),
    ]
)

Matrix = NDArray[np.float32]
Numbers = NDArray[np.int64]
_Row = tuple[int, int, int, int, int, bytes, bool, int]
Mask = NDArray[np.bool_]
Reading = Callable[[Sequence[str]], Mapping[str, bytes]]
"""A function that returns the stored vectors of these digests."""


def pack_vector(vector: Vector) -> bytes:
    """Encode a vector for storage, scaled to length 1 unless it is zero.

    Raises:
        EmbedderError: ``bad_answer``, because the value is not a vector.
    """
    try:
        row = np.asarray(vector, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise EmbedderError("bad_answer", f"the embedder returned no vector: {error}") from error
    if row.ndim != 1 or not row.size or not np.isfinite(row).all():
        raise EmbedderError(
            "bad_answer", "the embedder returned no vector: not a row of finite numbers"
        )
    length = np.linalg.norm(row)
    return (row / length if length else row).astype(_SINGLE).tobytes()


def same_length(rows: Iterable[bytes]) -> int:
    """Return the dimension of stored vectors, or 0 if there are none.

    Raises:
        EmbedderError: ``bad_answer``, because their dimensions differ.
    """
    lengths = {len(row) for row in rows}
    if len(lengths) > 1:
        raise EmbedderError(
            "bad_answer", "the embedder returned vectors of several dimensions at once"
        )
    return lengths.pop() // _SINGLE.itemsize if lengths else 0


def rows_of(stored: Collection[bytes]) -> Matrix:
    """Return a matrix of at least one stored vector; all have the same dimension."""
    return np.frombuffer(b"".join(stored), dtype=_SINGLE).reshape(len(stored), -1)


def row_of(stored: bytes) -> Matrix:
    """Return a stored vector as a matrix row."""
    return np.frombuffer(stored, dtype=_SINGLE)


def cosines(query: bytes, stored: Mapping[int, bytes]) -> dict[int, float]:
    """Return the cosine similarity of each stored vector to the query. All have the same dimension."""
    if not stored:
        return {}
    near = np.vecdot(rows_of(stored.values()), row_of(query))
    return dict(zip(stored, near.tolist(), strict=True))


class _Block:
    """Passages in the order of the index, with space for their vectors."""

    def __init__(self, dimension: int) -> None:
        self.size = 0
        self.columns = np.zeros(_FEWEST, dtype=_COLUMNS)
        self.rows: Matrix = np.zeros((_FEWEST, dimension), dtype=np.float32)

    @property
    def room(self) -> int:
        """Number of passages that can be added."""
        return BLOCK - self.size

    def put(self, columns: Sequence[_Row], vectors: Sequence[bytes | None]) -> None:
        """Add passages with their known vectors. There must be enough room."""
        begin, end = self.size, self.size + len(columns)
        if end > len(self.columns):
            more = min(max(2 * len(self.columns), end), BLOCK)
            rows = np.zeros((more, self.rows.shape[1]), dtype=np.float32)
            rows[:begin] = self.rows[:begin]
            self.columns, self.rows = np.resize(self.columns, more), rows
        self.columns[begin:end] = np.array(columns, dtype=_COLUMNS)
        there = {begin + place: one for place, one in enumerate(vectors) if one is not None}
        if there:
            self.rows[list(there)] = rows_of(there.values())
        self.size = end

    def nearest(self, query: Matrix, mask: Mask, limit: int) -> tuple[Numbers, Matrix]:
        there = np.flatnonzero(mask)
        # Not with the threads of a BLAS, which wait for each other on a busy machine.
        scores = np.vecdot(self.rows[: self.size], query)[there]
        if there.size > limit:
            last = np.partition(scores, -limit)[-limit]
            # All equal ones, so that the oldest of them are chosen at the end.
            best = np.flatnonzero(scores >= last)
            there, scores = there[best], scores[best]
        return self.columns["number"][there], scores


class Scope:
    """The passages of one conversation, or of all, as the index had them at the last query."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.last = 0
        """Number of the newest passage."""
        self._blocks: list[_Block] = []
        self._codes: dict[str, int] = {}
        self._whose: dict[tuple[str, str], int] = {}
        """Codes of passages by owner and conversation."""
        self._waiting: dict[str, list[tuple[_Block, int]]] = {}

    @property
    def room(self) -> int:
        """Number of bytes that the matrices use."""
        return sum(block.rows.nbytes + block.columns.nbytes for block in self._blocks)

    @property
    def is_waiting(self) -> bool:
        """True if a passage has no vector yet."""
        return bool(self._waiting)

    def extend(self, passages: Sequence[Passage], read: Reading) -> None:
        """Add the next passages of the index with their known vectors."""
        stored = read([passage.digest for passage in passages])
        begin = 0
        while begin < len(passages):
            if not self._blocks or self._blocks[-1].room == 0:
                self._blocks.append(_Block(self.dimension))
            block = self._blocks[-1]
            some = passages[begin : begin + block.room]
            vectors = [stored.get(passage.digest) for passage in some]
            for place, (passage, vector) in enumerate(zip(some, vectors, strict=True), block.size):
                if vector is None:
                    self._waiting.setdefault(passage.digest, []).append((block, place))
            block.put([self._row(p, has=p.digest in stored) for p in some], vectors)
            begin += len(some)
        if passages:
            self.last = passages[-1].number

    def fill(self, fresh: Sequence[str], read: Reading) -> None:
        """Add vectors of these texts that were computed since."""
        wanted = [digest for digest in fresh if digest in self._waiting]
        for digest, vector in read(wanted).items():
            for block, place in self._waiting.pop(digest):
                block.rows[place] = row_of(vector)
                block.columns["has"][place] = True

    def nearest(self, query: bytes, filters: Filters, limit: int) -> list[Nearest]:
        """Return the nearest passages that pass the filters, best first."""
        direction = row_of(query)
        found = [
            block.nearest(direction, self._mask(block, filters), limit) for block in self._blocks
        ]
        if not found:
            return []
        numbers = np.concatenate([one[0] for one in found])
        scores = np.concatenate([one[1] for one in found])
        best = np.lexsort((numbers, -scores))[:limit]
        return list(map(Nearest, numbers[best].tolist(), scores[best].tolist()))

    def _row(self, passage: Passage, *, has: bool) -> _Row:
        role, kind, tool = (
            self._codes.setdefault(name, len(self._codes))
            for name in (passage.role, passage.kind, passage.tool)
        )
        at = passage.at.encode("ascii", "replace")
        whose = self._whose.setdefault((passage.owner, passage.thread_id), len(self._whose))
        return passage.number, passage.position, role, kind, tool, at, has, whose

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
        if filters.visible is not None:
            lets = filters.visible.lets
            codes = [code for whose, code in self._whose.items() if lets(*whose)]
            mask &= np.isin(columns["whose"], codes)
        if filters.leave_out:
            mask &= ~np.isin(columns["position"], list(filters.leave_out))
        return mask


PAGE = 1_000
"""Number of passages requested from the index at once."""
KEPT_BYTES = 256 * 1024 * 1024
"""Maximum bytes of cached matrices. The last used one is always kept."""


class Fresh(NamedTuple):
    """The state of a table of vectors, and the texts whose vectors were stored since an earlier state."""

    opened: int
    """Number that changes when rows may have been numbered from the beginning again."""
    newest: int
    """Number of the newest row."""
    digests: Sequence[str] = ()


class VectorTable(Protocol):
    """A table of vectors that scopes are filled from."""

    def fresh(self, model: str, dimension: int, since: Fresh | None) -> Fresh | None:
        """Return the state now, with the texts stored after ``since`` unless that is None.

        The result is None if the model has no vectors of this dimension.
        """
        ...


class _Known(NamedTuple):
    """A scope and the state that it was built from."""

    scope: Scope
    edition: int
    state: Fresh = Fresh(0, 0)
    """Rows stored after this state may be vectors that the scope lacks."""


class Scopes:
    """A cache of the vectors of conversations as matrices."""

    def __init__(self, index: RecallIndex) -> None:
        self._index = index
        self._known: OrderedDict[tuple[str, str | None], _Known] = OrderedDict()

    def scope(
        self,
        table: VectorTable,
        model: str,
        dimension: int,
        thread_id: str | None,
        edition: int,
        read: Reading,
    ) -> Scope | None:
        """Return the current vectors of a conversation, or of all, in this edition of the index.

        The result is None if the model has no vectors of this dimension. Raises the errors of the table
        and the index.
        """
        key = (model, thread_id)
        known = self._known.pop(key, None)
        if known is None or known.edition != edition or known.scope.dimension != dimension:
            known = _Known(Scope(dimension), edition)
        now = table.fresh(model, dimension, known.state if known.scope.is_waiting else None)
        if now is None:
            return None
        known.scope.fill(now.digests, read)
        self._extend(known.scope, thread_id, read)
        self._known[key] = known._replace(state=now._replace(digests=()))
        self._forget_oldest()
        return known.scope

    def forget(self) -> None:
        """Clear the cache."""
        self._known.clear()

    def _extend(self, scope: Scope, thread_id: str | None, read: Reading) -> None:
        only = Filters(thread_id)
        while page := self._index.passages(scope.last, PAGE, filters=only):
            scope.extend(page, read)
            if len(page) < PAGE:
                return

    def _forget_oldest(self) -> None:
        room = sum(known.scope.room for known in self._known.values())
        while room > KEPT_BYTES and len(self._known) > 1:
            _, known = self._known.popitem(last=False)
            room -= known.scope.room

"""Vectors as matrices: the only module of recall that computes with numpy."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from refold.application.errors import EmbedderError
from refold.application.ports.recall_index import Filters, RecallIndex
from refold.application.ports.vectors import Nearest, Vector
from refold.application.recall.passages import Passage

from .vector_file import VectorsFile
from .vector_rows import digests_since, model_in, newest_in

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
        ("whose", "i4"),
    ]
)

Matrix = NDArray[np.float32]
Numbers = NDArray[np.int64]
_Row = tuple[int, int, int, int, int, bytes, bool, int]
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


def rows_of(stored: Collection[bytes]) -> Matrix:
    """Stored vectors of one dimension to compute with; there must be one."""
    return np.frombuffer(b"".join(stored), dtype=_SINGLE).reshape(len(stored), -1)


def row_of(stored: bytes) -> Matrix:
    """A stored vector to compute with."""
    return np.frombuffer(stored, dtype=_SINGLE)


def cosines(query: bytes, stored: Mapping[int, bytes]) -> dict[int, float]:
    """How near each is to the query, all of them of one dimension."""
    if not stored:
        return {}
    near = np.vecdot(rows_of(stored.values()), row_of(query))
    return dict(zip(stored, near.tolist(), strict=True))


class _Block:
    """Passages in the order of the index, with room for their vectors."""

    def __init__(self, dimension: int) -> None:
        self.size = 0
        self.columns = np.zeros(_FEWEST, dtype=_COLUMNS)
        self.rows: Matrix = np.zeros((_FEWEST, dimension), dtype=np.float32)

    @property
    def room(self) -> int:
        """How many passages more it can have."""
        return BLOCK - self.size

    def put(self, columns: Sequence[_Row], vectors: Sequence[bytes | None]) -> None:
        """Add passages, for which there must be room, with the vectors that are there."""
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
        # Not with the threads of a BLAS: where processors are busy, these wait for each other.
        scores = np.vecdot(self.rows[: self.size], query)[there]
        if there.size > limit:
            best = np.argpartition(-scores, limit - 1)[:limit]
            there, scores = there[best], scores[best]
        return self.columns["number"][there], scores


class Scope:
    """The passages of one conversation, or of all, as far as the index had them when it was asked."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.last = 0
        """The number of the newest passage."""
        self._blocks: list[_Block] = []
        self._codes: dict[str, int] = {}
        self._whose: dict[tuple[str, str], int] = {}
        """By owner and conversation: the code of their passages."""
        self._waiting: dict[str, list[tuple[_Block, int]]] = {}

    @property
    def room(self) -> int:
        """The room that it takes."""
        return sum(block.rows.nbytes + block.columns.nbytes for block in self._blocks)

    @property
    def is_waiting(self) -> bool:
        """Whether any passage has no vector yet."""
        return bool(self._waiting)

    def extend(self, passages: Sequence[Passage], read: Reading) -> None:
        """Add the next passages of the index, with the vectors that are there."""
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
        """Fill in the vectors that were made since, of these texts."""
        wanted = [digest for digest in fresh if digest in self._waiting]
        for digest, vector in read(wanted).items():
            for block, place in self._waiting.pop(digest):
                block.rows[place] = row_of(vector)
                block.columns["has"][place] = True

    def nearest(self, query: bytes, filters: Filters, limit: int) -> list[Nearest]:
        """The nearest passages that the filters let through, best first."""
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
"""Passages that are asked of the index at a time."""
KEPT_BYTES = 256 * 1024 * 1024
"""Matrices are kept until they take more; the one that was asked last stays in any case."""


class _Known(NamedTuple):
    """A scope, and what it has seen."""

    scope: Scope
    edition: int
    times_opened: int = 0
    newest: int = 0
    """Of the rows of the file; what came later may be a vector that it lacks."""


class Scopes:
    """The vectors of conversations as matrices."""

    def __init__(self, index: RecallIndex) -> None:
        self._index = index
        self._known: OrderedDict[tuple[str, str | None], _Known] = OrderedDict()

    def scope(
        self,
        file: VectorsFile,
        model: str,
        dimension: int,
        thread_id: str | None,
        edition: int,
        read: Reading,
    ) -> Scope | None:
        """The vectors of a conversation, or of all, as they are now in this edition of the index.

        None if the model has none of this dimension. Raises what the file and the index do.
        """
        key = (model, thread_id)
        known = self._known.pop(key, None)
        if known is None or known.edition != edition or known.scope.dimension != dimension:
            known = _Known(Scope(dimension), edition)
        with file.reading() as db:
            row = None if db is None else model_in(db, model)
            if db is None or row is None or row.dimension != dimension:
                return None
            opened, newest = file.times_opened, newest_in(db)
            seen = known.newest if known.times_opened == opened else 0
            fresh: Sequence[str] = ()
            if known.scope.is_waiting:
                fresh = digests_since(db, row, seen)
        known.scope.fill(fresh, read)
        self._extend(known.scope, thread_id, read)
        self._known[key] = known._replace(times_opened=opened, newest=newest)
        self._forget_oldest()
        return known.scope

    def forget(self) -> None:
        """Keep none."""
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

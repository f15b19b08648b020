"""The matrices that are kept in memory, one for each conversation that was asked, and how they grow."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from refold.application.recall.index import Filters, RecallIndex

from .matrices import Reading, Scope
from .vector_rows import digests_since, model_in, newest_in
from .vectors_file import VectorsFile

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

"""Passages that were read from a database of the recall index, and how a search reads others."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from refold.application.ports.recall_index import Filters, Visible
from refold.application.recall.passages import Passage
from refold.application.recall.ranking import accepting
from refold.infrastructure.projection_store.row_checksums import FoldDamaged, open_row, storable
from refold.infrastructure.projection_store.tables import Tables

from .index_tables import PASSAGES, thread_token

PASSAGES_KEPT = 10_000
"""Number of passages above which those that were read are forgotten: some 15 million bytes."""

Place = tuple[str, int]
"""Conversation and position of a message."""


class Opened:
    """Passages that were read and verified. A passage changes only if its message is erased."""

    def __init__(self) -> None:
        self.passages: dict[int, Passage] = {}
        self.messages: dict[Place, Sequence[Passage]] = {}
        """The first passages of messages, as neighbours of others."""
        self.empty: set[Place] = set()
        """Messages without passages at the moment."""

    def keep(self, passage: Passage) -> Passage:
        """Keep a passage, and return it."""
        return self.passages.setdefault(passage.number, passage)

    def limit(self) -> None:
        """Forget all passages if they are too many."""
        if len(self.passages) > PASSAGES_KEPT:
            self.passages, self.messages = {}, {}


NEIGHBOUR_PARTS = 4
"""Maximum number of passages of a long message next to a candidate that are read."""
MORE = 10
"""Number of passages that are read at least if the filters did not let enough through."""
_NUMBERED = f"SELECT * FROM {PASSAGES} WHERE number IN (SELECT value FROM json_each(?))"
_NEIGHBOURS = f"""SELECT p.* FROM {PASSAGES} AS p
    WHERE p.thread = ? AND p.position IN (SELECT value FROM json_each(?)) AND p.part < ?
    ORDER BY p.position, p.part"""


class Reading:
    """Reads passages for one search. Those that were read before by the same connection are not read again."""

    def __init__(self, db: Tables, opened: Opened, filters: Filters) -> None:
        self._db = db
        self._opened = opened
        filters = _stored_filters(filters)
        self._visible = filters.visible
        self._is_accepted = accepting(filters)

    def let_through(
        self, numbers: Iterator[int], limit: int, *, all_there: bool = True
    ) -> list[Passage]:
        """Return the first ``limit`` passages that pass the filters, in the order of ``numbers``.

        Raises:
            FoldDamaged: a passage was changed, or is missing and ``all_there`` is true.
        """
        found: list[Passage] = []
        size, read = limit, 0
        while len(found) < limit and (wanted := list(islice(numbers, size))):
            # Rejected ones are read, because a damaged row could have been one of the others.
            passages = self._numbered(wanted)
            if all_there and None in passages:
                raise FoldDamaged("a passage that the words lead to is missing")
            found += [p for p in passages if p is not None and self._lets(p)]
            read += len(wanted)
            # As many as are needed if the same share of them passes.
            size = min(4 * size, MORE + (limit - len(found)) * read // max(1, len(found)))
        return found[:limit]

    def neighbours(self, found: Sequence[Passage]) -> Mapping[Place, Sequence[Passage]]:
        """Return the passages of the messages next to these, by conversation and position."""
        known, empty = self._opened.messages, self._opened.empty
        wanted = dict.fromkeys(
            [(p.thread_id, p.position - 1) for p in found]
            + [(p.thread_id, p.position + 1) for p in found]
        )
        lacking: dict[str, list[int]] = {}
        # A difference of sets would walk over all that is known.
        for thread_id, position in [one for one in wanted if one not in known and one not in empty]:
            lacking.setdefault(thread_id, []).append(position)
        for thread_id, positions in lacking.items():
            self._read_messages(thread_id, positions)
        return {place: known[place] for place in wanted if place in known}

    def _read_messages(self, thread_id: str, positions: Sequence[int]) -> None:
        values = (thread_token(thread_id), json.dumps(positions), NEIGHBOUR_PARTS)
        read: dict[Place, list[Passage]] = {(thread_id, position): [] for position in positions}
        for row in self._db.execute(_NEIGHBOURS, values).fetchall():
            passage = self._opened.keep(passage_of(row))
            read[passage.thread_id, passage.position].append(passage)
        for place, passages in read.items():
            if passages:
                self._opened.messages[place] = passages
            else:
                self._opened.empty.add(place)

    def _numbered(self, numbers: Sequence[int]) -> list[Passage | None]:
        """Return the passages with these numbers, and None for those that are missing or erased."""
        known = self._opened.passages
        if lacking := [number for number in numbers if number not in known]:
            for row in self._db.execute(_NUMBERED, (json.dumps(lacking),)).fetchall():
                self._opened.keep(passage_of(row))
        return [known.get(number) for number in numbers]

    def _lets(self, passage: Passage) -> bool:
        visible = self._visible
        # The row of an erased message has no tokens.
        return (
            bool(passage.tokens)
            and self._is_accepted(passage)
            and (visible is None or visible.lets(passage.owner, passage.thread_id))
        )


def _stored_filters(filters: Filters) -> Filters:
    """Return the filters with names as they are stored."""
    visible = filters.visible
    if visible is not None:
        visible = Visible(
            None if visible.owner is None else _stored_name(visible.owner),
            frozenset(map(_stored_name, visible.threads)),
            None if visible.home is None else _stored_name(visible.home),
        )
    return filters._replace(
        thread_id=None if filters.thread_id is None else _stored_name(filters.thread_id),
        tools=frozenset(map(_stored_name, filters.tools)),
        visible=visible,
    )


def _stored_name(name: str) -> str:
    return str(storable(name))


def passage_of(row: Sequence[Any]) -> Passage:
    """Return the passage of a row.

    Raises:
        FoldDamaged: the row was changed after it was stored.
    """
    values: tuple[Any, ...] = open_row(PASSAGES, row)
    return Passage._make((*values[:12], bool(values[12]), *values[13:16]))

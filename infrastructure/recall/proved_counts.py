"""Counts that were verified in a database of the recall index, and passages that were read from it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from refold.application.recall.passages import Passage
from refold.infrastructure.projection_store.checkpoint import read_progress, reading_from
from refold.infrastructure.projection_store.row_checksums import FoldDamaged
from refold.infrastructure.projection_store.tables import Tables

from .index_tables import (
    IS_THERE,
    PASSAGES,
    POSTINGS,
    PROJECTIONS,
    SEGMENTS,
    TERM_BITS,
    TERMS,
    local_of,
    numbers_at,
    segment_of,
    stored_thread,
    term_of,
    thread_token,
)

_FREQUENCIES = f"""SELECT t.term, t.passages FROM json_each(?) AS wanted
    CROSS JOIN {TERMS} AS t ON t.term = wanted.value"""
_POSTED = f"""SELECT total(p.passages) FROM {SEGMENTS} AS s
    CROSS JOIN {POSTINGS} AS p ON p.place = (s.segment << {TERM_BITS}) | ?"""
_OF_THREAD = f"""SELECT json_group_array(number), max(position) FROM {PASSAGES}
    WHERE thread = ? AND position > ?"""

PLACES_KEPT = 200_000
"""Number of passages above which the places of conversations are read again."""

Places = Mapping[int, set[int]]
"""Places of passages in each segment."""


def group_by_segment(numbers: Iterable[int], into: dict[int, set[int]]) -> None:
    """Add passages to their segments."""
    for number in numbers:
        segment = segment_of(number)
        into.get(segment, into.setdefault(segment, set())).add(local_of(number))


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


class _ThreadPlaces(NamedTuple):
    """The places of the passages of a conversation up to a position."""

    size: int
    last: int
    places: dict[int, set[int]]


class Proved:
    """Counts that were verified in a database. Verifying all of them takes a while.

    They stay right when the same connection folds events in, because a fold changes all of them together.
    After a commit of another connection they are verified again.
    """

    def __init__(self) -> None:
        self._state: tuple[object, ...] = ()
        self._progress: object = None
        self._tokens: set[str] = set()
        self._threads: set[str | None] = set()
        """Conversations whose passages were counted, and None if all were."""
        self._shares: dict[str | None, float] = {}
        """Shares of all passages, as of the checkpoint."""
        self._places: dict[str, _ThreadPlaces] = {}
        self._read_from = 0
        self.opened = Opened()

    def total(self, db: Tables, thread_id: str | None) -> int:
        """Return the number of passages, after checking that none of this conversation, or of all, is
        missing.

        Raises:
            FoldDamaged: passages are missing.
        """
        progress = read_progress(db, PROJECTIONS)
        total = progress.totals[PASSAGES].rows
        state = (db, db.execute("PRAGMA data_version").fetchone()[0])
        if state != self._state:
            self._state, self._tokens, self._threads, self._places = state, set(), set(), {}
            self._progress, self.opened = None, Opened()
        if progress != self._progress:
            self._progress, self._shares = progress, {}
            self._open(db)
        if thread_id not in self._shares:
            count = self._count(db, thread_id, total)
            self._shares[thread_id] = count / total if total else 1.0
        return total

    def _open(self, db: Tables) -> None:
        """Forget the passages that were read if something was erased since, and messages that were not there."""
        read_from = reading_from(db)
        if read_from != self._read_from:
            self._read_from, self.opened = read_from, Opened()
        self.opened.empty = set()

    def _count(self, db: Tables, thread_id: str | None, total: int) -> int:
        """Return the verified number of passages of a conversation, or of all."""
        if thread_id is not None:
            self.check_places(db, (thread_id,))
            return stored_thread(db, thread_id).total.rows
        if None not in self._threads:
            query = f"SELECT count(*) FROM {PASSAGES} WHERE {IS_THERE}"
            count = db.execute(query).fetchone()[0]
            if count != total:
                raise FoldDamaged(f"there are {count} passages, and not {total}")
            self._threads.add(None)
        return total

    def share(self, thread_id: str | None) -> float:
        """Return the share of all passages in this conversation. Call ``total`` first."""
        return self._shares[thread_id]

    def check_places(self, db: Tables, thread_ids: Iterable[str]) -> None:
        """Compare the index of places with the expected sums of these conversations. Call ``total`` first.

        Raises:
            FoldDamaged: an entry is missing or wrong.
        """
        for thread_id in {*thread_ids} - self._threads:
            numbers_at(db, thread_id, stored_thread(db, thread_id), ())
            self._threads.add(thread_id)

    def places(self, db: Tables, thread_id: str) -> Places:
        """Return the places of the passages of a conversation, and maybe of erased ones. Call ``total`` first."""
        if sum(one.size for one in self._places.values()) > PLACES_KEPT:
            self._places = {}
        known = self._places.get(thread_id, _ThreadPlaces(0, -1, {}))
        found, last = db.execute(_OF_THREAD, (thread_token(thread_id), known.last)).fetchone()
        if last is not None:
            numbers = json.loads(found)
            group_by_segment(numbers, known.places)
            size = known.size + len(numbers)
            self._places[thread_id] = _ThreadPlaces(size, last, known.places)
        return known.places

    def frequencies(self, db: Tables, tokens: Sequence[str]) -> dict[str, int]:
        """Map each stored token to its number of passages. Call ``total`` first.

        Raises:
            FoldDamaged: the postings have more or fewer passages.
        """
        terms = {token: term_of(token) for token in tokens}
        found = dict(db.execute(_FREQUENCIES, (json.dumps([*terms.values()]),)).fetchall())
        for token in terms.keys() - self._tokens:
            (posted,) = db.execute(_POSTED, (terms[token],)).fetchone()
            if posted != found.get(terms[token], 0):
                raise FoldDamaged(f"{token!r} leads to other passages than those that have it")
            self._tokens.add(token)
        return {token: found[term] for token, term in terms.items() if term in found}

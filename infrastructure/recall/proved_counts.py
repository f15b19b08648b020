"""Counts that were verified in a database of the recall index, and what was read from it."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from refold.application.ports.recall_index import Filters, Visible
from refold.application.recall.passages import Passage
from refold.application.recall.ranking import accepting
from refold.infrastructure.projection_store.checkpoint import (
    POSITIONS,
    Progress,
    nowhere,
    progress_in,
    reading_from,
)
from refold.infrastructure.projection_store.row_checksums import FoldDamaged, storable
from refold.infrastructure.projection_store.tables import Tables

from .index_tables import (
    IS_THERE,
    PASSAGES,
    PROJECTIONS,
    numbers_at,
    passage_of,
    posted_before,
    stored_thread,
    term_of,
    terms_of,
    thread_token,
)
from .posted_runs import Places, PostedRuns, group_by_segment
from .segments import passages_between

_OF_THREAD = f"""SELECT json_group_array(number), max(position) FROM {PASSAGES}
    WHERE thread = ? AND position > ?"""

PLACES_KEPT = 200_000
"""Number of passages above which the places of conversations are read again."""
NO_NUMBER = 1 << 62
"""Larger than the number of any passage."""
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


class Waiting:
    """Passages whose postings are not written yet."""

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self._stop = first
        self.count = 0
        self.numbers: dict[int, list[int]] = {}
        """Passages with each term."""

    def read(self, db: Tables) -> None:
        """Add the passages that are new."""
        for number, tokens, _ in passages_between(db, self._stop, NO_NUMBER):
            self._stop = number + 1
            self.count += 1
            for term in terms_of(tokens):
                self.numbers.setdefault(term, []).append(number)


class _ThreadPlaces(NamedTuple):
    """The places of the passages of a conversation up to a position."""

    size: int
    last: int
    places: dict[int, set[float]]


class Proved:
    """Counts that were verified in a database. Verifying all of them takes a while.

    They stay right when the same connection folds events in, because a fold changes all of them together.
    After a commit of another connection they are verified again.
    """

    def __init__(self) -> None:
        self._state: tuple[object, ...] = ()
        self._progress: Progress | None = None
        self._read: tuple[object, Progress] = None, nowhere(PROJECTIONS)
        """Rows of the checkpoint that was read last, and what they contain."""
        self._threads: set[str | None] = set()
        """Conversations whose passages were counted, and None if all were."""
        self._shares: dict[str | None, float] = {}
        """Shares of all passages, as of the checkpoint."""
        self._places: dict[str, _ThreadPlaces] = {}
        self._read_from: object = 0
        self.opened = Opened()
        self.waiting = Waiting(-1)
        self.posted = PostedRuns()

    def total(self, db: Tables, thread_id: str | None) -> int:
        """Return the number of passages, after checking that none of this conversation, or of all, is
        missing.

        Raises:
            FoldDamaged: passages are missing.
        """
        progress = self._read_progress(db)
        state = (db, db.execute("PRAGMA data_version").fetchone()[0])
        if state != self._state:
            self._state, self._threads, self._places = state, set(), {}
            self._progress, self.opened, self.waiting = None, Opened(), Waiting(-1)
            self.posted = PostedRuns()
        if progress != self._progress:
            self._progress, self._shares = progress, {}
            self._open(db, posted_before(progress.number), progress.totals[PASSAGES].rows)
        self.count(db, thread_id)
        return progress.totals[PASSAGES].rows

    def _read_progress(self, db: Tables) -> Progress:
        """Return the stored checkpoint. It is read again only if it has changed."""
        rows = db.execute(f"SELECT * FROM {{{POSITIONS}}}").fetchall()
        if rows != self._read[0]:
            self._read = rows, progress_in(rows, PROJECTIONS)
        return self._read[1]

    def count(self, db: Tables, thread_id: str | None) -> None:
        """Check that no passage of a conversation, or of all, is missing. Call ``total`` first.

        Raises:
            FoldDamaged: passages are missing.
        """
        if thread_id not in self._shares and self._progress is not None:
            total = self._progress.totals[PASSAGES].rows
            count = self._count(db, thread_id, total)
            self._shares[thread_id] = count / total if total else 1.0

    def _open(self, db: Tables, first: int, total: int) -> None:
        """Forget the passages that were read if something was erased since, and messages that were not there.

        Passages from ``first`` on wait for their postings.

        Raises:
            FoldDamaged: not all of so many passages have postings or wait for them.
        """
        read_from = reading_from(db)
        if read_from != self._read_from:
            self._read_from, self.opened, self.waiting = read_from, Opened(), Waiting(-1)
        self.opened.empty = set()
        if self.waiting.first != first:
            self.waiting = Waiting(first)
            self.posted.read(db)
        self.waiting.read(db)
        if (count := self.posted.rows + self.waiting.count) != total:
            raise FoldDamaged(f"{count} passages have postings, and not {total}")

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
            FoldDamaged: a row of postings was changed, or is missing.
        """
        self.posted.limit()
        terms = {token: term_of(token) for token in tokens}
        counts = self.posted.counts(db, {*terms.values()})
        for term in counts:
            counts[term] += len(self.waiting.numbers.get(term, ()))
        return {token: counts[term] for token, term in terms.items() if counts[term]}


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
            if all_there and not all(passages):
                raise FoldDamaged("a passage that the words lead to is missing")
            lets = self._is_accepted if self._visible is None else self._lets
            # The row of an erased message has no tokens.
            found += [p for p in passages if p is not None and p.tokens and lets(p)]
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
        numbered = self._opened.passages
        for row in self._db.execute(_NEIGHBOURS, values).fetchall():
            passage = numbered.get(row[0]) or self._opened.keep(passage_of(row))
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
        return self._is_accepted(passage) and (
            visible is None or visible.lets(passage.owner, passage.thread_id)
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

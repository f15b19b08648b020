"""Search the postings for passages with the tokens of a query, best first."""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from refold.application.ports.recall_index import NO_FILTERS, Filters, Found, Visible
from refold.application.recall.passages import Passage
from refold.application.recall.ranking import accepts
from refold.infrastructure.projection_store.row_checksums import FoldDamaged, open_row, storable
from refold.infrastructure.projection_store.tables import Tables

from .index_tables import (
    IS_THERE,
    LOCAL_BITS,
    PASSAGES,
    Posting,
    place_of,
    postings_at,
    postings_of,
    term_of,
    thread_token,
)
from .proved_counts import Opened, Place, Places, Proved, group_by_segment

COMMON = 2_000
"""Number of passages from which on a token is common.

If other tokens found enough passages, a common token finds no further ones.
"""
ENOUGH = 8
"""Multiple of the wanted number of passages at which enough passages are found."""
_FEW = 12
"""Ratio of a posting's size to the number of known places. Above it, each place is looked up by itself."""
_MARGIN = 1e-9
"""Share by which sums of weights may differ because they were added in another order, and far more."""


def best_first(
    db: Tables,
    frequencies: Mapping[str, int],
    scope: Places | None,
    total: int,
    wanted: int,
    most: int | None = None,
) -> Iterator[int]:
    """Yield the numbers of passages with at least one of these tokens. ``scope`` limits them, if not None.

    They are sorted by the sum of the weights of their tokens, rare tokens weighing more; newer passages
    come first if the sums are equal. A token counts once per passage: its frequency matters only in the
    ranking. With ``most``, only so many are sure to be found, in the same order, and much less is read.
    """
    ordered = sorted(frequencies.items(), key=lambda known: known[1])
    weights = [math.log(1 + total / passages) for _, passages in ordered]
    found = _Weighed(most)
    finds_more = True
    for at, (token, passages) in enumerate(ordered):
        left = sum(weights[at:])
        if finds_more:
            is_common = passages > COMMON and found.count > wanted * ENOUGH
            finds_more = not is_common and not found.is_certain(left, passages)
        if finds_more:
            for posting in _postings(db, term_of(token), scope):
                limits = None if scope is None else scope[posting.segment]
                found.add(posting, weights[at], limits)
        else:
            found.drop_hopeless(left)
            for posting in _postings(db, term_of(token), found.segments):
                found.raise_known(posting, weights[at])
    return found.best_first()


class _Weighed:
    """Passages by the sum of the weights of their tokens, while the tokens are read, the rarest first."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        """Number of passages that are wanted, or None for all."""
        self.segments: dict[int, dict[float, set[int]]] = {}
        """Places in each segment by their weight, because many passages have the same tokens."""

    @property
    def count(self) -> int:
        """Number of passages."""
        return sum(self._counts().values())

    def add(self, posting: Posting, weight: float, limits: set[int] | None) -> None:
        """Add the weight of a token to all passages of a posting. ``limits`` has others, if not None."""
        having = set(posting.locals) if limits is None else limits.intersection(posting.locals)
        known = self.segments.setdefault(posting.segment, {})
        _raise(known, having, weight)
        if having:
            known.setdefault(weight, set()).update(having)

    def raise_known(self, posting: Posting, weight: float) -> None:
        """Add the weight of a token to the passages of a posting that other tokens have found."""
        known = self.segments[posting.segment]
        if sum(map(len, known.values())) * _FEW < len(posting.locals):
            having = {local for places in known.values() for local in places if posting.has(local)}
        else:
            having = set(posting.locals)
        _raise(known, having, weight)

    def is_certain(self, left: float, passages: int) -> bool:
        """Return whether no passage without any of the tokens so far can be among the best.

        ``left`` is the sum of the weights of the other tokens. The next one has so many passages: if they are
        few, reading them is faster than counting.
        """
        return self._most is not None and passages > self._most and self._least() > left

    def drop_hopeless(self, left: float) -> None:
        """Drop the passages that cannot be among the best any more, even with all other tokens."""
        if (least := self._least() - left) > 0:
            for segment, known in [*self.segments.items()]:
                kept = {weight: places for weight, places in known.items() if weight >= least}
                self.segments[segment] = kept
                if not kept:
                    del self.segments[segment]

    def _counts(self) -> Mapping[float, int]:
        """Return the number of passages with each weight."""
        counts = defaultdict[float, int](int)
        for known in self.segments.values():
            for weight, places in known.items():
                counts[weight] += len(places)
        return counts

    def _least(self) -> float:
        """Return a weight that the wanted number of passages reach, or 0 if there are not so many."""
        lacking = math.inf if self._most is None else self._most
        counts = self._counts()
        for weight in sorted(counts, reverse=True):
            lacking -= counts[weight]
            if lacking <= 0:
                return weight * (1 - _MARGIN)
        return 0.0

    def best_first(self) -> Iterator[int]:
        """Yield the numbers of the passages in their order."""
        newest_first = sorted(self.segments.items(), reverse=True)
        for weight in sorted(self._counts(), reverse=True):
            for segment, known in newest_first:
                for local in sorted(known.get(weight, ()), reverse=True):
                    yield segment << LOCAL_BITS | local


def _raise(known: dict[float, set[int]], having: set[int], weight: float) -> None:
    """Add a weight to the places that are known, and remove these from ``having``."""
    raised: list[tuple[float, set[int]]] = []
    for before, places in known.items():
        if both := places & having:
            places -= both
            having -= both
            raised.append((before + weight, both))
    for after, places in raised:
        known.setdefault(after, set()).update(places)


def _postings(db: Tables, term: int, segments: Collection[int] | None) -> Iterator[Posting]:
    if segments is None:
        return postings_of(db, term)
    return postings_at(db, [place_of(segment, term) for segment in segments])


NEIGHBOUR_PARTS = 4
"""Maximum number of passages of a long message next to a candidate that are read."""
MORE = 10
"""Number of passages that are read at least if the filters did not let enough through."""
MOST = 0.5
"""Share of all passages from which on a conversation is searched like the whole index."""

_CONDITIONS = {
    "thread": "p.thread = :thread AND p.thread_id = :thread_id",
    "roles": "p.role IN (SELECT value FROM json_each(:roles))",
    "kinds": "p.kind IN (SELECT value FROM json_each(:kinds))",
    "tools": "p.tool IN (SELECT value FROM json_each(:tools))",
    "since": "p.at >= :since",
    "until": "p.at < :until",
    "first": "p.position >= :first AND p.position < :stop",
    "seen": """(p.thread_id = :home OR p.owner = :owner OR (p.owner = '' AND
        :is_owned = (p.thread_id IN (SELECT value FROM json_each(:seen)))))""",
    "leave_out": "p.position NOT IN (SELECT value FROM json_each(:leave_out))",
}
"""Conditions of passages by the parameter that must be given for each."""
_OF_OWNER = f"SELECT number FROM {PASSAGES} WHERE owner = ? AND owner != ''"
_FIRST_AFTER = f"""SELECT number FROM {PASSAGES} WHERE thread = ? AND position >= ?
    ORDER BY position, part LIMIT 1"""
_NEIGHBOURS = f"""SELECT p.* FROM {PASSAGES} AS p
    WHERE p.thread = ? AND p.position IN (SELECT value FROM json_each(?)) AND p.part < ?
    ORDER BY p.position, p.part"""

_NUMBERED = f"SELECT * FROM {PASSAGES} WHERE number IN (SELECT value FROM json_each(?))"


def find(
    db: Tables,
    tokens: Sequence[str],
    filters: Filters,
    limit: int,
    also: Sequence[int],
    proved: Proved,
) -> Found:
    """Find the best passages with these tokens that pass the filters."""
    total = proved.total(db, filters.thread_id)
    frequencies = proved.frequencies(db, list(dict.fromkeys(tokens)))
    scope = _scope(db, filters, proved)
    best = partial(best_first, db, frequencies, scope, total, limit)
    numbers = _in_range(db, filters, _numbers(best, limit, filters))
    proved.opened.limit()
    read = _Reading(db, proved.opened, _stored_filters(filters))
    found = _select_with_tokens(read.let_through(numbers, limit), frequencies)
    there = {passage.number for passage in found}
    others = [number for number in dict.fromkeys(also) if number not in there]
    found += read.let_through(iter(others), len(others), all_there=False)
    proved.check_places(db, {passage.thread_id for passage in found})
    return Found(found, read.neighbours(found), frequencies, total)


def _numbers(
    best: Callable[[int | None], Iterator[int]], limit: int, filters: Filters
) -> Iterator[int]:
    """Yield all numbers. If all of the best will pass, and no more are wanted, no others are found."""
    first = limit if filters._replace(thread_id=None, visible=None) == NO_FILTERS else 0
    if first:
        yield from islice(best(first), first)
    yield from islice(best(None), first, None)


def _in_range(db: Tables, filters: Filters, numbers: Iterator[int]) -> Iterator[int]:
    """Leave out the passages of a conversation after the last position that the filters let through.

    So their rows are not read. In a conversation, numbers grow with positions.
    """
    if filters.thread_id is None or filters.positions is None:
        return numbers
    values = (thread_token(filters.thread_id), filters.positions[1])
    first = db.execute(_FIRST_AFTER, values).fetchone()
    return numbers if first is None else (number for number in numbers if number < first[0])


def _scope(db: Tables, filters: Filters, proved: Proved) -> Places | None:
    """Return the passages to search, or None for all."""
    visible = filters.visible
    if filters.thread_id is not None:
        threads = {filters.thread_id}
    elif visible is not None and visible.owner is not None:
        threads = {*visible.threads, *filter(None, (visible.home,))}
    else:
        return None
    for thread_id in sorted(threads):
        proved.total(db, thread_id)
    # Looking up the conversations as well costs more than skipping a few passages of others.
    if sum(proved.share(thread_id) for thread_id in threads) >= MOST:
        return None
    if filters.thread_id is not None:
        return proved.places(db, filters.thread_id)
    places: dict[int, set[int]] = {}
    for thread_id in threads:
        for segment, more in proved.places(db, thread_id).items():
            places.setdefault(segment, set()).update(more)
    if visible is not None and visible.owner:
        rows = db.execute(_OF_OWNER, (storable(visible.owner),))
        group_by_segment((number for (number,) in rows), places)
    return places


def in_order(
    db: Tables, after: int, limit: int, filters: Filters, proved: Proved
) -> Sequence[Passage]:
    """Return the next passages after a number that pass the filters."""
    proved.total(db, filters.thread_id)
    parameters = {**_parameters(filters), "after": after, "limit": limit}
    condition = _let_through_by(parameters)
    query = f"""SELECT p.* FROM {PASSAGES} AS p WHERE p.number > :after AND {condition}
        ORDER BY p.number LIMIT :limit"""
    return _passages(db.execute(query, parameters).fetchall())


def every_digest(db: Tables, proved: Proved) -> frozenset[str]:
    """Return the digests of all texts."""
    proved.total(db, None)
    rows = db.execute(f"SELECT digest FROM {PASSAGES} WHERE {IS_THERE}")
    return frozenset(digest for (digest,) in rows)


def _select_with_tokens(found: Sequence[Passage], tokens: Mapping[str, int]) -> list[Passage]:
    """Return the passages that have one of the tokens, because two tokens may share a posting."""
    padded = [f" {token} " for token in tokens]
    return [p for p in found if any(token in p.tokens for token in padded)]


class _Reading:
    """Reads passages for one search. Those that were read before by the same connection are not read again."""

    def __init__(self, db: Tables, opened: Opened, filters: Filters) -> None:
        """Create the reading. ``filters`` has names as they are stored."""
        self._db = db
        self._opened = opened
        self._filters = filters

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
        for place in wanted.keys() - known.keys() - empty:
            lacking.setdefault(place[0], []).append(place[1])
        for thread_id, positions in lacking.items():
            self._read_messages(thread_id, positions)
        return {place: known[place] for place in wanted if place in known}

    def _read_messages(self, thread_id: str, positions: Sequence[int]) -> None:
        values = (thread_token(thread_id), json.dumps(positions), NEIGHBOUR_PARTS)
        read: dict[Place, list[Passage]] = {(thread_id, position): [] for position in positions}
        for row in self._db.execute(_NEIGHBOURS, values).fetchall():
            passage = self._opened.keep(_passage(row))
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
                self._opened.keep(_passage(row))
        return [known.get(number) for number in numbers]

    def _lets(self, passage: Passage) -> bool:
        visible = self._filters.visible
        # The row of an erased message has no tokens.
        return (
            bool(passage.tokens)
            and accepts(self._filters, passage)
            and (visible is None or visible.lets(passage.owner, passage.thread_id))
        )


def _parameters(filters: Filters) -> dict[str, Any]:
    thread_id, positions = filters.thread_id, filters.positions or (None, None)
    return {
        "thread": None if thread_id is None else thread_token(thread_id),
        "thread_id": storable(thread_id),
        "roles": _list_names(filters.roles),
        "kinds": _list_names(filters.kinds),
        "tools": _list_names(filters.tools),
        "since": filters.since,
        "until": filters.until,
        "first": positions[0],
        "stop": positions[1],
        **_visible_parameters(filters.visible),
        "leave_out": json.dumps(sorted(filters.leave_out)) if filters.leave_out else None,
    }


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


def _visible_parameters(visible: Visible | None) -> dict[str, Any]:
    if visible is None:
        return {"seen": None, "home": None, "owner": None, "is_owned": None}
    threads = [storable(thread_id) for thread_id in sorted(visible.threads)]
    return {
        "seen": json.dumps(threads),
        "home": storable(visible.home),
        # An empty owner means that the message has none of its own.
        "owner": storable(visible.owner or None),
        "is_owned": visible.owner is not None,
    }


def _let_through_by(parameters: Mapping[str, Any]) -> str:
    """Return the condition of the passages that the parameters let through."""
    given = (text for name, text in _CONDITIONS.items() if parameters[name] is not None)
    return " AND ".join((f"p.{IS_THERE}", *given))


def _list_names(names: frozenset[str]) -> str | None:
    return json.dumps([storable(name) for name in sorted(names)]) if names else None


def _passages(rows: Sequence[tuple[Any, ...]]) -> list[Passage]:
    return [_passage(row) for row in rows]


def _passage(row: Sequence[Any]) -> Passage:
    values: tuple[Any, ...] = open_row(PASSAGES, row)
    return Passage._make((*values[:12], bool(values[12]), *values[13:16]))

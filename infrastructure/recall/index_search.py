"""Search the postings for passages with the tokens of a query, best first."""

import json
import math
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby, islice
from typing import Any

from refold.application.ports.recall_index import NO_FILTERS, Filters, Found, Visible
from refold.application.recall.passages import Passage
from refold.infrastructure.projection_store.row_checksums import storable
from refold.infrastructure.projection_store.tables import Tables

from .index_tables import (
    IS_THERE,
    LOCAL_BITS,
    PASSAGES,
    Places,
    group_by_segment,
    local_of,
    passage_of,
    segment_of,
    term_of,
    thread_token,
)
from .posted_runs import PostedRuns, Posting
from .proved_counts import Proved, Reading

COMMON = 2_000
"""Number of passages from which on a token is common.

If other tokens found enough passages, a common token finds no further ones.
"""
ENOUGH = 8
"""Multiple of the wanted number of passages at which enough passages are found."""
AT_ONCE = 4
"""Number of segments in which a common token is looked up before the best passages are compared."""
MOST_READ = 200_000
"""Number of places of common tokens after which older passages are not searched for them.

It is reached only in a very long log, if no rare token and too few passages with all common ones are there.
"""
_FEW = 12
"""Ratio of a posting's size to the number of known places. Above it, each place is looked up by itself."""
_MARGIN = 1e-9
"""Share by which sums of weights may differ because they were added in another order, and far more."""


Weighed = dict[int, dict[float, set[int]]]
"""Places in each segment by their weight, because many passages have the same tokens."""


class Postings:
    """Postings, and the passages that wait for theirs as if they had them."""

    def __init__(
        self, db: Tables, posted: PostedRuns, waiting: Mapping[int, Sequence[int]]
    ) -> None:
        self._db = db
        self._posted = posted
        self._waiting = waiting

    def of(self, term: int, segments: Collection[int] | None) -> Iterator[Posting]:
        """Yield the postings of a term in these segments, or in all."""
        yield from self._posted.postings(self._db, term, segments)
        for segment, numbers in groupby(self._waiting.get(term, ()), segment_of):
            if segments is None or segment in segments:
                yield Posting(segment, array("I", map(local_of, numbers)))

    def among(self, term: int, known: Weighed) -> Iterator[Posting]:
        """Yield the postings of a term in these segments, of which only the places that are known count."""
        return self.of(term, known)

    def segments(self) -> set[int]:
        """Return all segments."""
        waiting = {segment_of(number) for numbers in self._waiting.values() for number in numbers}
        return waiting | self._posted.segments()


def best_first(
    postings: Postings,
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
    terms = [(term_of(token), weight) for (token, _), weight in zip(ordered, weights, strict=True)]
    found = _Weighed(most)
    enough = wanted * ENOUGH
    finds_more = True
    for at, (_, passages) in enumerate(ordered):
        left = sum(weights[at:])
        if finds_more:
            is_common = passages > COMMON and found.count > enough
            # No passage weighs more than all tokens so far.
            is_certain = sum(weights[:at]) > left and found.is_certain(left, passages)
            finds_more = not is_common and not is_certain
        if finds_more and most is not None and passages > COMMON:
            if _NewestFirst(postings, found, terms[at:], scope).find(enough, left):
                break
        elif finds_more:
            for posting in postings.of(terms[at][0], scope):
                limits = None if scope is None else scope[posting.segment]
                found.add(posting, weights[at], limits)
        else:
            found.drop_hopeless(left)
            for posting in postings.among(terms[at][0], found.segments):
                found.raise_known(posting, weights[at])
    return found.best_first()


class _NewestFirst:
    """Finds passages by a common token, in the newest segments first, and in no more than needed."""

    def __init__(
        self,
        postings: Postings,
        found: "_Weighed",
        terms: Sequence[tuple[int, float]],
        scope: Places | None,
    ) -> None:
        """Create the search. ``terms`` are the token and those that are more common, with their weights."""
        self._source = postings
        self._found = found
        self._terms = terms
        self._scope = scope
        self._read = 0
        """Number of places that were read."""

    def find(self, enough: int, left: float) -> bool:
        """Find passages. Return whether all tokens were weighed.

        If more than ``enough`` passages are found, the other tokens find no further ones, and are weighed
        as well. The search ends when older passages cannot be among the best, because ``left`` is the most
        that they can weigh, or when ``MOST_READ`` places were read.
        """
        segments = sorted(self._source.segments() if self._scope is None else self._scope)
        weighed, waiting = list[int](), list[int]()
        while segments:
            some, segments = segments[-AT_ONCE:], segments[:-AT_ONCE]
            waiting += some
            for posting in self._counted(self._source.of(self._terms[0][0], some)):
                limits = None if self._scope is None else self._scope[posting.segment]
                self._found.add(posting, self._terms[0][1], limits)
            if self._found.count > enough:
                self._weigh(self._terms[1:], waiting)
                weighed += waiting
                waiting = []
                if self._read > MOST_READ or self._found.are_best(weighed, left):
                    break
        if waiting:
            return False
        self._weigh(self._terms, segments)
        return True

    def _weigh(self, terms: Sequence[tuple[int, float]], segments: Collection[int]) -> None:
        """Add the weights of tokens to the passages that are known in these segments."""
        known = self._found.segments
        there = {segment: known[segment] for segment in segments if segment in known}
        for term, weight in terms if there else ():
            for posting in self._counted(self._source.among(term, there)):
                self._found.raise_known(posting, weight)

    def _counted(self, postings: Iterator[Posting]) -> Iterator[Posting]:
        for posting in postings:
            self._read += len(posting.locals)
            yield posting


class _Weighed:
    """Passages by the sum of the weights of their tokens, while the tokens are read, the rarest first."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        """Number of passages that are wanted, or None for all."""
        self.segments: Weighed = {}
        self._counted: Mapping[float, int] | None = None

    @property
    def count(self) -> int:
        """Number of passages."""
        return sum(self._counts().values())

    def add(self, posting: Posting, weight: float, limits: set[int] | None) -> None:
        """Add the weight of a token to all passages of a posting. ``limits`` has others, if not None."""
        having = posting.places if limits is None else posting.places & limits
        known = self.segments.setdefault(posting.segment, {})
        self._counted = None
        if raised := _raise(known, having, weight):
            having = having.difference(*raised)
        if having:
            known[weight] = known[weight] | having if weight in known else set(having)

    def raise_known(self, posting: Posting, weight: float) -> None:
        """Add the weight of a token to the passages of a posting that other tokens have found."""
        known = self.segments[posting.segment]
        self._counted = None
        if posting.are_few:
            _raise(known, posting.places, weight)
            return
        there = set[int]().union(*known.values())
        if len(there) * _FEW < len(posting.locals):
            _raise(known, frozenset(filter(posting.has, there)), weight)
        else:
            _raise(known, frozenset(there.intersection(posting.locals)), weight)

    def is_certain(self, left: float, passages: int) -> bool:
        """Return whether no passage without any of the tokens so far can be among the best.

        ``left`` is the sum of the weights of the other tokens. The next one has so many passages: if they are
        few, reading them is faster than counting.
        """
        return self._most is not None and passages > self._most and self._least() > left

    def are_best(self, segments: Collection[int], left: float) -> bool:
        """Return whether enough passages of these segments weigh at least ``left``."""
        lacking = math.inf if self._most is None else self._most
        for segment in segments:
            for weight, places in self.segments.get(segment, {}).items():
                lacking -= len(places) if weight >= left else 0
        return lacking <= 0

    def drop_hopeless(self, left: float) -> None:
        """Drop the passages that cannot be among the best any more, even with all other tokens."""
        if (least := self._least() - left) > 0:
            self._counted = None
            for segment, known in [*self.segments.items()]:
                kept = {weight: places for weight, places in known.items() if weight >= least}
                self.segments[segment] = kept
                if not kept:
                    del self.segments[segment]

    def _counts(self) -> Mapping[float, int]:
        """Return the number of passages with each weight."""
        if self._counted is None:
            self._counted = counts = dict[float, int]()
            for known in self.segments.values():
                for weight, places in known.items():
                    counts[weight] = counts.get(weight, 0) + len(places)
        return self._counted

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


def _raise(
    known: dict[float, set[int]], having: frozenset[int], weight: float
) -> Sequence[set[int]]:
    """Add a weight to the places that are known, and return these."""
    raised: list[tuple[float, set[int]]] = []
    for before, places in known.items():
        if both := places & having:
            places -= both
            raised.append((before + weight, both))
    for after, places in raised:
        known[after] = known[after] | places if after in known else places
    return [places for _, places in raised]


MORE_FOUND = 16
"""Ratio of the number of passages that are found to those before, if the filters did not let enough through."""
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
    postings = Postings(db, proved.posted, proved.waiting.numbers)
    best = partial(best_first, postings, frequencies, scope, total, limit)
    numbers = _in_range(db, filters, wanted_numbers(best, limit, filters))
    proved.opened.limit()
    read = Reading(db, proved.opened, filters)
    found = _select_with_tokens(read.let_through(numbers, limit), frequencies)
    there = {passage.number for passage in found}
    others = [number for number in dict.fromkeys(also) if number not in there]
    found += read.let_through(iter(others), len(others), all_there=False)
    proved.check_places(db, {passage.thread_id for passage in found})
    neighbours = read.neighbours(found)
    everything = chain(found, *neighbours.values())
    having = _having(postings, frequencies, [passage.number for passage in everything])
    return Found(found, neighbours, frequencies, total, having)


def _having(
    postings: Postings, frequencies: Mapping[str, int], numbers: Sequence[int]
) -> Mapping[str, Collection[int]]:
    """Return which of these passages have each token that is not common, by their postings."""
    places: dict[int, set[int]] = {}
    group_by_segment(numbers, places)
    having: dict[str, set[int]] = {}
    for token, passages in frequencies.items():
        if passages <= COMMON:
            having[token] = found = set[int]()
            for posting in postings.of(term_of(token), places):
                base = posting.segment << LOCAL_BITS
                found.update([base | place for place in posting.places & places[posting.segment]])
    return having


def wanted_numbers(
    best: Callable[[int | None], Iterator[int]], limit: int, filters: Filters
) -> Iterator[int]:
    """Yield all numbers. As many are found as are wanted, and more only if the filters refuse some."""
    is_free = filters._replace(thread_id=None, visible=None) == NO_FILTERS
    known, most = 0, limit if is_free else 4 * limit
    while most:
        numbers = list(islice(best(most), known, most))
        yield from numbers
        if known + len(numbers) < most:
            return
        known, most = most, MORE_FOUND * most


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
        proved.count(db, thread_id)
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


def _select_with_tokens(found: list[Passage], tokens: Mapping[str, int]) -> list[Passage]:
    """Return the passages that have one of the tokens, because two tokens may share a posting."""
    lacking = found
    # The token that most passages have first, so that few passages are looked at again.
    for token in sorted(tokens, key=tokens.__getitem__, reverse=True):
        padded = f" {token} "
        lacking = [passage for passage in lacking if padded not in passage.tokens]
    refused = {passage.number for passage in lacking}
    return [passage for passage in found if passage.number not in refused]


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
    return [passage_of(row) for row in rows]

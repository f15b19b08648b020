"""Search the postings for passages with the tokens of a query, best first."""

import json
import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import chain, groupby, islice
from typing import Any, NamedTuple

from refold.application.ports.recall_index import Filters, Found, Judge, Visible
from refold.application.recall.passages import PARTS, Passage
from refold.application.recall.ranking import is_only_by_thread
from refold.infrastructure.projection_store.row_checksums import storable
from refold.infrastructure.projection_store.tables import Tables

from .index_tables import (
    EVENTS,
    IS_THERE,
    PASSAGES,
    SEGMENT_BITS,
    passage_of,
    segment_of,
    term_of,
    thread_token,
)
from .posted_runs import (
    Places,
    PostedRuns,
    Posting,
    WeighedPassages,
    group_by_segment,
    place_of,
)
from .proved_counts import Proved, Reading

COMMON = 2_000
"""Number of passages from which on a token is common.

If other tokens found enough passages, a common token finds no further ones.
"""
ENOUGH = 8
"""Multiple of the wanted number of passages at which enough passages are found."""
FEW_PASSAGES = 20_000
"""Number of passages up to which they are searched at once, and not by segments."""
AT_ONCE = 4
"""Number of segments in which a common token is looked up before the best passages are compared."""
MOST_READ = 200_000
"""Number of places of common tokens after which older passages are not searched for them.

It is reached only in a very long log, if no rare token and too few passages with all common ones are there.
"""


WITH_NEIGHBOURS = 20
"""Number of the best passages by words whose neighbours are read.

More of them bring no further answers among the first five.
"""


Weighed = Mapping[int, Iterable[float]]
"""The places that are known in each segment."""


class Postings:
    """Postings, and the passages that wait for theirs as if they had them."""

    knows_whole = True
    """True if ``whole`` returns the passages with a term."""

    def __init__(
        self, db: Tables, posted: PostedRuns, waiting: Mapping[int, Sequence[int]]
    ) -> None:
        self._db = db
        self._posted = posted
        self._waiting = waiting
        self._whole: dict[int, Set[float]] = {}

    def of(self, term: int, segments: Collection[int] | None) -> Iterable[Posting]:
        """Return the postings of a term in these segments, or in all."""
        posted = self._posted.postings(self._db, term, segments)
        if term not in self._waiting:
            return posted
        waiting = (
            Posting(segment, array("d", map(place_of, numbers)))
            for segment, numbers in groupby(self._waiting[term], segment_of)
            if segments is None or segment in segments
        )
        return [*posted, *waiting]

    def whole(self, term: int) -> Set[float]:
        """Return all passages with a term that few have, by their places in the log."""
        known = self._whole.get(term)
        if known is None:
            known = self._posted.whole(self._db, term)
            if term in self._waiting:
                known = known.union([number / PARTS for number in self._waiting[term]])
            self._whole[term] = known
        return known

    def having(self, term: int, whole: Iterable[float]) -> Set[float]:
        """Return which of these passages have a term. Many may have it."""
        ordered, found = sorted(whole), set[float]()
        for posting in self.of(term, {int(place) >> SEGMENT_BITS for place in ordered}):
            base = posting.segment << SEGMENT_BITS
            begin, end = bisect_left(ordered, base), bisect_left(ordered, base + EVENTS)
            places = {place - base for place in ordered[begin:end]}
            found.update([base + place for place in posting.among(places)])
        return found

    def among(self, term: int, known: Weighed) -> Iterable[Posting]:
        """Return the postings of a term in these segments, of which only the places that are known count."""
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
    is_whole = scope is None and postings.knows_whole and total <= FEW_PASSAGES
    found = WeighedPassages(most, is_whole=is_whole)
    enough = wanted * ENOUGH
    finds_more = True
    for at, (_, passages) in enumerate(ordered):
        left, term, is_rare = sum(weights[at:]), terms[at][0], passages <= COMMON
        if finds_more:
            is_common = not is_rare and found.count > enough
            # No passage weighs more than all tokens so far.
            is_certain = sum(weights[:at]) > left and found.is_certain(left, passages)
            finds_more = not is_common and not is_certain
        if not finds_more:
            found.drop_hopeless(left)
        elif not is_rare:
            found.part()
        if found.is_whole:
            whole = postings.whole(term) if is_rare else postings.having(term, found.known(0))
            found.weigh_whole(whole, weights[at], finds_more=finds_more)
        elif finds_more and most is not None and not is_rare:
            if _NewestFirst(postings, found, terms[at:], scope).find(enough, left):
                break
        elif finds_more:
            for posting in postings.of(term, scope):
                limits = None if scope is None else scope[posting.segment]
                found.add(posting, weights[at], limits)
        else:
            for posting in postings.among(term, found.segments):
                found.raise_known(posting, weights[at])
    return found.best_first()


class _NewestFirst:
    """Finds passages by a common token, in the newest segments first, and in no more than needed."""

    def __init__(
        self,
        postings: Postings,
        found: WeighedPassages,
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

    def _counted(self, postings: Iterable[Posting]) -> Iterator[Posting]:
        for posting in postings:
            self._read += len(posting.places)
            yield posting


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


class Search(NamedTuple):
    """The arguments of ``RecallIndex.find``."""

    tokens: Sequence[str]
    filters: Filters
    limit: int
    also: Sequence[int]
    judge: Judge | None

    def with_neighbours(self, found: Sequence[Passage]) -> Sequence[Passage]:
        """Return the passages whose neighbours are read.

        Passages that are near in meaning are not the best by words, and a line may be next to any.
        """
        return found if self.also or self.judge else found[:WITH_NEIGHBOURS]


def find(db: Tables, search: Search, proved: Proved) -> Found:
    """Find the best passages with these tokens that pass the filters."""
    tokens, filters, limit, also, judge = search
    total = proved.total(db, filters.thread_id)
    frequencies = proved.frequencies(db, list(dict.fromkeys(tokens)))
    scope = _scope(db, filters, proved)
    postings = Postings(db, proved.posted, proved.waiting.numbers)
    is_whole = scope is None and total <= FEW_PASSAGES
    # Of more passages, or of few conversations, the texts are faster than all postings.
    rare = {t for t, passages in frequencies.items() if passages <= COMMON and is_whole}
    known = {token: postings.whole(term_of(token)) for token in rare}
    stop = _first_after(db, filters)
    if judge is not None and not also:
        after = stop / PARTS
        absent = {t for t, places in known.items() if all(place >= after for place in places)}
        if not judge.may_match(nothing := Found((), {}, frequencies, total), absent):
            return nothing
    best = partial(best_first, postings, frequencies, scope, total, limit)
    # Later passages are not let through. Their rows are not read.
    numbers = (number for number in wanted_numbers(best, limit, filters) if number < stop)
    proved.opened.limit()
    read = Reading(db, proved.opened, filters)
    found = _select_with_tokens(read.let_through(numbers, limit), frequencies, known)
    there = {passage.number for passage in found}
    others = [number for number in dict.fromkeys(also) if number not in there]
    found += read.let_through(iter(others), len(others), all_there=False)
    proved.check_places(db, {passage.thread_id for passage in found})
    if judge is not None:
        without = Found(found, {}, frequencies, total, _having(known, found))
        if not judge.wants_neighbours(without):
            return without
    neighbours = read.neighbours(search.with_neighbours(found))
    having = _having(known, chain(found, *neighbours.values()))
    return Found(found, neighbours, frequencies, total, having)


def _having(
    known: Mapping[str, Set[float]], passages: Iterable[Passage]
) -> Mapping[str, Collection[int]]:
    """Return which of the passages have each token. ``known`` has all that have them, by their places."""
    there = {passage.number / PARTS: passage.number for passage in passages}
    places = frozenset(there)
    return {
        token: frozenset(map(there.__getitem__, places & whole)) for token, whole in known.items()
    }


def wanted_numbers(
    best: Callable[[int | None], Iterator[int]], limit: int, filters: Filters
) -> Iterator[int]:
    """Yield all numbers. As many are found as are wanted, and more only if the filters refuse some.

    Most are never put in order, because no more are taken than are let through.
    """
    known, most = 0, limit if is_only_by_thread(filters) else 4 * limit
    while known < most:
        for number in islice(best(most), known, most):
            known += 1
            yield number
        most = MORE_FOUND * most if known == most else 0


def _first_after(db: Tables, filters: Filters) -> float:
    """Return the first number after the last position that the filters let through, or infinity."""
    # In a conversation, numbers grow with positions.
    if filters.thread_id is None or filters.positions is None:
        return math.inf
    place = thread_token(filters.thread_id), filters.positions[1]
    first = db.execute(_FIRST_AFTER, place).fetchone() or (math.inf,)
    return first[0]


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
    places: dict[int, set[float]] = {}
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


def _select_with_tokens(
    found: list[Passage], tokens: Mapping[str, int], known: Mapping[str, Set[float]]
) -> list[Passage]:
    """Return the passages that have one of the tokens, because two tokens may share a posting.

    ``known`` has the places of all passages with some of the tokens, and maybe of others.
    """
    lacking = found
    # The token that most passages have first, so that few passages are looked at again.
    for token in sorted(tokens, key=tokens.__getitem__, reverse=True):
        padded, having = f" {token} ", known.get(token)
        if having is None:
            lacking = [passage for passage in lacking if padded not in passage.tokens]
        else:
            lacking = [
                p for p in lacking if p.number / PARTS not in having or padded not in p.tokens
            ]
        if not lacking:
            return found
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

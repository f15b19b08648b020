"""Search the postings for passages with the tokens of a query, best first."""

import json
import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from refold.application.ports.recall_index import Filters, Found, Visible
from refold.application.recall.passages import Passage
from refold.infrastructure.projection_store.row_checksums import FoldDamaged, open_row, storable
from refold.infrastructure.projection_store.tables import Tables

from .index_tables import (
    IS_THERE,
    LOCAL_BITS,
    PASSAGES,
    Posting,
    Proved,
    local_of,
    place_of,
    postings_at,
    postings_of,
    segment_of,
    term_of,
    thread_token,
)

COMMON = 2_000
"""Number of passages from which on a token is common.

If other tokens found enough passages, a common token finds no further ones.
"""
ENOUGH = 8
"""Multiple of the wanted number of passages at which enough passages are found."""
_RARE = 12
"""Ratio of a posting's size to the number of known places. Above it, each place is looked up by itself."""

Weights = dict[int, float]
"""Weights by place in a segment."""


def best_first(
    db: Tables,
    frequencies: Mapping[str, int],
    within: Collection[int] | None,
    total: int,
    wanted: int,
) -> Iterator[int]:
    """Yield the numbers of passages with at least one of these tokens. ``within`` limits them, if not
    None.

    They are sorted by the sum of the weights of their tokens, rare tokens weighing more; newer passages
    come first if the sums are equal. A token counts once per passage: its frequency matters only in the
    ranking.
    """
    scope = None if within is None else _group_by_segment(within)
    weights: defaultdict[int, Weights] = defaultdict(dict)
    for token, passages in sorted(frequencies.items(), key=lambda known: known[1]):
        weight = math.log(1 + total / passages)
        is_common = passages > COMMON and sum(map(len, weights.values())) > wanted * ENOUGH
        segments = weights if is_common else scope
        for posting in _postings(db, term_of(token), segments):
            known = weights[posting.segment]
            if is_common:
                found = _shared_places(posting, known)
            elif scope is None:
                found = posting.locals
            else:
                found = scope[posting.segment].intersection(posting.locals)
            before = known.get
            for local in found:
                known[local] = before(local, 0.0) + weight
    flat: Weights = {}
    for segment, known in weights.items():
        base = segment << LOCAL_BITS
        flat.update({base | local: weight for local, weight in known.items()})
    # Sorting is stable, so equal weights stay in the order of the numbers.
    newest_first = sorted(flat, reverse=True)
    newest_first.sort(key=flat.__getitem__, reverse=True)
    return iter(newest_first)


def _postings(db: Tables, term: int, segments: Collection[int] | None) -> Iterator[Posting]:
    if segments is None:
        return postings_of(db, term)
    return postings_at(db, [place_of(segment, term) for segment in segments])


def _shared_places(posting: Posting, known: Weights) -> Iterable[int]:
    """Return the places of a posting that are in ``known``."""
    places = posting.locals
    if len(known) * _RARE > len(places):
        return known.keys() & places
    return [local for local in known if _has(places, local)]


def _has(places: Sequence[int], local: int) -> bool:
    at = bisect_left(places, local)
    return at < len(places) and places[at] == local


def _group_by_segment(numbers: Collection[int]) -> Mapping[int, set[int]]:
    found: defaultdict[int, set[int]] = defaultdict(set)
    for number in numbers:
        found[segment_of(number)].add(local_of(number))
    return found


NEIGHBOUR_PARTS = 4
"""Maximum number of passages of a long message next to a candidate that are read."""
MOST = 0.5
"""Share of all passages from which on a conversation is searched like the whole index."""

_LET_THROUGH = f"""
    p.{IS_THERE}
    AND (:thread IS NULL OR (p.thread = :thread AND p.thread_id = :thread_id))
    AND (:roles IS NULL OR p.role IN (SELECT value FROM json_each(:roles)))
    AND (:kinds IS NULL OR p.kind IN (SELECT value FROM json_each(:kinds)))
    AND (:tools IS NULL OR p.tool IN (SELECT value FROM json_each(:tools)))
    AND (:since IS NULL OR p.at >= :since)
    AND (:until IS NULL OR p.at < :until)
    AND (:first IS NULL OR (p.position >= :first AND p.position < :stop))
    AND (:seen IS NULL OR p.thread_id = :home OR p.owner = :owner OR (p.owner = '' AND
        :is_owned = (p.thread_id IN (SELECT value FROM json_each(:seen)))))
    AND (:leave_out IS NULL OR p.position NOT IN (SELECT value FROM json_each(:leave_out)))
"""
# Rejected ones are included, because a damaged row could have been one of the others.
_NUMBERED = f"""SELECT ({_LET_THROUGH}), p.* FROM json_each(:numbers) AS wanted
    LEFT JOIN {PASSAGES} AS p ON p.number = wanted.value WHERE p.number IS NOT NULL OR :all_there"""
_IN_ORDER = f"""SELECT p.* FROM {PASSAGES} AS p WHERE p.number > :after AND {_LET_THROUGH}
    ORDER BY p.number LIMIT :limit"""
_OF_OWNER = f"SELECT number FROM {PASSAGES} WHERE owner = ? AND owner != ''"
_NEIGHBOURS = f"""SELECT p.* FROM {PASSAGES} AS p
    WHERE p.thread = ? AND p.position IN (SELECT value FROM json_each(?)) AND p.part < ?"""

Place = tuple[str, int]


def find(
    db: Tables,
    tokens: Sequence[str],
    filters: Filters,
    limit: int,
    also: Sequence[int],
    proved: Proved,
) -> Found:
    """Find the best passages with these tokens that pass the filters."""
    parameters = _parameters(filters)
    total = proved.total(db, filters.thread_id)
    frequencies = proved.frequencies(db, list(dict.fromkeys(tokens)))
    within = _limit_passages(db, filters, proved)
    numbers = best_first(db, frequencies, within, total, limit)
    found = _let_through(db, numbers, {**parameters, "all_there": True}, limit)
    found = _select_with_tokens(found, frequencies)
    there = {passage.number for passage in found}
    others = [number for number in dict.fromkeys(also) if number not in there]
    found += _let_through(db, iter(others), {**parameters, "all_there": False}, len(others))
    proved.places(db, (passage.thread_id for passage in found))
    return Found(found, _neighbours(db, found), frequencies, total)


def _limit_passages(db: Tables, filters: Filters, proved: Proved) -> Collection[int] | None:
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
    numbers = {number for thread_id in sorted(threads) for number in proved.numbers(db, thread_id)}
    if filters.thread_id is None and visible is not None and visible.owner:
        rows = db.execute(_OF_OWNER, (storable(visible.owner),))
        numbers.update(number for (number,) in rows)
    return numbers


def in_order(
    db: Tables, after: int, limit: int, filters: Filters, proved: Proved
) -> Sequence[Passage]:
    """Return the next passages after a number that pass the filters."""
    proved.total(db, filters.thread_id)
    parameters = {**_parameters(filters), "after": after, "limit": limit}
    return _passages(db.execute(_IN_ORDER, parameters).fetchall())


def every_digest(db: Tables, proved: Proved) -> frozenset[str]:
    """Return the digests of all texts."""
    proved.total(db, None)
    rows = db.execute(f"SELECT digest FROM {PASSAGES} WHERE {IS_THERE}")
    return frozenset(digest for (digest,) in rows)


def _select_with_tokens(found: Sequence[Passage], tokens: Mapping[str, int]) -> list[Passage]:
    """Return the passages that have one of the tokens, because two tokens may share a posting."""
    padded = [f" {token} " for token in tokens]
    return [p for p in found if any(token in p.tokens for token in padded)]


def _let_through(
    db: Tables, numbers: Iterator[int], parameters: Mapping[str, Any], limit: int
) -> list[Passage]:
    """Return the first ``limit`` passages that pass the filters, in the order of ``numbers``."""
    found: list[Passage] = []
    size = limit
    while len(found) < limit and (wanted := list(islice(numbers, size))):
        rows = db.execute(_NUMBERED, {**parameters, "numbers": json.dumps(wanted)}).fetchall()
        passages = [(is_wanted, _passage(row)) for is_wanted, *row in rows]
        found += [passage for is_wanted, passage in passages if is_wanted]
        size *= 4
    return found[:limit]


def _neighbours(db: Tables, found: Sequence[Passage]) -> Mapping[Place, Sequence[Passage]]:
    wanted: dict[str, set[int]] = {}
    for passage in found:
        adjacent = (passage.position - 1, passage.position + 1)
        wanted.setdefault(passage.thread_id, set()).update(adjacent)
    neighbours: dict[Place, list[Passage]] = {}
    for thread_id, positions in wanted.items():
        values = (thread_token(thread_id), json.dumps(sorted(positions)), NEIGHBOUR_PARTS)
        for passage in _passages(db.execute(_NEIGHBOURS, values).fetchall()):
            neighbours.setdefault((passage.thread_id, passage.position), []).append(passage)
    return neighbours


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


def _list_names(names: frozenset[str]) -> str | None:
    return json.dumps([storable(name) for name in sorted(names)]) if names else None


def _passages(rows: Sequence[tuple[Any, ...]]) -> list[Passage]:
    return [_passage(row) for row in rows]


def _passage(row: Sequence[Any]) -> Passage:
    if row[0] is None:
        raise FoldDamaged("a passage that the words lead to is missing")
    values: tuple[Any, ...] = open_row(PASSAGES, row)
    return Passage._make((*values[:12], bool(values[12]), *values[13:16]))

"""Which passages have the tokens of a question: looked up in the postings, the most telling ones first."""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from sqlite_utils import Database

from .postings import (
    LOCAL_BITS,
    Posting,
    local_of,
    place_of,
    postings_at,
    postings_of,
    segment_of,
    term_of,
)

COMMON = 2_000
"""A token that stands in more passages than this finds none by itself where there are enough others."""
ENOUGH = 8
"""Times as many passages as are wanted."""
_RARE = 12
"""Of so many times as many places those wanted are looked up one by one."""

Weights = dict[int, float]
"""By place in a segment."""


def best_first(
    db: Database,
    frequencies: Mapping[str, int],
    within: Collection[int] | None,
    total: int,
    wanted: int,
) -> Iterator[int]:
    """The numbers of passages with at least one of these tokens; ``within``: only of these, None: of all.

    By the sum of the weights of the tokens that they have, rare ones weighing more; newer ones first where
    that is the same. A token counts once: how often it stands there is left to the ranking.
    """
    scope = None if within is None else _by_segment(within)
    weights: defaultdict[int, Weights] = defaultdict(dict)
    for token, passages in sorted(frequencies.items(), key=lambda known: known[1]):
        weight = math.log(1 + total / passages)
        is_common = passages > COMMON and sum(map(len, weights.values())) > wanted * ENOUGH
        segments = weights if is_common else scope
        for posting in _postings(db, term_of(token), segments):
            known = weights[posting.segment]
            if is_common:
                found = _among(posting, known)
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
    # Sorting is stable: what weighs the same stays in the order of the numbers.
    newest_first = sorted(flat, reverse=True)
    newest_first.sort(key=flat.__getitem__, reverse=True)
    return iter(newest_first)


def _postings(db: Database, term: int, segments: Collection[int] | None) -> Iterator[Posting]:
    if segments is None:
        return postings_of(db, term)
    return postings_at(db, [place_of(segment, term) for segment in segments])


def _among(posting: Posting, known: Weights) -> Iterable[int]:
    """The places of a posting that are known."""
    places = posting.locals
    if len(known) * _RARE > len(places):
        return known.keys() & places
    return [local for local in known if _has(places, local)]


def _has(places: Sequence[int], local: int) -> bool:
    at = bisect_left(places, local)
    return at < len(places) and places[at] == local


def _by_segment(numbers: Collection[int]) -> Mapping[int, set[int]]:
    found: defaultdict[int, set[int]] = defaultdict(set)
    for number in numbers:
        found[segment_of(number)].add(local_of(number))
    return found

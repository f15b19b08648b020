"""Which passages have the tokens of a question: looked up in FTS5, the most telling ones first."""

import math
from collections.abc import Iterator, Mapping
from heapq import heapify, heappop

from sqlite_utils import Database

from .tables import WORDS

COMMON = 2_000
"""A token that stands in more passages than this finds none by itself where there are enough others."""
ENOUGH = 8
"""Times as many passages as are wanted."""

_MATCHING = f"SELECT rowid FROM {WORDS} WHERE {WORDS} MATCH ?"


def best_first(
    db: Database, frequencies: Mapping[str, int], thread: str | None, total: int, wanted: int
) -> Iterator[int]:
    """The numbers of passages of a conversation, or of all, with at least one of these tokens.

    By the sum of the weights of the tokens that they have, rare ones weighing more; newer ones first where
    that is the same. A token counts once: how often it stands there is left to the ranking, and FTS5
    need not read it, nor how long each passage is.
    """
    scope = "" if thread is None else f"thread : {quoted(thread)} AND "
    weights: dict[int, float] = {}
    seen: list[str] = []
    for token, passages in sorted(frequencies.items(), key=lambda known: known[1]):
        match = f"{scope}tokens : {quoted(token)}"
        if passages > COMMON and len(weights) > wanted * ENOUGH:
            match = f"{match} AND tokens : ({' OR '.join(seen)})"
        weight = math.log(1 + total / passages)
        for (number,) in db.conn.execute(_MATCHING, (match,)):
            weights[number] = weights.get(number, 0.0) + weight
        seen.append(quoted(token))
    heap = [(-weight, -number) for number, weight in weights.items()]
    heapify(heap)
    while heap:
        yield -heappop(heap)[1]


def quoted(token: str) -> str:
    """The token as a string of FTS5's query language, in which it means nothing but itself."""
    return f'"{token.replace(chr(34), chr(34) * 2)}"'

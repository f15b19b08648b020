"""Which passages have the tokens of a question: looked up in FTS5, the most telling ones first."""

import json
import math
from collections.abc import Iterator, Mapping

from sqlite_utils import Database

from .tables import WORDS

COMMON = 2_000
"""A token that stands in more passages than this finds none by itself where there are enough others."""
ENOUGH = 8
"""Times as many passages as are wanted."""

# As one value: handing over the numbers row by row would take five times as long.
_MATCHING = f"SELECT json_group_array(rowid) FROM {WORDS} WHERE {WORDS} MATCH ?"


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
        weight, known = math.log(1 + total / passages), weights.get
        (numbers,) = db.conn.execute(_MATCHING, (match,)).fetchone()
        for number in json.loads(numbers):
            weights[number] = known(number, 0.0) + weight
        seen.append(quoted(token))
    # Sorting is stable: what weighs the same stays in the order of the numbers.
    newest_first = sorted(weights, reverse=True)
    newest_first.sort(key=weights.__getitem__, reverse=True)
    return iter(newest_first)


def quoted(token: str) -> str:
    """The token as a string of FTS5's query language, in which it means nothing but itself."""
    return f'"{token.replace(chr(34), chr(34) * 2)}"'

"""The questions to the recall index; every row that is read is checked."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlite_utils import Database

from refold.application.recall.index import Filters, Found
from refold.application.recall.passages import Passage
from refold.infrastructure.derived.cells import opened, storable
from refold.infrastructure.derived.damage import FoldDamaged
from refold.infrastructure.derived.progress import read_progress

from .tables import INDEXED, PASSAGES, PROJECTIONS, TERMS, WORDS, thread_token

NEIGHBOUR_PARTS = 4
"""Of a long message beside a candidate only the first so many passages are looked at."""

_LET_THROUGH = """
    (:thread IS NULL OR (p.thread = :thread AND p.thread_id = :thread_id))
    AND (:roles IS NULL OR p.role IN (SELECT value FROM json_each(:roles)))
    AND (:kinds IS NULL OR p.kind IN (SELECT value FROM json_each(:kinds)))
    AND (:tools IS NULL OR p.tool IN (SELECT value FROM json_each(:tools)))
    AND (:since IS NULL OR p.at >= :since)
    AND (:until IS NULL OR p.at < :until)
    AND (:first IS NULL OR (p.position >= :first AND p.position < :stop))
    AND (:leave_out IS NULL OR p.position NOT IN (SELECT value FROM json_each(:leave_out)))
"""
_MATCHING = f"SELECT rowid FROM {WORDS} WHERE {WORDS} MATCH ?"
_NUMBERED = f"""SELECT p.* FROM json_each(:numbers) AS wanted
    LEFT JOIN {PASSAGES} AS p ON p.number = wanted.value
    WHERE (p.number IS NULL AND :all_there) OR ({_LET_THROUGH})"""
_IN_ORDER = f"""SELECT p.* FROM {PASSAGES} AS p WHERE p.number > :after AND {_LET_THROUGH}
    ORDER BY p.number LIMIT :limit"""
_NEIGHBOURS = f"""SELECT p.* FROM json_each(?) AS place CROSS JOIN {PASSAGES} AS p
    ON p.thread = json_extract(place.value, '$[0]') AND p.position = json_extract(place.value, '$[1]')
    WHERE p.part < ?"""
_FREQUENCIES = f"""SELECT t.token, t.passages FROM json_each(?) AS wanted
    CROSS JOIN {TERMS} AS t ON t.token = wanted.value"""
_INDEXED = f"""SELECT i.term, i.doc FROM json_each(?) AS wanted
    CROSS JOIN {INDEXED} AS i ON i.term = wanted.value AND i.col = 'tokens'"""

Place = tuple[str, int]


class Proved:
    """The tokens whose passages were counted in this very state of a database: it takes a while for
    those that stand nearly everywhere."""

    def __init__(self) -> None:
        self.tokens: set[str] = set()
        self._state: tuple[object, ...] = ()

    def of(self, db: Database, number: int) -> "Proved":
        """The same, empty if it is another state: another connection, or anything written since."""
        state = (db, number, db.conn.execute("PRAGMA data_version").fetchone()[0])
        if state != self._state:
            self.tokens, self._state = set(), state
        return self


def find(
    db: Database,
    tokens: Sequence[str],
    filters: Filters,
    limit: int,
    also: Sequence[int],
    proved: Proved,
) -> Found:
    """See ``RecallIndex.find``."""
    parameters = _parameters(filters)
    progress = read_progress(db, PROJECTIONS)
    total = progress.totals[PASSAGES].rows
    wanted = list(dict.fromkeys(tokens))
    frequencies = _frequencies(db, wanted, proved.of(db, progress.number))
    numbers = _matching(db, frequencies, parameters["thread"], total)
    found = _let_through(db, numbers, {**parameters, "all_there": True}, limit)
    there = {passage.number for passage in found}
    others = [number for number in dict.fromkeys(also) if number not in there]
    found += _let_through(db, others, {**parameters, "all_there": False}, len(others))
    return Found(found, _neighbours(db, found), frequencies, total)


def in_order(db: Database, after: int, limit: int, filters: Filters) -> Sequence[Passage]:
    """See ``RecallIndex.passages``."""
    parameters = {**_parameters(filters), "after": after, "limit": limit}
    return _passages(db.conn.execute(_IN_ORDER, parameters).fetchall())


def _matching(
    db: Database, frequencies: Mapping[str, int], thread: str | None, total: int
) -> list[int]:
    """The numbers of all passages with one of the tokens: those with more and rarer ones first, then the
    newer ones.
    """
    scope = "" if thread is None else f'thread : "{thread}" AND '
    weights: defaultdict[int, float] = defaultdict(float)
    for token, passages in frequencies.items():
        weight = math.log(1 + total / passages)
        for (number,) in db.conn.execute(_MATCHING, (f'{scope}tokens : "{token}"',)):
            weights[number] += weight
    return sorted(weights, key=lambda number: (weights[number], number), reverse=True)


def _let_through(
    db: Database, numbers: Sequence[int], parameters: Mapping[str, Any], limit: int
) -> list[Passage]:
    """The first so many of these that the filters let through, in the order of the numbers."""
    found: list[Passage] = []
    start, size = 0, limit
    while start < len(numbers) and len(found) < limit:
        wanted = numbers[start : start + size]
        rows = db.conn.execute(_NUMBERED, {**parameters, "numbers": json.dumps(wanted)}).fetchall()
        found += _passages(rows)
        start, size = start + size, size * 4
    return found[:limit]


def _neighbours(db: Database, found: Sequence[Passage]) -> Mapping[Place, Sequence[Passage]]:
    places = {(p.thread_id, p.position + step): None for p in found for step in (-1, 1)}
    wanted = json.dumps([(thread_token(thread_id), position) for thread_id, position in places])
    beside: dict[Place, list[Passage]] = {}
    rows = db.conn.execute(_NEIGHBOURS, (wanted, NEIGHBOUR_PARTS)).fetchall()
    for passage in _passages(rows):
        beside.setdefault((passage.thread_id, passage.position), []).append(passage)
    return beside


def _frequencies(db: Database, tokens: Sequence[str], proved: Proved) -> dict[str, int]:
    """By token that is there: in how many passages it stands.

    Raises:
        FoldDamaged: the index of FTS5 leads to more or fewer.
    """
    found = dict(db.conn.execute(_FREQUENCIES, (json.dumps(tokens),)).fetchall())
    if new := [token for token in tokens if token not in proved.tokens]:
        indexed = dict(db.conn.execute(_INDEXED, (json.dumps(new),)).fetchall())
        for token in new:
            if indexed.get(token) != found.get(token):
                raise FoldDamaged(f"{token!r} leads to other passages than those that have it")
        proved.tokens.update(new)
    return found


def _parameters(filters: Filters) -> dict[str, Any]:
    thread_id, positions = filters.thread_id, filters.positions or (None, None)
    return {
        "thread": None if thread_id is None else thread_token(thread_id),
        "thread_id": storable(thread_id),
        "roles": _listed(filters.roles),
        "kinds": _listed(filters.kinds),
        "tools": _listed(filters.tools),
        "since": filters.since,
        "until": filters.until,
        "first": positions[0],
        "stop": positions[1],
        "leave_out": json.dumps(sorted(filters.leave_out)) if filters.leave_out else None,
    }


def _listed(names: frozenset[str]) -> str | None:
    return json.dumps([storable(name) for name in sorted(names)]) if names else None


def _passages(rows: Sequence[tuple[Any, ...]]) -> list[Passage]:
    return [_passage(row) for row in rows]


def _passage(row: tuple[Any, ...]) -> Passage:
    if row[0] is None:
        raise FoldDamaged("a passage that the words lead to is missing")
    values: tuple[Any, ...] = opened(PASSAGES, row)
    return Passage(*values[:12], bool(values[12]), *values[13:15])

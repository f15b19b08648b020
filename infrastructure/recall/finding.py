"""The questions to the recall index; every row that is read is checked."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from sqlite_utils import Database

from refold.application.owners.visible import Visible
from refold.application.recall.index import Filters, Found
from refold.application.recall.passages import Passage
from refold.infrastructure.derived.cells import opened, storable
from refold.infrastructure.derived.damage import FoldDamaged

from .matching import best_first
from .proving import Proved
from .tables import IS_THERE, PASSAGES, thread_token

NEIGHBOUR_PARTS = 4
"""Of a long message beside a candidate only the first so many passages are looked at."""
MOST = 0.5
"""Of all passages: where a conversation has so many of them, words are looked for in all."""

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
# With those that are not let through: a damaged row could have been one of the others.
_NUMBERED = f"""SELECT ({_LET_THROUGH}), p.* FROM json_each(:numbers) AS wanted
    LEFT JOIN {PASSAGES} AS p ON p.number = wanted.value WHERE p.number IS NOT NULL OR :all_there"""
_IN_ORDER = f"""SELECT p.* FROM {PASSAGES} AS p WHERE p.number > :after AND {_LET_THROUGH}
    ORDER BY p.number LIMIT :limit"""
_OF_OWNER = f"SELECT number FROM {PASSAGES} WHERE owner = ? AND owner != ''"
_NEIGHBOURS = f"""SELECT p.* FROM {PASSAGES} AS p
    WHERE p.thread = ? AND p.position IN (SELECT value FROM json_each(?)) AND p.part < ?"""

Place = tuple[str, int]


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
    total = proved.total(db, filters.thread_id)
    frequencies = proved.frequencies(db, list(dict.fromkeys(tokens)))
    within = _within(db, filters, proved)
    numbers = best_first(db, frequencies, within, total, limit)
    found = _let_through(db, numbers, {**parameters, "all_there": True}, limit)
    found = _with_tokens(found, frequencies)
    there = {passage.number for passage in found}
    others = [number for number in dict.fromkeys(also) if number not in there]
    found += _let_through(db, iter(others), {**parameters, "all_there": False}, len(others))
    proved.places(db, (passage.thread_id for passage in found))
    return Found(found, _neighbours(db, found), frequencies, total)


def _within(db: Database, filters: Filters, proved: Proved) -> Collection[int] | None:
    """The passages that alone are looked through; None: all."""
    visible = filters.visible
    if filters.thread_id is not None:
        threads = {filters.thread_id}
    elif visible is not None and visible.owner is not None:
        threads = {*visible.threads, *filter(None, (visible.home,))}
    else:
        return None
    for thread_id in sorted(threads):
        proved.total(db, thread_id)
    # Looking for the conversations as well costs more than leaving out a few passages of others.
    if sum(proved.share(thread_id) for thread_id in threads) >= MOST:
        return None
    numbers = {number for thread_id in sorted(threads) for number in proved.numbers(db, thread_id)}
    if filters.thread_id is None and visible is not None and visible.owner:
        rows = db.conn.execute(_OF_OWNER, (storable(visible.owner),))
        numbers.update(number for (number,) in rows)
    return numbers


def in_order(
    db: Database, after: int, limit: int, filters: Filters, proved: Proved
) -> Sequence[Passage]:
    """See ``RecallIndex.passages``."""
    proved.total(db, filters.thread_id)
    parameters = {**_parameters(filters), "after": after, "limit": limit}
    return _passages(db.conn.execute(_IN_ORDER, parameters).fetchall())


def every_digest(db: Database, proved: Proved) -> frozenset[str]:
    """See ``RecallIndex.digests``."""
    proved.total(db, None)
    rows = db.conn.execute(f"SELECT digest FROM {PASSAGES} WHERE {IS_THERE}")
    return frozenset(digest for (digest,) in rows)


def _with_tokens(found: Sequence[Passage], tokens: Mapping[str, int]) -> list[Passage]:
    """Those that have one of the tokens: two tokens may share a posting."""
    padded = [f" {token} " for token in tokens]
    return [p for p in found if any(token in p.tokens for token in padded)]


def _let_through(
    db: Database, numbers: Iterator[int], parameters: Mapping[str, Any], limit: int
) -> list[Passage]:
    """The first so many of these that the filters let through, in the order of the numbers."""
    found: list[Passage] = []
    size = limit
    while len(found) < limit and (wanted := list(islice(numbers, size))):
        rows = db.conn.execute(_NUMBERED, {**parameters, "numbers": json.dumps(wanted)}).fetchall()
        passages = [(is_wanted, _passage(row)) for is_wanted, *row in rows]
        found += [passage for is_wanted, passage in passages if is_wanted]
        size *= 4
    return found[:limit]


def _neighbours(db: Database, found: Sequence[Passage]) -> Mapping[Place, Sequence[Passage]]:
    wanted: dict[str, set[int]] = {}
    for passage in found:
        beside = (passage.position - 1, passage.position + 1)
        wanted.setdefault(passage.thread_id, set()).update(beside)
    neighbours: dict[Place, list[Passage]] = {}
    for thread_id, positions in wanted.items():
        values = (thread_token(thread_id), json.dumps(sorted(positions)), NEIGHBOUR_PARTS)
        for passage in _passages(db.conn.execute(_NEIGHBOURS, values).fetchall()):
            neighbours.setdefault((passage.thread_id, passage.position), []).append(passage)
    return neighbours


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
        **_of_visible(filters.visible),
        "leave_out": json.dumps(sorted(filters.leave_out)) if filters.leave_out else None,
    }


def _of_visible(visible: Visible | None) -> dict[str, Any]:
    if visible is None:
        return {"seen": None, "home": None, "owner": None, "is_owned": None}
    threads = [storable(thread_id) for thread_id in sorted(visible.threads)]
    return {
        "seen": json.dumps(threads),
        "home": storable(visible.home),
        # Empty stands for no owner of its own.
        "owner": storable(visible.owner or None),
        "is_owned": visible.owner is not None,
    }


def _listed(names: frozenset[str]) -> str | None:
    return json.dumps([storable(name) for name in sorted(names)]) if names else None


def _passages(rows: Sequence[tuple[Any, ...]]) -> list[Passage]:
    return [_passage(row) for row in rows]


def _passage(row: Sequence[Any]) -> Passage:
    if row[0] is None:
        raise FoldDamaged("a passage that the words lead to is missing")
    values: tuple[Any, ...] = opened(PASSAGES, row)
    return Passage._make((*values[:12], bool(values[12]), *values[13:16]))

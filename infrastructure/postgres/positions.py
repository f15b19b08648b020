"""Give log positions to events: one integer over all streams, in order and without gaps.

Writers take the lock of their stream alone and get an identifier from a sequence, which has gaps and does not
follow the order of commits. Whoever reads the log next gives positions to the events that it sees, under one lock.
An identifier that is missing below the newest one may belong to a transaction that has not ended. It is
remembered, and its event gets a later position when it appears. It is forgotten when every transaction that was
open when it was found missing has ended. No event waits for the transaction of another stream.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .connections import Store

BATCH = 10_000
"""Maximum number of events that get positions in one transaction."""

_UNNUMBERED = """
SELECT e.id, true FROM {missing_ids} m JOIN {stored_events} e ON e.id BETWEEN m.first_id AND m.last_id
UNION ALL
SELECT id, false FROM (SELECT id FROM {stored_events} WHERE id > %s ORDER BY id LIMIT %s) AS new
"""
"""Query for the identifiers without a position: those that were missing and are there now, and the new ones."""

_NEWEST = """
SELECT n.position, current_setting('transaction_read_only') = 'off' AND has_table_privilege(n.tableoid, 'UPDATE') AND (
    coalesce((SELECT max(id) FROM {stored_events}) > n.last_id, false) OR EXISTS (SELECT FROM {missing_ids}))
FROM {numbering} n
"""
"""Query for the newest position, and whether there may be events without one to which this role may give one.

On a replica, transactions are read-only.

The newest identifier is the end of an index. For one that is larger than a value, the server reads the whole table: it
expects to find one soon.
"""
_STATE = """
SELECT n.position, n.last_id, pg_snapshot_xmin(pg_current_snapshot())::text, m.first_id, m.last_id, m.ended_by
FROM {numbering} n LEFT JOIN {missing_ids} m ON true ORDER BY m.first_id
"""
_NUMBER = """
WITH given AS (
    INSERT INTO {log_positions} SELECT %s + n, id FROM unnest(%s::bigint[]) WITH ORDINALITY AS t(id, n)
)
UPDATE {numbering} SET position = %s, last_id = %s
"""


class _Missing(NamedTuple):
    first: int
    last: int
    ended_by: str
    """Transaction id: if none before it runs any more, nothing of the range will appear."""


class Positions:
    """The positions of the events of one log."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def give(self) -> int:
        """Give positions to all committed events that have none, and return the newest position.

        A replica, and a role that may only read, give none.
        """
        while True:
            ((newest, may_have_more),) = self._store.rows(_NEWEST)
            if not may_have_more:
                return int(newest)
            newest, is_more = self._give_some()
            if not is_more:
                return newest

    def _give_some(self) -> tuple[int, bool]:
        """Give positions in one transaction. Return the newest, and whether more events may wait."""
        store = self._store
        with store.transaction():
            store.lock("positions")
            # Read before the events: a transaction that ends in between is then taken for an open one.
            state = store.rows(_STATE)
            position, last_id, oldest = state[0][:3]
            missing = [_Missing(*row[3:]) for row in state if row[3] is not None]
            # One statement, so that both are seen at one moment: a stream that goes on in between would get the
            # position of its later event first.
            found = store.rows(_UNNUMBERED, (last_id, BATCH))
            late = sorted(number for number, was_missing in found if was_missing)
            new = sorted(number for number, was_missing in found if not was_missing)
            left = [m for m in _without(missing, late) if int(m.ended_by) > int(oldest)]
            if new and new[-1] - last_id > len(new):
                # Read after the events. Every identifier belongs to a transaction that had its number before.
                ((now,),) = store.rows("SELECT pg_current_xact_id()::text")
                left += _gaps(last_id, new, now)
            if left != missing:
                store.run("DELETE FROM {missing_ids}")
                store.run(
                    "INSERT INTO {missing_ids} SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[])",
                    ([m.first for m in left], [m.last for m in left], [m.ended_by for m in left]),
                )
            newest = int(position) + len(late) + len(new)
            if late or new:
                values = (position, [*late, *new], newest, new[-1] if new else last_id)
                store.run(_NUMBER, values)
            return newest, len(new) == BATCH


def _gaps(after: int, ids: Sequence[int], ended_by: str) -> Iterator[_Missing]:
    """Yield the ranges of identifiers after ``after`` that are not among ``ids``."""
    for one in ids:
        if one > after + 1:
            yield _Missing(after + 1, one - 1, ended_by)
        after = one


def _without(missing: Sequence[_Missing], found: Sequence[int]) -> Iterator[_Missing]:
    """Yield the ranges without the identifiers that were found."""
    for range_ in missing:
        after = range_.first - 1
        for one in [*(n for n in found if range_.first <= n <= range_.last), range_.last + 1]:
            if one > after + 1:
                yield _Missing(after + 1, one - 1, range_.ended_by)
            after = one

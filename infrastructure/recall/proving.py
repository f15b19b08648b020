"""That the index leads to everything that it should: held against counts, once for each state of it."""

import json
from collections.abc import Iterable, Sequence

from sqlite_utils import Database

from refold.infrastructure.derived.damage import FoldDamaged
from refold.infrastructure.derived.progress import read_progress

from .postings import TERM_BITS, term_of
from .tables import IS_THERE, PASSAGES, POSTINGS, PROJECTIONS, SEGMENTS, TERMS, thread_token
from .threads import numbers_at, stored_thread

_FREQUENCIES = f"""SELECT t.term, t.passages FROM json_each(?) AS wanted
    CROSS JOIN {TERMS} AS t ON t.term = wanted.value"""
_POSTED = f"""SELECT total(p.passages) FROM {SEGMENTS} AS s
    CROSS JOIN {POSTINGS} AS p ON p.place = (s.segment << {TERM_BITS}) | ?"""
_OF_THREAD = f"SELECT json_group_array(number) FROM {PASSAGES} WHERE thread = ?"


class Proved:
    """What was counted in this very state of a database; counting what stands everywhere takes a while."""

    def __init__(self) -> None:
        self._state: tuple[object, ...] = ()
        self._tokens: set[str] = set()
        self._shares: dict[str | None, float] = {}
        self._numbers: dict[str, frozenset[int]] = {}
        self._placed: set[str] = set()

    def total(self, db: Database, thread_id: str | None) -> int:
        """How many passages there are, where those of this conversation, or of all, are all there.

        Raises:
            FoldDamaged: some are missing.
        """
        progress = read_progress(db, PROJECTIONS)
        total = progress.totals[PASSAGES].rows
        # Another connection, or anything written since, is another state.
        state = (db, progress, db.conn.execute("PRAGMA data_version").fetchone()[0])
        if state != self._state:
            self._state, self._tokens, self._shares, self._numbers = state, set(), {}, {}
            self._placed = set()
        if thread_id not in self._shares:
            count = _expect_passages(db, thread_id, total)
            self._shares[thread_id] = count / total if total else 1.0
        return total

    def share(self, thread_id: str | None) -> float:
        """Which share of all passages is of this conversation. Asked after ``total``."""
        return self._shares[thread_id]

    def places(self, db: Database, thread_ids: Iterable[str]) -> None:
        """Hold the index of places against what must be there of these conversations.

        Asked after ``total``. Raises:
            FoldDamaged: an entry is missing or wrong.
        """
        for thread_id in {*thread_ids} - self._placed - self._shares.keys():
            numbers_at(db, thread_id, stored_thread(db, thread_id), ())
            self._placed.add(thread_id)

    def numbers(self, db: Database, thread_id: str) -> frozenset[int]:
        """The passages of a conversation. Asked after ``total``."""
        known = self._numbers.get(thread_id)
        if known is None:
            (found,) = db.conn.execute(_OF_THREAD, (thread_token(thread_id),)).fetchone()
            known = self._numbers[thread_id] = frozenset(json.loads(found))
        return known

    def frequencies(self, db: Database, tokens: Sequence[str]) -> dict[str, int]:
        """By token that is there: in how many passages it stands. Asked after ``total``.

        Raises:
            FoldDamaged: the postings lead to more or fewer.
        """
        terms = {token: term_of(token) for token in tokens}
        found = dict(db.conn.execute(_FREQUENCIES, (json.dumps([*terms.values()]),)).fetchall())
        for token in terms.keys() - self._tokens:
            (posted,) = db.conn.execute(_POSTED, (terms[token],)).fetchone()
            if posted != found.get(terms[token], 0):
                raise FoldDamaged(f"{token!r} leads to other passages than those that have it")
            self._tokens.add(token)
        return {token: found[term] for token, term in terms.items() if term in found}


def _expect_passages(db: Database, thread_id: str | None, total: int) -> int:
    """How many a conversation, or all, must have and has."""
    if thread_id is None:
        query = f"SELECT count(*) FROM {PASSAGES} WHERE {IS_THERE}"
        count = db.conn.execute(query).fetchone()[0]
        if count != total:
            raise FoldDamaged(f"there are {count} passages, and not {total}")
        return total
    thread = stored_thread(db, thread_id)
    numbers_at(db, thread_id, thread, ())
    return thread.total.rows

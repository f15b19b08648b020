"""What the recall index knows of each conversation: what its next message is to know, and how much it has."""

import json
from collections.abc import Collection, Iterable, Sequence

from sqlite_utils import Database

from refold.application.recall.passages import BEGINNING, Before, Passage
from refold.infrastructure.projection_store.checkpoint import Total, read_progress
from refold.infrastructure.projection_store.projection_damage import FoldDamaged
from refold.infrastructure.projection_store.row_checksums import opened, sealed, storable

from .index_tables import (
    IS_THERE,
    PASSAGES,
    PLACE,
    POSTINGS,
    PROJECTIONS,
    SEGMENTS,
    TERM_BITS,
    TERMS,
    THREADS,
    term_of,
    thread_token,
)

_NUMBERS_AT = f"""SELECT count(*), coalesce(sum({PLACE}), 0),
    json_group_array(number) FILTER (WHERE +position IN (SELECT value FROM json_each(?)))
    FROM {PASSAGES} INDEXED BY passages_by_place WHERE thread = ?"""


class Thread:
    """A conversation while events are folded in."""

    def __init__(self, token: str, before: Before, total: Total, places: int = 0) -> None:
        self.token = token
        self.before = before
        self.total = total
        self.places = places
        """The sum of the places of its passages."""

    def add(self, total: Total, passages: Iterable[Passage]) -> None:
        """Count passages in."""
        self.total = self.total.plus(total)
        self.places += sum(map(_place, passages))

    def take_out(self, total: Total, passages: Iterable[Passage]) -> None:
        """Count passages out."""
        self.total = self.total.plus(Total(-total.rows, -total.checksums))
        self.places -= sum(map(_place, passages))


def _place(passage: Passage) -> int:
    """``PLACE`` of a passage."""
    return passage.number * 31 + passage.position * 7 + passage.part


def numbers_at(
    db: Database, thread_id: str, thread: Thread, positions: Collection[int]
) -> list[int]:
    """The numbers of the passages at these positions, by all entries that the index has of a conversation.

    Raises:
        FoldDamaged: the index of places lacks an entry, or has one that is wrong.
    """
    asked = (json.dumps([*positions]), thread.token)
    count, places, numbers = db.conn.execute(_NUMBERS_AT, asked).fetchone()
    if (count, places) != (thread.total.rows, thread.places):
        raise FoldDamaged(
            f"conversation {thread_id!r} has {count} passages, and not {thread.total.rows}, or other places"
        )
    return [int(number) for number in json.loads(numbers)]


def stored_thread(db: Database, thread_id: str) -> Thread:
    """What is stored of a conversation; of one that is new, what it begins with.

    Raises:
        FoldDamaged: it was changed since it was stored.
    """
    token = thread_token(thread_id)
    row = db.conn.execute(f"SELECT * FROM {THREADS} WHERE thread = ?", (token,)).fetchone()
    if row is None:
        return Thread(token, BEGINNING, Total())
    _, _, session, at, calls, rows, checksums, places = opened(THREADS, row)
    known = tuple((str(call), str(name)) for call, name in json.loads(str(calls)))
    total = Total(int(rows or 0), int(checksums or 0))
    before = Before(int(session or 0), str(at), known)
    return Thread(token, before, total, int(places or 0))


def put_thread(db: Database, thread_id: str, thread: Thread) -> None:
    """Store what is known of a conversation, in the transaction that is open."""
    before, calls = thread.before, json.dumps(thread.before.calls)
    row = sealed(
        (
            *(thread.token, storable(thread_id), before.session, before.at, calls),
            *thread.total,
            thread.places,
        )
    )
    db.conn.execute(f"INSERT OR REPLACE INTO {THREADS} VALUES (?,?,?,?,?,?,?,?,?)", row)


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

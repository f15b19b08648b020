"""What the recall index knows of each conversation: what its next message is to know, and how much it has."""

import json
from collections.abc import Collection, Iterable

from sqlite_utils import Database

from refold.application.recall.passages import BEGINNING, Before, Passage
from refold.infrastructure.derived.cells import opened, sealed, storable
from refold.infrastructure.derived.damage import FoldDamaged
from refold.infrastructure.derived.progress import Total

from .tables import PASSAGES, PLACE, THREADS, thread_token

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

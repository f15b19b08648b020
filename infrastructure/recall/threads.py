"""What the recall index knows of each conversation: what its next message is to know, and how much it has."""

import json

from sqlite_utils import Database

from refold.application.recall.passages import BEGINNING, Before
from refold.infrastructure.derived.cells import opened, sealed, storable
from refold.infrastructure.derived.progress import Total

from .tables import THREADS, thread_token


class Thread:
    """A conversation while events are folded in."""

    def __init__(self, token: str, before: Before, total: Total) -> None:
        self.token = token
        self.before = before
        self.total = total


def stored_thread(db: Database, thread_id: str) -> Thread:
    """What is stored of a conversation; of one that is new, what it begins with.

    Raises:
        FoldDamaged: it was changed since it was stored.
    """
    token = thread_token(thread_id)
    row = db.conn.execute(f"SELECT * FROM {THREADS} WHERE thread = ?", (token,)).fetchone()
    if row is None:
        return Thread(token, BEGINNING, Total())
    _, _, session, at, calls, rows, checksums = opened(THREADS, row)
    known = tuple((str(call), str(name)) for call, name in json.loads(str(calls)))
    total = Total(int(rows or 0), int(checksums or 0))
    return Thread(token, Before(int(session or 0), str(at), known), total)


def put_thread(db: Database, thread_id: str, thread: Thread) -> None:
    """Store what is known of a conversation, in the transaction that is open."""
    before, calls = thread.before, json.dumps(thread.before.calls)
    row = sealed(
        (thread.token, storable(thread_id), before.session, before.at, calls, *thread.total)
    )
    db.conn.execute(f"INSERT OR REPLACE INTO {THREADS} VALUES (?,?,?,?,?,?,?,?)", row)

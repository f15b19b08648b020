"""That the index leads to everything that it should: held against counts, once for each state of it."""

import json
from collections.abc import Sequence

from sqlite_utils import Database

from refold.infrastructure.derived.damage import FoldDamaged
from refold.infrastructure.derived.progress import read_progress

from .folding import stored_thread
from .tables import INDEXED, PASSAGES, PROJECTIONS, TERMS

_FREQUENCIES = f"""SELECT t.token, t.passages FROM json_each(?) AS wanted
    CROSS JOIN {TERMS} AS t ON t.token = wanted.value"""
_INDEXED = f"""SELECT i.term, i.doc FROM json_each(?) AS wanted
    CROSS JOIN {INDEXED} AS i ON i.term = wanted.value AND i.col = 'tokens'"""
_THREAD_INDEXED = f"SELECT doc FROM {INDEXED} WHERE term = ? AND col = 'thread'"


class Proved:
    """What was counted in this very state of a database; counting what stands everywhere takes a while.

    FTS5 does not notice each damage of its blocks: a word in them may lead nowhere.
    """

    def __init__(self) -> None:
        self._state: tuple[object, ...] = ()
        self._tokens: set[str] = set()
        self._shares: dict[str | None, float] = {}

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
            self._state, self._tokens, self._shares = state, set(), {}
        if thread_id not in self._shares:
            count = _expect_passages(db, thread_id, total)
            self._shares[thread_id] = count / total if total else 1.0
        return total

    def share(self, thread_id: str | None) -> float:
        """Which share of all passages is of this conversation. Asked after ``total``."""
        return self._shares[thread_id]

    def frequencies(self, db: Database, tokens: Sequence[str]) -> dict[str, int]:
        """By token that is there: in how many passages it stands. Asked after ``total``.

        Raises:
            FoldDamaged: the index of FTS5 leads to more or fewer.
        """
        found = dict(db.conn.execute(_FREQUENCIES, (json.dumps(tokens),)).fetchall())
        if new := [token for token in tokens if token not in self._tokens]:
            indexed = dict(db.conn.execute(_INDEXED, (json.dumps(new),)).fetchall())
            for token in new:
                if indexed.get(token) != found.get(token):
                    raise FoldDamaged(f"{token!r} leads to other passages than those that have it")
            self._tokens.update(new)
        return found


def _expect_passages(db: Database, thread_id: str | None, total: int) -> int:
    """How many a conversation, or all, must have and has."""
    if thread_id is None:
        count = db.conn.execute(f"SELECT count(*) FROM {PASSAGES}").fetchone()[0]
        if count != total:
            raise FoldDamaged(f"there are {count} passages, and not {total}")
        return total
    thread = stored_thread(db, thread_id)
    query = f"SELECT count(*) FROM {PASSAGES} WHERE thread = ?"
    (count,) = db.conn.execute(query, (thread.token,)).fetchone()
    (indexed,) = db.conn.execute(_THREAD_INDEXED, (thread.token,)).fetchone() or (0,)
    if {count, indexed} != {thread.total.rows}:
        raise FoldDamaged(
            f"conversation {thread_id!r} has {count} passages and {indexed} that can be found, and not "
            f"{thread.total.rows}"
        )
    return thread.total.rows

"""The tables of the recall index: passages, what is known of their conversations, and the words' index."""

from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b

from sqlite_utils import Database

from refold.application.recall import passages, tokens
from refold.infrastructure.derived.cells import CHECKSUM, storable

PASSAGES = "passages"
PASSAGE_COLUMNS: Mapping[str, type] = {
    "number": int,
    "thread_id": str,
    "position": int,
    "version": int,
    "part": int,
    "role": str,
    "kind": str,
    "tool": str,
    "at": str,
    "session": int,
    "start": int,
    "stop": int,
    "is_question": int,
    "tokens": str,
    "digest": str,
    "thread": str,
    CHECKSUM: int,
}
"""The fields of ``Passage``, and the conversation as one token."""

THREADS = "threads"
THREAD_COLUMNS: Mapping[str, type] = {
    "thread": str,
    "thread_id": str,
    "session": int,
    "at": str,
    "calls": str,
    "row_count": int,
    "checksums": int,
    CHECKSUM: int,
}
"""Per conversation: what its next message is to know, how many passages there must be, and their sum."""

WORDS = "words"
"""The index of FTS5 over the passages; it holds no text of its own."""

TERMS = "terms"
TERM_COLUMNS: Mapping[str, type] = {"token": str, "passages": int}
"""Per token: in how many passages it stands. What the index of FTS5 holds is held against it."""

INDEXED = "indexed"
"""What the index of FTS5 holds, term by term."""

PROJECTIONS: Mapping[str, int] = {PASSAGES: passages.VERSION * 1_000 + tokens.VERSION}


def create_tables(db: Database) -> None:
    """Make every table, in the transaction that is open."""
    for name, columns, key in (
        (PASSAGES, PASSAGE_COLUMNS, "number"),
        (THREADS, THREAD_COLUMNS, "thread"),
    ):
        db.table(name).create(dict(columns), pk=key, not_null=set(columns), strict=True)
    db.conn.execute(
        f"CREATE TABLE {TERMS} (token TEXT PRIMARY KEY, passages INTEGER NOT NULL) STRICT, WITHOUT ROWID"
    )
    db.conn.execute(f"CREATE UNIQUE INDEX passages_by_place ON {PASSAGES} (thread, position, part)")
    db.conn.execute(
        f"CREATE VIRTUAL TABLE {WORDS} USING fts5(thread, tokens, content='{PASSAGES}', "
        "content_rowid='number', tokenize='ascii', detail='column', columnsize=0)"
    )
    db.conn.execute(f"CREATE VIRTUAL TABLE {INDEXED} USING fts5vocab({WORDS}, 'col')")


@lru_cache(maxsize=1_000)
def thread_token(thread_id: str) -> str:
    """The conversation as one token of FTS5."""
    return blake2b(str(storable(thread_id)).encode(), digest_size=8).hexdigest()

"""The tables of the recall index: passages, what is known of their conversations, and where tokens stand."""

from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b

from sqlite_utils import Database

from refold.application.recall import passages, tokens
from refold.infrastructure.derived.cells import CHECKSUM, storable

FORMAT = 3
"""Of the tables; an index of another one is folded anew."""

PASSAGES = "passages"
IS_THERE = "thread != ''"
"""Of a row of passages: that its message was not erased since."""
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
    "owner": str,
    "thread": str,
    CHECKSUM: int,
}
"""The fields of ``Passage``, and a hash of the conversation. Where a message was erased since it was folded, its
rows stay with a number and nothing else (``thread`` is empty): a row that is deleted would have SQLite
move others, and leave bytes of them behind."""

THREADS = "threads"
THREAD_COLUMNS: Mapping[str, type] = {
    "thread": str,
    "thread_id": str,
    "session": int,
    "at": str,
    "calls": str,
    "row_count": int,
    "checksums": int,
    "places": int,
    CHECKSUM: int,
}
"""Per conversation: what its next message is to know, how many passages there must be, their sum, and the
sum of their places (``PLACE``)."""

PLACE = "number * 31 + position * 7 + part"
"""What an entry of the index of places adds to its conversation's sum: any wrong number in it changes the sum."""

TERMS = "terms"
TERM_COLUMNS: Mapping[str, type] = {"term": int, "passages": int}
"""Per token, by its hash: in how many passages it stands. What postings hold is held against it."""

POSTINGS = "postings"
POSTING_COLUMNS: Mapping[str, type] = {
    "place": int,
    "passages": int,
    CHECKSUM: int,
    "locals": bytes,
}
"""Per segment and token: the passages of the segment that have it. See ``postings``."""

SEGMENTS = "segments"
SEGMENT_COLUMNS: Mapping[str, type] = {
    "segment": int,
    "row_count": int,
    "checksums": int,
    "terms": int,
    "posting_checksums": int,
    CHECKSUM: int,
}
"""Per segment: how many passages and how many postings there must be, with the sums of their checksums."""

PROJECTIONS: Mapping[str, int] = {
    PASSAGES: FORMAT * 1_000_000 + passages.VERSION * 1_000 + tokens.VERSION
}


def create_tables(db: Database) -> None:
    """Make every table, in the transaction that is open."""
    for name, columns in (
        (PASSAGES, PASSAGE_COLUMNS),
        (THREADS, THREAD_COLUMNS),
        (TERMS, TERM_COLUMNS),
        (POSTINGS, POSTING_COLUMNS),
        (SEGMENTS, SEGMENT_COLUMNS),
    ):
        key = next(iter(columns))
        db.table(name).create(dict(columns), pk=key, not_null=set(columns), strict=True)
    db.conn.execute(f"CREATE INDEX passages_of_owners ON {PASSAGES} (owner) WHERE owner != ''")
    db.conn.execute(f"CREATE UNIQUE INDEX passages_by_place ON {PASSAGES} (thread, position, part)")


@lru_cache(maxsize=1_000)
def thread_token(thread_id: str) -> str:
    """A hash of the conversation."""
    return blake2b(str(storable(thread_id)).encode(), digest_size=8).hexdigest()

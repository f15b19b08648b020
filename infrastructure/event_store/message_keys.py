"""The index of idempotency keys, and the chain of sealed rows that proves what it says.

``message_keys`` leads from a key to the version of its event. ``sealed_keys`` has a row for each key as
well, by a digest: it names the digest that comes next in order, and is sealed. A row with an empty
digest begins the chain of a conversation, and the last row names an empty one. So a single row proves
that a key is stored, or that no key lies between two others. A row of either table that was changed,
added or removed, by whatever fault, leaves a question that the chain does not answer: then the events
are read (``proven_keys``).

Nothing but SQL: no transactions, and no events.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import NamedTuple

from eventsourcing.sqlite import SQLiteCursor

from .envelope import PLAIN, Encoder

INDEX = (
    "CREATE TABLE IF NOT EXISTS message_keys (originator_id TEXT, key TEXT, "
    "originator_version INTEGER, PRIMARY KEY (originator_id, key)) WITHOUT ROWID"
)
_CHAIN = (
    "CREATE TABLE IF NOT EXISTS sealed_keys (originator_id TEXT, digest BLOB, next BLOB, seal BLOB, "
    "PRIMARY KEY (originator_id, digest)) WITHOUT ROWID"
)
_ENDS = b""
"""The digest of the row that a chain begins with, and what the last one names as the next."""
_DIGEST_BYTES = 16
_AT_ONCE = 500

Cursor = SQLiteCursor | sqlite3.Cursor
Key = tuple[str, str, int]
"""A row of the index: conversation, key, version."""


class Found(NamedTuple):
    """What the index says of some keys."""

    versions: dict[str, int]
    is_proved: bool
    """Whether the chain bears it out, for those that were found and for all others."""


class _Row(NamedTuple):
    digest: bytes
    next: bytes


def digest_of(stream: str, key: str) -> bytes:
    """What a key is called in the chain of its conversation."""
    return sha256(f"{stream}\0{key}".encode("utf-8", "surrogatepass")).digest()[:_DIGEST_BYTES]


class MessageKeys:
    """The two tables. Writes only inside of a transaction that is given."""

    def __init__(self, encoder: Encoder) -> None:
        """``encoder``: seals rows, with the key of the log where it has one."""
        self._encoder = encoder

    def begin(self, c: Cursor, stream: str) -> None:
        """Begin the chain of a conversation that has no key yet."""
        c.execute(_CHAIN)
        self._put(c, stream, [(_ENDS, _ENDS)])

    def add(self, c: Cursor, keys: Sequence[Key]) -> None:
        """Add keys that are new in their conversations."""
        c.executemany("INSERT INTO message_keys VALUES (?,?,?)", keys)
        c.execute(_CHAIN)
        for stream in dict.fromkeys(stream for stream, _, _ in keys):
            self._link(c, stream, [digest_of(s, key) for s, key, _ in keys if s == stream])

    def replace(self, c: Cursor, stream: str, keys: Mapping[str, int]) -> None:
        """Put these keys, with their versions, in the place of all that a conversation has."""
        c.execute(_CHAIN)
        self.drop(c, stream)
        c.executemany(
            "INSERT OR REPLACE INTO message_keys VALUES (?,?,?)",
            [(stream, key, version) for key, version in keys.items()],
        )
        self._put(c, stream, pairwise(_chain(stream, keys)))

    def drop(self, c: Cursor, stream: str) -> None:
        """Remove everything of a conversation."""
        c.execute("DELETE FROM message_keys WHERE originator_id=?", (stream,))
        if has_chains(c):
            c.execute("DELETE FROM sealed_keys WHERE originator_id=?", (stream,))

    def clear(self, c: Cursor) -> None:
        """Remove everything of all conversations, and the pages that it lies on."""
        c.execute("DROP TABLE IF EXISTS sealed_keys")
        c.execute("DROP TABLE IF EXISTS message_keys")
        c.execute(INDEX)

    def find(self, c: Cursor, stream: str, keys: Sequence[str]) -> Found:
        """The versions of those keys that are stored, as the index says."""
        versions = dict(_versions(c, stream, keys))
        if not has_chains(c):
            return Found(versions, is_proved=False)
        digests = {digest_of(stream, key): key in versions for key in keys}
        rows = self._rows(c, stream, list(digests))
        proved = all(_says(rows.get(d), d) is is_found for d, is_found in digests.items())
        return Found(versions, proved)

    def is_whole(self, c: Cursor, stream: str, keys: Iterable[str]) -> bool:
        """Whether the chain of a conversation has these keys and no others, or there is none yet."""
        c.execute("SELECT digest, next, seal FROM sealed_keys WHERE originator_id=?", (stream,))
        # What was sealed before the log had an encryption key is not believed, and not damaged either.
        rows = [
            _opened(stream, row, self._encoder.proves) or _opened(stream, row, PLAIN.proves)
            for row in c.fetchall()
        ]
        return not rows or rows == [_Row(*link) for link in pairwise(_chain(stream, keys))]

    def seals(self, c: Cursor, stream: str, key: str) -> bool:
        """Whether a sealed row says that this key was stored, whatever the rows around it say."""
        digest = digest_of(stream, key)
        row = self._rows(c, stream, [digest]).get(digest)
        return row is not None and row.digest == digest

    def _link(self, c: Cursor, stream: str, digests: Sequence[bytes]) -> None:
        """Take digests into the chain; where that is in doubt, it is left without its beginning."""
        rows = self._rows(c, stream, digests)
        gaps: dict[_Row, list[bytes]] = {}
        for digest in sorted(digests):
            row = rows.get(digest)
            if row is None or _says(row, digest) is None:
                where = "originator_id=? AND digest=?"
                c.execute(f"DELETE FROM sealed_keys WHERE {where}", (stream, _ENDS))
                return
            if row.digest != digest:
                gaps.setdefault(row, []).append(digest)
        chains = ([row.digest, *new, row.next] for row, new in gaps.items())
        self._put(c, stream, [link for chain in chains for link in pairwise(chain)])

    def _rows(
        self, c: Cursor, stream: str, digests: Sequence[bytes]
    ) -> Mapping[bytes, _Row | None]:
        """By digest its own row, or else the last one before it; None where that is not sealed."""
        found: dict[bytes, _Row | None] = {}
        for start in range(0, len(digests), _AT_ONCE):
            part = digests[start : start + _AT_ONCE]
            marks = ",".join(["(?)"] * len(part))
            c.execute(
                f"WITH asked(digest) AS (VALUES {marks}) "
                "SELECT asked.digest, s.digest, s.next, s.seal FROM asked JOIN sealed_keys s "
                "ON s.originator_id=? AND s.digest=(SELECT max(digest) FROM sealed_keys "
                "WHERE originator_id=? AND digest<=asked.digest)",
                [*part, stream, stream],
            )
            for digest, *row in c.fetchall():
                found[digest] = _opened(stream, row, self._encoder.proves)
        return found

    def _put(self, c: Cursor, stream: str, links: Iterable[tuple[bytes, bytes]]) -> None:
        c.executemany(
            "INSERT OR REPLACE INTO sealed_keys VALUES (?,?,?,?)",
            [
                (stream, digest, following, self._encoder.proof(_bound(stream, digest, following)))
                for digest, following in links
            ],
        )


def _chain(stream: str, keys: Iterable[str]) -> list[bytes]:
    return [_ENDS, *sorted({digest_of(stream, key) for key in keys}), _ENDS]


def _says(row: _Row | None, digest: bytes) -> bool | None:
    """Whether a key of this digest was stored; None where the row does not tell."""
    if row is None or row.digest == digest:
        return None if row is None else True
    return False if not row.next or digest < row.next else None


def _opened(
    stream: str, row: Sequence[object], proves: Callable[[bytes, bytes], bool]
) -> _Row | None:
    """A row, where it is sealed."""
    digest, following, seal = row
    if not (isinstance(digest, bytes) and isinstance(following, bytes) and isinstance(seal, bytes)):
        return None
    return _Row(digest, following) if proves(_bound(stream, digest, following), seal) else None


def has_chains(c: Cursor) -> bool:
    """Whether the log has chains of keys at all; one of before has none."""
    c.execute("SELECT 1 FROM sqlite_schema WHERE type='table' AND name='sealed_keys'")
    return c.fetchone() is not None


def has_chain(c: Cursor, stream: str) -> bool:
    """Whether the keys of this conversation are chained."""
    if not has_chains(c):
        return False
    c.execute("SELECT 1 FROM sealed_keys WHERE originator_id=? AND digest=?", (stream, _ENDS))
    return c.fetchone() is not None


def _bound(stream: str, digest: bytes, following: bytes) -> bytes:
    name = stream.encode("utf-8", "surrogatepass")
    return b"%d\0%b\0%d\0%b%b" % (len(name), name, len(digest), digest, following)


def _versions(c: Cursor, stream: str, keys: Sequence[str]) -> Iterator[tuple[str, int]]:
    for start in range(0, len(keys), _AT_ONCE):
        part = keys[start : start + _AT_ONCE]
        marks = ",".join("?" * len(part))
        c.execute(
            "SELECT key, originator_version FROM message_keys "
            f"WHERE originator_id=? AND key IN ({marks})",
            [stream, *part],
        )
        yield from map(tuple, c.fetchall())

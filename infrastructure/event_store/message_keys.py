"""The index of idempotency keys, and the chain of sealed rows that proves its answers.

``message_keys`` maps a key to the version of its event. ``sealed_keys`` has a sealed row for the digest
of each key; the row names the next digest in order. A row with an empty digest starts the chain of a
conversation, and the last row names an empty digest. So one row proves that a key is stored, or that no
key is stored between two others. If a row of either table was changed, added or removed, the chain
cannot prove the answer. In that case the events are read (see ``proven_keys``).

This module contains SQL only: no transactions and no events.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import NamedTuple, Protocol

from eventsourcing.sqlite import SQLiteCursor

from .envelope import PLAIN, Encoder

INDEX = (
    "CREATE TABLE IF NOT EXISTS message_keys (originator_id TEXT, key TEXT, "
    "originator_version INTEGER, PRIMARY KEY (originator_id, key)) WITHOUT ROWID"
)
CHAIN = (
    "CREATE TABLE IF NOT EXISTS sealed_keys (originator_id TEXT, digest BLOB, next BLOB, seal BLOB, "
    "PRIMARY KEY (originator_id, digest)) WITHOUT ROWID"
)
_ENDS = b""
"""Digest of the first row of a chain, and next digest of its last row."""
_DIGEST_BYTES = 16
_AT_ONCE = 500

Cursor = SQLiteCursor | sqlite3.Cursor
Key = tuple[str, str, int]
"""A row of the index: conversation, key and version."""


class StoredKeys(Protocol):
    """The idempotency keys of a log."""

    def versions(self, stream: str, keys: Sequence[str]) -> Mapping[str, int]:
        """Map those of these keys that are stored to the versions of their messages."""
        ...


class Found(NamedTuple):
    """The answer of the index for some keys."""

    versions: dict[str, int]
    is_proved: bool
    """True if the chain proves the answer, both for the keys found and for those not found."""


class _Row(NamedTuple):
    digest: bytes
    next: bytes


def digest_of(stream: str, key: str) -> bytes:
    """Return the digest of a key in the chain of its conversation."""
    return sha256(f"{stream}\0{key}".encode("utf-8", "surrogatepass")).digest()[:_DIGEST_BYTES]


class MessageKeys:
    """The two tables of keys. All writes need an open transaction."""

    def __init__(self, encoder: Encoder) -> None:
        """Create the tables' access. ``encoder`` seals rows, with the key of the log if it has one."""
        self._encoder = encoder
        self._unsealed: dict[tuple[str, object, object, object], _Row] = {}
        """Rows of the last look-up whose seals are valid. Storing keys reads the same rows again."""

    def begin(self, c: Cursor, stream: str) -> None:
        """Start the chain of a conversation that has no keys yet."""
        try:
            self._put(c, stream, [(_ENDS, _ENDS)])
        except sqlite3.OperationalError:  # Older logs have no table.
            c.execute(CHAIN)
            self._put(c, stream, [(_ENDS, _ENDS)])

    def add(self, c: Cursor, keys: Sequence[Key], *, are_copied: bool = False) -> None:
        """Add keys that are new in their conversations. Those of copied events need no proof of that.

        Raises:
            sqlite3.IntegrityError: a key is stored already, or the chain does not prove that it is new.
        """
        c.executemany("INSERT INTO message_keys VALUES (?,?,?)", keys)
        c.execute(CHAIN)
        for stream in dict.fromkeys(stream for stream, _, _ in keys):
            digests = [digest_of(s, key) for s, key, _ in keys if s == stream]
            if not self._link(c, stream, digests) and not are_copied:
                raise sqlite3.IntegrityError(f"a key of {stream!r} is not proved to be new")

    def replace(self, c: Cursor, stream: str, keys: Mapping[str, int]) -> None:
        """Replace all keys of a conversation with these keys and versions."""
        c.execute(CHAIN)
        self.drop(c, stream)
        c.executemany(
            "INSERT OR REPLACE INTO message_keys VALUES (?,?,?)",
            [(stream, key, version) for key, version in keys.items()],
        )
        self._put(c, stream, pairwise(_chain(stream, keys)))

    def drop(self, c: Cursor, stream: str) -> None:
        """Remove all keys of a conversation."""
        c.execute("DELETE FROM message_keys WHERE originator_id=?", (stream,))
        if has_chains(c):
            c.execute("DELETE FROM sealed_keys WHERE originator_id=?", (stream,))

    def clear(self, c: Cursor) -> None:
        """Remove all keys of all conversations, together with their pages."""
        c.execute("DROP TABLE IF EXISTS sealed_keys")
        c.execute("DROP TABLE IF EXISTS message_keys")
        c.execute(INDEX)

    def find(self, c: Cursor, stream: str, keys: Sequence[str]) -> Found:
        """Look up the versions of these keys."""
        versions = dict(_versions(c, stream, keys))
        if not has_chains(c):
            return Found(versions, is_proved=False)
        digests = {digest_of(stream, key): key in versions for key in keys}
        rows = self._rows(c, stream, list(digests))
        proved = all(_answer(rows.get(d), d) is is_found for d, is_found in digests.items())
        return Found(versions, proved)

    def is_whole(self, c: Cursor, stream: str, keys: Iterable[str]) -> bool:
        """Return whether the chain has exactly these keys, or does not exist yet."""
        c.execute("SELECT digest, next, seal FROM sealed_keys WHERE originator_id=?", (stream,))
        # Rows that were sealed before the log had an encryption key prove nothing, but they are not
        # damage.
        rows = [
            _unseal_row(stream, row, self._encoder.proves) or _unseal_row(stream, row, PLAIN.proves)
            for row in c.fetchall()
        ]
        return not rows or rows == [_Row(*link) for link in pairwise(_chain(stream, keys))]

    def seals(self, c: Cursor, stream: str, key: str) -> bool:
        """Return whether a sealed row proves that this key was stored, without a check of its neighbours."""
        digest = digest_of(stream, key)
        row = self._rows(c, stream, [digest]).get(digest)
        return row is not None and row.digest == digest

    def _link(self, c: Cursor, stream: str, digests: Sequence[bytes]) -> bool:
        """Insert digests into the chain, and return whether it proves that they are new.

        If the chain cannot be proved, remove its start.
        """
        rows, are_new = self._rows(c, stream, digests), True
        gaps: dict[_Row, list[bytes]] = {}
        for digest in sorted(digests):
            row = rows.get(digest)
            if row is None or _answer(row, digest) is None:
                where = "originator_id=? AND digest=?"
                c.execute(f"DELETE FROM sealed_keys WHERE {where}", (stream, _ENDS))
                return False
            if row.digest == digest:
                are_new = False
            else:
                gaps.setdefault(row, []).append(digest)
        chains = ([row.digest, *new, row.next] for row, new in gaps.items())
        self._put(c, stream, [link for chain in chains for link in pairwise(chain)])
        return are_new

    def _rows(
        self, c: Cursor, stream: str, digests: Sequence[bytes]
    ) -> Mapping[bytes, _Row | None]:
        """Map each digest to its own row or the last one before it, or to None if that row is not sealed."""
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
                found[digest] = self._unseal(stream, row)
        return found

    def _unseal(self, stream: str, row: Sequence[object]) -> _Row | None:
        digest, following, seal = row
        known = self._unsealed.get((stream, digest, following, seal))
        if known is not None:
            return known
        if len(self._unsealed) >= _AT_ONCE:
            self._unsealed.clear()
        found = _unseal_row(stream, row, self._encoder.proves)
        if found is not None:
            self._unsealed[stream, digest, following, seal] = found
        return found

    def _put(self, c: Cursor, stream: str, links: Iterable[tuple[bytes, bytes]]) -> None:
        c.executemany(
            "INSERT OR REPLACE INTO sealed_keys VALUES (?,?,?,?)",
            [
                (
                    stream,
                    digest,
                    following,
                    self._encoder.proof(_binding(stream, digest, following)),
                )
                for digest, following in links
            ],
        )


def _chain(stream: str, keys: Iterable[str]) -> list[bytes]:
    return [_ENDS, *sorted({digest_of(stream, key) for key in keys}), _ENDS]


def _answer(row: _Row | None, digest: bytes) -> bool | None:
    """Return whether a key with this digest was stored, or None if the row cannot answer."""
    if row is None or row.digest == digest:
        return None if row is None else True
    return False if not row.next or digest < row.next else None


def _unseal_row(
    stream: str, row: Sequence[object], proves: Callable[[bytes, bytes], bool]
) -> _Row | None:
    """Return the row if its seal is valid, or None."""
    digest, following, seal = row
    if not (isinstance(digest, bytes) and isinstance(following, bytes) and isinstance(seal, bytes)):
        return None
    return _Row(digest, following) if proves(_binding(stream, digest, following), seal) else None


def has_chains(c: Cursor) -> bool:
    """Return whether the log has chains of keys. Older logs have none."""
    c.execute("SELECT 1 FROM sqlite_schema WHERE type='table' AND name='sealed_keys'")
    return c.fetchone() is not None


def has_rows(c: Cursor, stream: str) -> bool:
    """Return whether there is a sealed row of this conversation, even one that proves nothing."""
    if not has_chains(c):
        return False
    c.execute("SELECT 1 FROM sealed_keys WHERE originator_id=? LIMIT 1", (stream,))
    return c.fetchone() is not None


def has_chain(c: Cursor, stream: str) -> bool:
    """Return whether the keys of this conversation are chained."""
    if not has_chains(c):
        return False
    c.execute("SELECT 1 FROM sealed_keys WHERE originator_id=? AND digest=?", (stream, _ENDS))
    return c.fetchone() is not None


def _binding(stream: str, digest: bytes, following: bytes) -> bytes:
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

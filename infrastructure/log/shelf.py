"""What a log keeps beside its events to read them: dictionaries, and the fingerprints of its keys."""

import secrets
from collections.abc import Iterator

from eventsourcing.sqlite import SQLiteCursor, SQLiteDatastore

from .encodings import DictionaryDamaged, Encodings
from .envelope import GENESIS, EnvelopeError, Place, seal, unseal

TABLES = (
    "CREATE TABLE IF NOT EXISTS dictionaries (id INTEGER PRIMARY KEY, content BLOB)",
    "CREATE TABLE IF NOT EXISTS encryption_keys (fingerprint TEXT PRIMARY KEY) WITHOUT ROWID",
)
NAME, SHAPE = "dictionary", 1


class SQLiteShelf:
    """A ``Shelf`` in the file of the log.

    A dictionary lies in an envelope as events do: it has a digest, and is encrypted where they are.
    """

    def __init__(self, datastore: SQLiteDatastore) -> None:
        self._datastore = datastore

    def dictionary(self, number: int, encoder: Encodings) -> bytes:
        """See ``Shelf``."""
        with self._datastore.transaction(commit=False) as c:
            content = next((found for n, found in dictionaries(c) if n == number), None)
        if content is None:
            raise DictionaryDamaged(number, "is missing")
        return opened_dictionary(number, content, encoder)

    def damaged(self, encoder: Encodings) -> Iterator[DictionaryDamaged]:
        """The dictionaries that no payload can be read with."""
        with self._datastore.transaction(commit=False) as c:
            rows = list(dictionaries(c))
        for number, content in rows:
            try:
                opened_dictionary(number, content, encoder)
            except DictionaryDamaged as error:
                yield error

    def fingerprints(self) -> frozenset[str]:
        """See ``Shelf``."""
        with self._datastore.transaction(commit=False) as c:
            if not _is_there(c, "encryption_keys"):
                return frozenset()
            c.execute("SELECT fingerprint FROM encryption_keys")
            return frozenset(str(row[0]) for row in c.fetchall())


def dictionaries(c: SQLiteCursor) -> list[tuple[int, object]]:
    """All dictionaries as they are stored."""
    if not _is_there(c, "dictionaries"):
        return []
    c.execute("SELECT id, content FROM dictionaries")
    return [(int(row[0]), row[1]) for row in c.fetchall()]


def opened_dictionary(number: int, content: object, encoder: Encodings) -> bytes:
    """A stored dictionary, checked.

    Raises:
        DictionaryDamaged: it was changed.
    """
    try:
        return unseal(Place("", number, NAME), content, encoder).payload
    except EnvelopeError as error:
        raise DictionaryDamaged(number, f"is damaged ({error})") from error


def put_dictionary(c: SQLiteCursor, content: bytes, encoder: Encodings) -> int:
    """Store a dictionary; its number is of chance, and so never one that was there before."""
    number = 1 + secrets.randbelow(2**31 - 1)
    place, salt = Place("", number, NAME), secrets.token_hex(16)
    _, blob = seal(place, SHAPE, "-", salt, GENESIS, content, encoder)
    c.execute("INSERT INTO dictionaries VALUES (?,?)", (number, blob))
    return number


def _is_there(c: SQLiteCursor, table: str) -> bool:
    # A log of format 1 that cannot be written has neither table.
    c.execute("SELECT 1 FROM sqlite_schema WHERE type='table' AND name=?", (table,))
    return c.fetchone() is not None

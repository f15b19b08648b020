"""Tables that a log needs to read its events: dictionaries and the fingerprints of its keys."""

from eventsourcing.sqlite import SQLiteCursor, SQLiteDatastore

from refold.application.errors import LogDamaged
from refold.infrastructure.sqlite.sqlite_failures import retrying

from .encodings import AES, DictionaryDamaged, Encodings
from .envelope import (
    GENESIS,
    LONGEST_FRAME,
    Encoder,
    EnvelopeError,
    Place,
    PlainHead,
    Unsealed,
    parse_frame,
    random_hex,
    seal,
    unseal,
)

TABLES = (
    "CREATE TABLE IF NOT EXISTS dictionaries (id INTEGER PRIMARY KEY, content BLOB)",
    "CREATE TABLE IF NOT EXISTS encryption_keys (fingerprint TEXT PRIMARY KEY) WITHOUT ROWID",
)
NAME, SHAPE = "dictionary", 1
PLAIN_HEAD = "plain_head"

_PLAIN_HEADS = (
    "CREATE TABLE IF NOT EXISTS plain_heads "
    "(originator_id TEXT PRIMARY KEY, originator_version INTEGER, state BLOB) WITHOUT ROWID"
)
# The frame ends at the first line feed; no other part of it can contain the name of the cipher.
_ENCRYPTED = f"""
SELECT 1 FROM stored_events WHERE instr(
    substr(state, 1, instr(substr(state, 1, {LONGEST_FRAME}), x'0a')), CAST('{AES}:' AS BLOB)
) LIMIT 1
"""
_LAST = f"SELECT substr(state, 1, {LONGEST_FRAME}) FROM stored_events ORDER BY rowid DESC LIMIT 1"
_NEWEST = f"""
SELECT e.originator_id, e.originator_version, substr(e.state, 1, {LONGEST_FRAME})
FROM stored_events e JOIN (
    SELECT originator_id, max(originator_version) AS newest FROM stored_events GROUP BY 1
) n ON e.originator_id = n.originator_id AND e.originator_version = n.newest
"""


class SQLiteShelf:
    """A ``Shelf`` in the file of the log.

    A dictionary is stored in an envelope like an event: it has a digest, and it is encrypted if events
    are.
    """

    def __init__(self, datastore: SQLiteDatastore, *, trusted: bool = False) -> None:
        """Create a shelf. ``trusted`` means that no other program can write to it, for example in memory."""
        self._datastore = datastore
        self._trusted = trusted
        self._began: bool | None = None

    @retrying
    def dictionary(self, number: int, encoder: Encoder) -> bytes:
        """Return a dictionary, or raise ``DictionaryDamaged``."""
        with self._datastore.transaction(commit=False) as c:
            content = next((found for n, found in dictionaries(c) if n == number), None)
        if content is None:
            raise DictionaryDamaged(number, "is missing")
        return open_dictionary(number, content, encoder)

    @retrying
    def fingerprints(self) -> frozenset[str]:
        """Return the fingerprints of all keys that the log was ever written with."""
        with self._datastore.transaction(commit=False) as c:
            if not _is_there(c, "encryption_keys"):
                return frozenset()
            c.execute("SELECT fingerprint FROM encryption_keys")
            return frozenset(str(row[0]) for row in c.fetchall())

    @retrying
    def plain_head(self, stream: str, encoder: Encoder) -> PlainHead | None:
        """Return the last plain event of a stream, or None if the log is plain or trusted."""
        if self._trusted or not (self.fingerprints() or self._began_encrypted):
            return None
        with self._datastore.transaction(commit=False) as c:
            if not _is_there(c, "plain_heads"):
                return PlainHead()
            c.execute(
                "SELECT originator_version, state FROM plain_heads WHERE originator_id=?", (stream,)
            )
            row = c.fetchone()
        if row is None:
            return PlainHead()
        version, state = row
        return _open_head(stream, version, state, encoder)

    @retrying
    def newest_key(self) -> str | None:
        """Return the fingerprint of the key that encrypts the newest event, or None if it is plain."""
        with self._datastore.transaction(commit=False) as c:
            c.execute(_LAST)
            row = c.fetchone()
        try:
            steps = parse_frame(row[0]).encoding.split(",") if row is not None else []
        except EnvelopeError:
            return None  # The event is damaged; reading it reports the damage.
        return next((s.partition(":")[2] for s in steps if s.startswith(f"{AES}:")), None)

    @retrying
    def refuse_unnoted(self) -> None:
        """Raise ``LogDamaged`` if there are encrypted events but no record of a key."""
        if self._began_encrypted:
            # In this order: a key is recorded with its first event, by others even now.
            newest, noted = self.newest_key(), self.fingerprints()
            if not noted or (newest is not None and newest not in noted):
                raise _unnoted_error()

    @property
    def _began_encrypted(self) -> bool:
        """True if the log had an encrypted event at the first check. The check reads all rows."""
        # Not ``cached_property``: Python 3.11 has one lock for all of them, which a fork may leave
        # locked.
        if self._began is None:
            with self._datastore.transaction(commit=False) as c:
                self._began = _has_encrypted(c)
        return self._began


def begin_key(c: SQLiteCursor, encodings: Encodings) -> None:
    """Prepare the log for a key that was just recorded for the first time.

    With the first key of the log, the last plain event of each stream is recorded, encrypted.

    Raises:
        LogDamaged: the log is encrypted, and the record of that was removed.
    """
    c.execute("SELECT count(*) FROM encryption_keys")
    if c.fetchone()[0] == 1:
        if _has_encrypted(c):
            raise _unnoted_error()
        _put_plain_heads(c, encodings)
    encodings.look_again()


def _has_encrypted(c: SQLiteCursor) -> bool:
    c.execute(_ENCRYPTED)
    return c.fetchone() is not None


def _unnoted_error() -> LogDamaged:
    return LogDamaged(
        "",
        0,
        "the log has encrypted events, but the record of the key was removed or changed, so events from before "
        "the key cannot be verified. `refold salvage NEW.db` copies the encrypted events",
    )


def _put_plain_heads(c: SQLiteCursor, encodings: Encodings) -> None:
    c.execute(_NEWEST)
    rows = c.fetchall()
    if rows:
        c.execute(_PLAIN_HEADS)
        c.execute("DELETE FROM plain_heads")
    for stream, version, frame in rows:
        try:
            link = parse_frame(frame).link()
        except EnvelopeError:
            link = ""  # The event is already damaged.
        place, salt = Place(stream, version, PLAIN_HEAD), random_hex(16)
        _, blob = seal(place, SHAPE, "-", salt, GENESIS, link.encode("ascii"), encodings)
        c.execute("INSERT INTO plain_heads VALUES (?,?,?)", (stream, version, blob))


def _open_head(stream: str, version: int, state: object, encoder: Encoder) -> PlainHead:
    problem = "the record of the plain events of this conversation was changed"
    try:
        if AES not in parse_frame(state).encoding:
            raise EnvelopeError("it is not encrypted")
        link = unseal(Place(stream, version, PLAIN_HEAD), state, encoder).payload
    except EnvelopeError as error:
        raise Unsealed(f"{problem} ({error})") from error
    return PlainHead(version, link.decode("ascii"))


def dictionaries(c: SQLiteCursor) -> list[tuple[int, object]]:
    """Return all dictionaries as they are stored."""
    if not _is_there(c, "dictionaries"):
        return []
    c.execute("SELECT id, content FROM dictionaries")
    return [(int(row[0]), row[1]) for row in c.fetchall()]


def open_dictionary(number: int, content: object, encoder: Encoder) -> bytes:
    """Check and return a stored dictionary.

    Raises:
        DictionaryDamaged: the dictionary was changed.
    """
    try:
        return unseal(Place("", number, NAME), content, encoder).payload
    except EnvelopeError as error:
        raise DictionaryDamaged(number, f"is damaged ({error})") from error


def put_dictionary(c: SQLiteCursor, content: bytes, encoder: Encoder) -> int:
    """Store a dictionary and return its number, which is random so that no number is used twice."""
    import secrets

    number = 1 + secrets.randbelow(2**31 - 1)
    place, salt = Place("", number, NAME), random_hex(16)
    _, blob = seal(place, SHAPE, "-", salt, GENESIS, content, encoder)
    c.execute("INSERT INTO dictionaries VALUES (?,?)", (number, blob))
    return number


def _is_there(c: SQLiteCursor, table: str) -> bool:
    # A read-only log of format 1 has neither table.
    c.execute("SELECT 1 FROM sqlite_schema WHERE type='table' AND name=?", (table,))
    return c.fetchone() is not None

"""Checking the index of keys against the events: each row of both tables, and that none is missing."""

import sqlite3
from collections.abc import Iterator, Mapping

from refold.application.event_log import Damage
from refold.infrastructure.log.file.message_keys import MessageKeys, has_chain, has_chains
from refold.infrastructure.log.stored.mapper import EventMapper

from .rows import DAMAGE, refuse_trouble
from .stream_checks import LOG, StreamCheck

KEYS = "keys"
"""The place of damage that is of the index of keys: it is repaired from the events."""
INDEX_TABLES = frozenset({"message_keys", "sealed_keys"})


def check_keys(
    connection: sqlite3.Connection, mapper: EventMapper, streams: Mapping[str, StreamCheck]
) -> Iterator[Damage]:
    """Everything in which the index of keys differs from the events."""
    try:
        yield from _KeyCheck(connection, mapper, streams).rows()
    except DAMAGE as error:
        refuse_trouble(error)
        yield Damage(KEYS, "", 0, "unreadable", f"the index of keys cannot be read: {error}")


def check_chains(
    connection: sqlite3.Connection, mapper: EventMapper, streams: Mapping[str, StreamCheck]
) -> Iterator[Damage]:
    """What is wrong with the proof of the index of keys, in a log whose events are all intact."""
    try:
        yield from _KeyCheck(connection, mapper, streams).chains()
    except DAMAGE as error:
        refuse_trouble(error)
        yield Damage(KEYS, "", 0, "unreadable", f"the proof of the index cannot be read: {error}")


class _KeyCheck:
    def __init__(
        self,
        connection: sqlite3.Connection,
        mapper: EventMapper,
        streams: Mapping[str, StreamCheck],
    ) -> None:
        self._cursor = connection.cursor()
        self._cursor.row_factory = None
        self._streams = streams
        self._keys = MessageKeys(mapper.encoder)
        # Damaged rows may have anything in any column.
        self._known: dict[object, set[tuple[object, object]]] = {}
        self._cursor.execute("SELECT originator_id, key, originator_version FROM message_keys")
        for stream, key, version in self._cursor.fetchall():
            self._known.setdefault(stream, set()).add((key, version))
        self._lacking = {
            pair for name, s in streams.items() for pair in s.keys - self._known.get(name, set())
        }
        """The keys, with their versions, that are not in the index of their conversation."""

    def rows(self) -> Iterator[Damage]:
        """What is wrong with the rows that lead from keys to events."""
        nothing = StreamCheck("")
        for name in sorted(self._known.keys() | self._streams.keys(), key=repr):
            stream = self._streams.get(str(name), nothing)
            known = self._known.get(name, set())
            # Where the conversation was erased, its events have no keys any more.
            keys = set[tuple[str, int]]() if stream.gone else stream.keys
            for key, version in sorted(known - keys, key=repr):
                if version not in stream.unread:
                    yield self._unexpected(name, stream, key, version)
            for key, version in sorted(keys - known):
                detail = f"the key {key!r} of this message is not in the index of keys"
                yield Damage(KEYS, str(name), version, "keys", detail)

    def chains(self) -> Iterator[Damage]:
        """What is wrong with the rows that prove the others."""
        if not has_chains(self._cursor):
            return
        self._cursor.execute("SELECT DISTINCT originator_id FROM sealed_keys")
        for (name,) in self._cursor.fetchall():
            stream = self._streams.get(str(name))
            keys = () if stream is None or stream.gone else (key for key, _ in stream.keys)
            if stream is None or not self._keys.is_whole(self._cursor, str(name), keys):
                detail = "the proof of the index of keys does not fit the messages"
                yield Damage(KEYS, str(name), 0, "keys", detail)

    def _unexpected(
        self, name: object, stream: StreamCheck, key: object, version: object
    ) -> Damage:
        """A row without its event: either that is lost, or the row is wrong."""
        place, number = str(name), version if isinstance(version, int) else 0
        if self._was_stored(name, stream, key, version):
            detail = f"the index of keys knows the message {key!r} here, the log does not"
            return Damage(LOG, place, number, "missing", detail)
        return Damage(KEYS, place, 0, "keys", f"the index of keys has a wrong row for {key!r}")

    def _was_stored(self, name: object, stream: StreamCheck, key: object, version: object) -> bool:
        if not (isinstance(name, str) and isinstance(key, str) and isinstance(version, int)):
            return False
        if (key, version) in self._lacking or any(key == known for known, _ in stream.keys):
            return False  # It only lies elsewhere.
        if has_chain(self._cursor, name):
            return self._keys.seals(self._cursor, name, key)
        is_of_before = stream.version > 0 or not has_chains(self._cursor)
        return is_of_before and version > stream.version

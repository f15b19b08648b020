"""Which messages were stored under which keys, proved by the events; the index of keys only says where.

What the index says is believed where its chain bears it out and the event has exactly this key. Else the
events of the conversation are read, and the index is made from them: it never decides by itself that a
message is stored, or that it is not.
"""

from collections.abc import Callable, Mapping, Sequence

from eventsourcing.persistence import StoredEvent

from refold.application.errors import LogDamaged
from refold.application.runtime.plain_lines import conversation, plain_logger
from refold.domain.events import MessageAppended
from refold.infrastructure.observability.log_observer import Notice, ignore
from refold.infrastructure.sqlite.sqlite_failures import STORE_ERRORS, retry

from .codec import CodecError, key_of
from .envelope import EnvelopeError, EventMapper
from .message_keys import Cursor, has_chain
from .recorder import Head, LogRecorder

BATCH = 500
"""Rows that are in memory at once."""
_EVENTS = "SELECT originator_id, originator_version, topic, state FROM stored_events"

logger = plain_logger(__name__)


class ProvenKeys:
    """The keys of a log."""

    def __init__(
        self,
        recorder: LogRecorder,
        mapper: EventMapper,
        told: Callable[[Notice], None] = ignore,
    ) -> None:
        """``told``: of each conversation whose index was wrong and is made again."""
        self._recorder = recorder
        self._mapper = mapper
        self._told = told

    def versions(self, stream: str, keys: Sequence[str]) -> Mapping[str, int]:
        """The versions of the messages that were stored under those of these keys that were.

        Raises:
            LogDamaged: what the events say cannot be told, or they lack a message that was stored.
        """
        found = retry(lambda: self._looked_up(stream, keys))
        return self._read(stream, keys) if found is None else found

    def renew(self, stream: str) -> Mapping[str, int]:
        """Make the index of a conversation from its events; all of its keys with their versions.

        Raises:
            LogDamaged: as above.
        """
        with self._recorder.datastore.transaction(commit=True) as c:
            # A write first, of nothing: a transaction that reads before it writes can be refused at once.
            c.execute("DELETE FROM message_keys WHERE 0")
            known = self._proved(c, stream)
            self._recorder.keys.replace(c, stream, known)
        return known

    def renew_all(self) -> None:
        """Make the whole index from the events, in tables that are new: damaged pages of the old ones go.

        Raises:
            LogDamaged: as above; then the index is as it was.
        """
        with self._recorder.datastore.transaction(commit=True) as c:
            self._recorder.keys.clear(c)
            c.execute("SELECT DISTINCT originator_id FROM stored_events")
            for (stream,) in c.fetchall():
                self._recorder.keys.replace(c, stream, keys_of(c, self._mapper, stream)[0])

    def _looked_up(self, stream: str, keys: Sequence[str]) -> Mapping[str, int] | None:
        """What the index says; None where it is not borne out."""
        with self._recorder.datastore.transaction(commit=False) as c:
            found = self._recorder.keys.find(c, stream, keys)
            if found.is_proved:
                pairs = found.versions.items()
                is_right = all(self._has_key(c, stream, version, key) for key, version in pairs)
            else:
                # No rows, and no events: a conversation that begins now.
                is_right = not found.versions and not _rows_after(c, stream, 0, 1)
        return found.versions if is_right else None

    def _has_key(self, c: Cursor, stream: str, version: object, key: str) -> bool:
        if not isinstance(version, int):
            return False
        c.execute(
            f"{_EVENTS} WHERE originator_id=? AND originator_version=?",
            (stream, version),
        )
        row = c.fetchone()
        if row is None:
            return False
        try:
            event = self._mapper.to_domain_event(StoredEvent(*row)).event
        except ValueError:  # Damaged, or of a newer refold: reading all events says so.
            return False
        return isinstance(event, MessageAppended) and event.key == key

    def _read(self, stream: str, keys: Sequence[str]) -> Mapping[str, int]:
        try:
            known = retry(lambda: self._made_again(stream))
        except STORE_ERRORS as error:
            # Nothing can be written, as on a disk that became read-only: the answer is as good.
            logger.warning("%s: its index of keys stays as it is: %s", conversation(stream), error)
            with self._recorder.datastore.transaction(commit=False) as c:
                known = self._proved(c, stream)
        return {key: known[key] for key in keys if key in known}

    def _made_again(self, stream: str) -> Mapping[str, int]:
        with self._recorder.datastore.transaction(commit=False) as c:
            had_chain = has_chain(c, stream)
        known = self.renew(stream)
        if had_chain:
            self._told(Notice("keys.rebuilt", stream, {"keys": len(known)}))
        return known

    def _proved(self, c: Cursor, stream: str) -> Mapping[str, int]:
        """The keys as the events have them, which must have every message that was surely stored."""
        known, last = keys_of(c, self._mapper, stream)
        # As bytes: of a damaged text, not even Python may make one.
        c.execute(
            "SELECT CAST(key AS BLOB), originator_version FROM message_keys WHERE originator_id=?",
            (stream,),
        )
        for stored, version in c.fetchall():
            key = stored.decode("utf-8", "replace") if isinstance(stored, bytes) else ""
            if key in known or not isinstance(version, int):
                continue
            # One table alone may be wrong. What both know was stored; so was, in a log that has one
            # table only, what lies behind the end.
            was_stored = (
                self._recorder.keys.seals(c, stream, key)
                if has_chain(c, stream)
                else version > last
            )
            if was_stored:
                raise LogDamaged(stream, version, f"the message with the key {key!r} is missing")
        return known


def keys_of(c: Cursor, mapper: EventMapper, stream: str) -> tuple[dict[str, int], int]:
    """The keys that the events of a conversation have, with their versions, and the last version.

    Raises:
        LogDamaged: an event is missing or changed.
    """
    keys, head = dict[str, int](), Head()
    while rows := _rows_after(c, stream, head.version, BATCH):
        for row in rows:
            version = head.version + 1
            if row.originator_version != version:
                raise LogDamaged(stream, version, "the event is missing")
            try:
                envelope = mapper.unsealed(row)
                key = key_of(row.topic, envelope.payload)
            except (EnvelopeError, CodecError) as error:
                raise LogDamaged(stream, version, str(error)) from error
            if envelope.previous != head.link:
                raise LogDamaged(stream, version, "it does not follow the event before")
            if key is not None:
                keys[key] = version
            head = Head(version, envelope.link())
    return keys, head.version


def _rows_after(c: Cursor, stream: str, version: int, most: int) -> list[StoredEvent]:
    c.execute(
        f"{_EVENTS} WHERE originator_id=? AND originator_version>? "
        "ORDER BY originator_version LIMIT ?",
        (stream, version, most),
    )
    return [StoredEvent(*row) for row in c.fetchall()]

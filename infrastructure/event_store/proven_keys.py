"""Find the messages that were stored under idempotency keys, proved by the events.

An answer of the index is used only if its chain proves it and the event has exactly this key. Otherwise
the events of the conversation are read and the index is rebuilt. The index alone never decides whether
a message is stored.
"""

from collections.abc import Callable, Mapping, Sequence

from eventsourcing.persistence import StoredEvent

from refold.application.errors import LogDamaged
from refold.application.runtime.plain_lines import conversation, plain_logger
from refold.domain.events import MessageAppended
from refold.infrastructure.observability.log_observer import Notice, ignore
from refold.infrastructure.sqlite.sqlite_failures import STORE_ERRORS, retry

from .codec import key_of
from .envelope import EnvelopeError, EventMapper
from .message_keys import Cursor, has_chain, has_rows
from .plain_shapes import CodecError
from .recorder import Head, LogRecorder

BATCH = 500
"""Number of rows in memory at once."""
_EVENTS = "SELECT originator_id, originator_version, topic, state FROM stored_events"

logger = plain_logger(__name__)


class ProvenKeys:
    """The idempotency keys of a log."""

    def __init__(
        self,
        recorder: LogRecorder,
        mapper: EventMapper,
        notify: Callable[[Notice], None] = ignore,
    ) -> None:
        """Create the keys. ``notify`` is called for each conversation whose wrong index is rebuilt."""
        self._recorder = recorder
        self._mapper = mapper
        self._notify = notify

    def versions(self, stream: str, keys: Sequence[str]) -> Mapping[str, int]:
        """Map those of these keys that are stored to the versions of their messages.

        Raises:
            LogDamaged: the events cannot be read, or a message that was stored is missing.
        """
        found = retry(lambda: self._look_up(stream, keys))
        return self._read(stream, keys) if found is None else found

    def renew(self, stream: str) -> Mapping[str, int]:
        """Rebuild the index of a conversation from its events and return its keys with their versions.

        Raises:
            LogDamaged: the events cannot be read, or a message that was stored is missing.
        """
        with self._recorder.datastore.transaction(commit=True) as c:
            # The transaction starts with an empty write: one that reads before it writes can be
            # refused at once.
            c.execute("DELETE FROM message_keys WHERE 0")
            known = self._prove_keys(c, stream)
            self._recorder.keys.replace(c, stream, known)
        return known

    def renew_all(self) -> None:
        """Rebuild the whole index from the events. New tables replace the damaged pages of the old ones.

        Raises:
            LogDamaged: the events cannot be read; the index was not changed.
        """
        with self._recorder.datastore.transaction(commit=True) as c:
            self._recorder.keys.clear(c)
            c.execute("SELECT DISTINCT originator_id FROM stored_events")
            for (stream,) in c.fetchall():
                self._recorder.keys.replace(c, stream, keys_of(c, self._mapper, stream)[0])

    def _look_up(self, stream: str, keys: Sequence[str]) -> Mapping[str, int] | None:
        """Look up keys in the index, or return None if its answer cannot be proved."""
        with self._recorder.datastore.transaction(commit=False) as c:
            found = self._recorder.keys.find(c, stream, keys)
            if found.is_proved:
                pairs = found.versions.items()
                is_right = all(self._has_key(c, stream, version, key) for key, version in pairs)
            else:
                # No rows and no events: the conversation is new.
                has_any = found.versions or has_rows(c, stream) or _rows_after(c, stream, 0, 1)
                is_right = not has_any
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
        except (
            ValueError
        ):  # The event is damaged or written by a newer refold; reading all events reports it.
            return False
        return isinstance(event, MessageAppended) and event.key == key

    def _read(self, stream: str, keys: Sequence[str]) -> Mapping[str, int]:
        try:
            known = retry(lambda: self._rebuild(stream))
        except STORE_ERRORS as error:
            # Nothing can be written, for example on a read-only disk. The answer is still correct.
            logger.warning(
                "%s: the index of keys cannot be rebuilt: %s", conversation(stream), error
            )
            with self._recorder.datastore.transaction(commit=False) as c:
                known = self._prove_keys(c, stream)
        return {key: known[key] for key in keys if key in known}

    def _rebuild(self, stream: str) -> Mapping[str, int]:
        with self._recorder.datastore.transaction(commit=False) as c:
            had_chain = has_chain(c, stream)
        known = self.renew(stream)
        if had_chain:
            self._notify(Notice("keys.rebuilt", stream, {"keys": len(known)}))
        return known

    def _prove_keys(self, c: Cursor, stream: str) -> Mapping[str, int]:
        """Return the keys according to the events, after checking that no stored message is missing."""
        known, last = keys_of(c, self._mapper, stream)
        # Read as bytes, because a damaged text cannot always be decoded.
        c.execute(
            "SELECT CAST(key AS BLOB), originator_version FROM message_keys WHERE originator_id=?",
            (stream,),
        )
        for stored, version in c.fetchall():
            key = stored.decode("utf-8", "replace") if isinstance(stored, bytes) else ""
            if key in known or not isinstance(version, int):
                continue
            # One of the tables may be wrong. A key that both tables contain was stored. In a log
            # with one table, so was a key after the end of the events.
            was_stored = (
                self._recorder.keys.seals(c, stream, key)
                if has_chain(c, stream)
                else version > last
            )
            if was_stored:
                raise LogDamaged(stream, version, f"the message with the key {key!r} is missing")
        return known


def keys_of(c: Cursor, mapper: EventMapper, stream: str) -> tuple[dict[str, int], int]:
    """Return the keys in the events of a conversation with their versions, and the last version.

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

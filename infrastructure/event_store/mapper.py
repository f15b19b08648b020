"""The mapper between recorded events and stored bytes: the seam of the eventsourcing library."""

from hashlib import sha256
from typing import Any, NamedTuple

from eventsourcing.persistence import Mapper, StoredEvent

from refold.application.ports.conversation_log import LoggedEvent
from refold.domain.events import Event, EventLost

from . import codec
from .envelope import (
    PLAIN,
    Encoder,
    Envelope,
    EnvelopeError,
    Place,
    Shelf,
    erase,
    framed,
    seal,
    unseal,
)


class RecordedEvent(NamedTuple):
    """A domain event with its place in a stream, its time, and its link of the chain."""

    originator_id: str
    originator_version: int
    at: str
    """When it was logged: ISO 8601, UTC, microseconds."""
    event: Event
    previous: str
    link: str
    salt: str
    remains: str | None = None
    """The SHA-256 of what is left of its payload, if it was erased."""

    def logged(self) -> LoggedEvent:
        """The same without its links; its place in the whole log is not known."""
        stream, version = self.originator_id, self.originator_version
        return LoggedEvent(0, stream, version, self.at, self.event, self.remains is not None)


class UnsealedEvent(NamedTuple):
    """An event about to be stored, before it has a link."""

    originator_id: str
    originator_version: int
    at: str
    event: Event
    previous: str
    salt: str


class EventMapper(Mapper[Any]):
    """Maps with our own envelope and codec: names are fixed, bytes are checked."""

    def __init__(self, encoder: Encoder = PLAIN) -> None:
        """Needs no transcoder: see ``codec``."""
        self._encoder = encoder

    @property
    def encoder(self) -> Encoder:
        """What knows how payloads are stored."""
        return self._encoder

    def reading(self, shelf: Shelf) -> "EventMapper":
        """The mapper of another file, with the same keys."""
        return EventMapper(self._encoder.reading(shelf))

    def store(self, new: UnsealedEvent) -> tuple[StoredEvent, str]:
        """The row to insert, and the link that the next event names."""
        name, shape, payload = codec.encode(new.event)
        place = Place(new.originator_id, new.originator_version, name)
        envelope, blob = seal(place, shape, new.at, new.salt, new.previous, payload, self._encoder)
        return StoredEvent(*place, blob), envelope.link()

    def to_stored_event(self, domain_event: Any) -> StoredEvent:
        """The row of an event that was recorded before: the same bytes again."""
        return self.store(
            UnsealedEvent(
                domain_event.originator_id,
                domain_event.originator_version,
                domain_event.at,
                domain_event.event,
                domain_event.previous,
                domain_event.salt,
            )
        )[0]

    def redact(self, row: StoredEvent, remains: Event | None) -> tuple[StoredEvent, str]:
        """The row with only ``remains`` left of its payload (None: nothing), and the SHA-256 of that.

        Place, time and link stay. The event that was there can be of any state: it is not read.

        Raises:
            EnvelopeError: the row has no frame that could be kept.
        """
        place = Place(str(row.originator_id), row.originator_version, row.topic)
        name, shape, payload = place.name, 1, b""
        if remains is not None:
            name, shape, payload = codec.encode(remains)
        assert name == place.name
        blob = erase(place, framed(row.state), shape, payload, self._encoder)
        return StoredEvent(*place, blob), sha256(payload).hexdigest()

    def moved(
        self, row: StoredEvent, into: str, *, follows: str, previous: str, salt: str, erased: bool
    ) -> tuple[StoredEvent, str | None]:
        """The row of the same event, in its shape and of its time, for the stream ``into``; and the
        idempotency key, where it is a message with one.

        ``follows``: the link that it must name where it is; ``previous``: the one that it names from
        now on. ``erased``: whether it stays marked as erased there, if it is; else what is left of it
        becomes an event like any other.

        Raises:
            EnvelopeError: the bytes were changed, or it does not follow.
        """
        name, version = row.topic, row.originator_version
        envelope = unseal(Place(str(row.originator_id), version, name), row.state, self._encoder)
        if envelope.previous != follows:
            raise EnvelopeError("it does not follow the event before")
        moved = self.reseal(Place(into, version, name), envelope, previous, salt, erased=erased)
        return moved, codec.key_of(moved.topic, envelope.payload)

    def reseal(
        self, place: Place, envelope: Envelope, previous: str, salt: str, *, erased: bool
    ) -> StoredEvent:
        """The row for ``place`` of an event that was opened, as ``moved`` makes it."""
        shape, payload, name = envelope.shape, envelope.payload, place.name
        if envelope.erased and erased:
            before = envelope._replace(previous=previous)
            return StoredEvent(*place, erase(place, before, shape, payload, self._encoder))
        if envelope.erased and not payload:
            name, shape, payload = codec.encode(EventLost())
        place = place._replace(name=name)
        _, blob = seal(place, shape, envelope.at, salt, previous, payload, self._encoder)
        return StoredEvent(*place, blob)

    def to_domain_event(self, stored_event: StoredEvent) -> RecordedEvent:
        """Check and open a row.

        Raises:
            EnvelopeError: the bytes were changed.
            CodecError: the event cannot be read by this version.
        """
        stream, version = str(stored_event.originator_id), stored_event.originator_version
        envelope, event = self.open(Place(stream, version, stored_event.topic), stored_event.state)
        remains = sha256(envelope.payload).hexdigest() if envelope.erased else None
        return RecordedEvent(
            stream,
            version,
            envelope.at,
            event,
            envelope.previous,
            envelope.link(),
            envelope.salt,
            remains,
        )

    def unsealed(self, row: StoredEvent) -> Envelope:
        """Check a row of whatever name, and take it apart; raises as ``to_domain_event`` does."""
        place = Place(str(row.originator_id), row.originator_version, row.topic)
        return self.unsealed_columns(place, row.state)

    def unsealed_columns(self, place: Place, state: object) -> Envelope:
        """The same for a row that comes as its columns."""
        return unseal(place, state, self._encoder)

    def open(self, place: Place, state: object) -> tuple[Envelope, Event]:
        """Check and open the columns of a row; raises as ``to_domain_event`` does."""
        envelope = unseal(place, state, self._encoder)
        if envelope.erased and not envelope.payload:
            return envelope, EventLost()
        return envelope, codec.decode(place.name, envelope.shape, envelope.payload)


def link_of(stored_event: StoredEvent) -> str:
    """The link of a row, from its frame alone."""
    try:
        return framed(stored_event.state).link()
    except EnvelopeError:
        return ""

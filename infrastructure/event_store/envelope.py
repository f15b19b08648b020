"""The envelope of a stored event: hash chain, encoding, and conversion between events and bytes."""

import os
from collections.abc import Collection
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

from eventsourcing.persistence import Mapper, StoredEvent

from refold.application.ports.conversation_log import LoggedEvent
from refold.domain.events import Event, EventLost

from . import codec

MAGIC = b"refold1"
ERASED = b"erased1"
GENESIS = "0" * 64
"""Previous link in the first event of a stream."""
_FIELDS = 6
"""Number of fields of a frame without an encoding."""
LONGEST_FRAME = 300
"""Maximum number of bytes of a frame."""
PROOF_BYTES = 16
"""Number of bytes of a proof, without the fingerprint of its key."""


class EnvelopeError(ValueError):
    """Stored bytes are not an envelope, or differ from their digest."""


class Unsealed(EnvelopeError):
    """A plain event is stored where only encrypted events are allowed."""


class Place(NamedTuple):
    """The place of a row: stream, version and name."""

    stream: str
    version: int
    name: str


HIGHEST_VERSION = 2**62


def random_hex(size: int) -> str:
    """Return random bytes as hex digits, for salts and ids. Importing ``secrets`` takes 3 ms."""
    return os.urandom(size).hex()


def is_place(stream: object, version: object, name: object) -> bool:
    """Return whether these columns identify an event. Damaged columns may have any value."""
    return (
        isinstance(stream, str)
        and isinstance(version, int)
        and isinstance(name, str)
        and 0 < version < HIGHEST_VERSION
    )


class Envelope(NamedTuple):
    """The parsed frame of a stored event."""

    shape: int
    at: str
    salt: str
    digest: str
    previous: str
    payload: bytes
    erased: bool = False
    """True if the event was erased. If so, ``payload`` is what remains of it and ``salt`` is the checksum
    of that.
    """
    encoding: str = ""
    """Encoding of the stored ``payload``; empty if it is stored as it is."""

    def link(self) -> str:
        """Return the link that the next event of the stream must name as its previous link."""
        return sha256((self.previous + self.digest).encode("ascii")).hexdigest()


class Encoder(Protocol):
    """The conversion between payloads and stored bytes."""

    @property
    def encoding(self) -> str:
        """Encoding of new payloads; empty if they are stored as they are."""
        ...

    def encode(self, place: Place, envelope: Envelope) -> tuple[str, bytes]:
        """Return the text of the salt field and the payload in the envelope's encoding."""
        ...

    def decode(self, place: Place, envelope: Envelope) -> Envelope:
        """Return the envelope with the original salt and payload.

        Raises:
            EnvelopeError: the stored bytes were changed, or belong to another place.
        """
        ...

    def vouch(self, place: Place, envelope: Envelope) -> None:
        """Reject a plain event where only encrypted ones are allowed. Called if ``encoding`` is not empty.

        Raises:
            Unsealed: the event was stored without the key.
        """
        ...

    def proof(self, said: bytes) -> bytes:
        """Return a proof for ``said`` that reveals later changes. With a key, the proof cannot be made
        without it.
        """
        ...

    def proves(self, said: bytes, proof: bytes) -> bool:
        """Return whether ``proof`` was made for ``said``, and with a key if the log has one."""
        ...

    def reading(self, shelf: "Shelf") -> "Encoder":
        """Return an encoder for another file, with the same keys."""
        ...


class PlainHead(NamedTuple):
    """The newest event of a stream that was stored before the log was encrypted. By default, none exists."""

    version: int = 0
    link: str = GENESIS


class Shelf(Protocol):
    """The part of a log that stores dictionaries and the fingerprints of its keys."""

    def dictionary(self, number: int, encoder: "Encoder") -> bytes:
        """Return a dictionary, or raise ``DictionaryDamaged``."""
        ...

    def fingerprints(self) -> Collection[str]:
        """Return the fingerprints of all keys that the log was ever written with."""
        ...

    def plain_head(self, stream: str, encoder: "Encoder") -> PlainHead | None:
        """Return the last plain event of a stream, or None if the log is plain or trusted.

        Raises:
            EnvelopeError: the record of it was changed.
        """
        ...

    def newest_key(self) -> str | None:
        """Return the fingerprint of the key that encrypts the newest event, or None if it is plain."""
        ...

    def refuse_unnoted(self) -> None:
        """Raise ``LogDamaged`` if there are encrypted events but no record of a key."""
        ...


class PlainEncoder:
    """An encoder that stores payloads as they are. It reads plain payloads only."""

    encoding = ""

    def encode(self, place: Place, envelope: Envelope) -> tuple[str, bytes]:
        """Return the salt and the payload unchanged."""
        del place
        return envelope.salt, envelope.payload

    def decode(self, place: Place, envelope: Envelope) -> Envelope:
        """Return the envelope unchanged, or raise ``EnvelopeError`` if it has an encoding."""
        del place
        raise EnvelopeError(f"unknown encoding {envelope.encoding!r}")

    def vouch(self, place: Place, envelope: Envelope) -> None:
        """Accept every event, because a log without a key has plain events only."""

    def proof(self, said: bytes) -> bytes:
        """Return a digest of ``said``."""
        return sha256(said).digest()[:PROOF_BYTES]

    def proves(self, said: bytes, proof: bytes) -> bool:
        """Return whether ``proof`` is the digest of ``said``."""
        return proof == self.proof(said)

    def reading(self, shelf: Shelf) -> Encoder:
        """Return this encoder, which reads any file."""
        del shelf
        return self


PLAIN = PlainEncoder()


def digest_of(place: Place, shape: int, at: str, salt: str, payload: bytes) -> str:
    """Return the digest of an event. The salt keeps a short erased text from being guessed."""
    stream, version, name = place
    head = f"{salt}\0{stream}\0{version}\0{name}\0{shape}\0{at}\0"
    digest = sha256(head.encode("utf-8", "surrogatepass"))
    digest.update(payload)
    return digest.hexdigest()


def seal(
    place: Place,
    shape: int,
    at: str,
    salt: str,
    previous: str,
    payload: bytes,
    encoder: Encoder = PLAIN,
) -> tuple[Envelope, bytes]:
    """Frame a payload. Return the envelope and the bytes to store."""
    digest = digest_of(place, shape, at, salt, payload)
    envelope = Envelope(shape, at, salt, digest, previous, payload, encoding=encoder.encoding)
    return envelope, stored_bytes(place, envelope, encoder)


def erase(
    place: Place, before: Envelope, shape: int, remains: bytes, encoder: Encoder = PLAIN
) -> bytes:
    """Return the bytes that replace an event of which only ``remains`` is left."""
    _, at, _, digest, previous, *_ = before
    check = _check_of(place, shape, at, remains)
    left = Envelope(shape, at, check, digest, previous, remains, True, encoder.encoding)
    return stored_bytes(place, left, encoder)


def stored_bytes(place: Place, envelope: Envelope, encoder: Encoder) -> bytes:
    """Return the bytes to store for an open envelope, in the encoding that it names."""
    shape, at, salt, digest, previous, payload, erased, encoding = envelope
    magic = (ERASED if erased else MAGIC).decode()
    last = ""
    if encoding:
        salt, payload = encoder.encode(place, envelope)
        last = f" {encoding}"
    return f"{magic} {shape} {at} {salt} {digest} {previous}{last}\n".encode("ascii") + payload


def unseal(place: Place, blob: object, encoder: Encoder = PLAIN) -> Envelope:
    """Parse and check the stored bytes of a row.

    Raises:
        EnvelopeError: the bytes are not an envelope, were changed, or belong to another place.
    """
    envelope = parse_frame(blob)
    if encoder.encoding:
        encoder.vouch(place, envelope)
    if envelope.encoding:
        envelope = encoder.decode(place, envelope)
    shape, at, salt, digest, _, payload, erased, _ = envelope
    if erased:
        whole = _check_of(place, shape, at, payload) == salt
    else:
        whole = digest_of(place, shape, at, salt, payload) == digest
    if not whole:
        raise EnvelopeError("the content differs from its digest")
    return envelope


def _check_of(place: Place, shape: int, at: str, remains: bytes) -> str:
    return digest_of(place, shape, at, ERASED.decode(), remains)


def parse_frame(blob: object) -> Envelope:
    """Parse stored bytes without checking them. The payload may be missing.

    Raises:
        EnvelopeError: the bytes are not an envelope.
    """
    if not isinstance(blob, bytes) or not blob.startswith((MAGIC, ERASED)):
        raise EnvelopeError("the stored bytes are not an event of refold")
    head, _, payload = blob.partition(b"\n")
    try:
        fields = head.decode("ascii").split(" ")
        if len(fields) == _FIELDS:
            fields.append("")  # An event that is stored as it is names no encoding.
        _, number, at, salt, digest, previous, encoding = fields
        erased = blob.startswith(ERASED)
        return Envelope(int(number), at, salt, digest, previous, payload, erased, encoding)
    except ValueError as error:
        raise EnvelopeError("the frame of the stored event is damaged") from error


class RecordedEvent(NamedTuple):
    """A domain event with its place in a stream, its time and its link of the chain."""

    originator_id: str
    originator_version: int
    at: str
    """Time of logging: ISO 8601, UTC, microseconds."""
    event: Event
    previous: str
    link: str
    salt: str
    remains: str | None = None
    """SHA-256 of the remaining payload if the event was erased, or None."""

    def logged(self) -> LoggedEvent:
        """Return the event without its links and without a log position."""
        stream, version = self.originator_id, self.originator_version
        return LoggedEvent(0, stream, version, self.at, self.event, self.remains is not None)


class UnsealedEvent(NamedTuple):
    """An event to be stored, which has no link yet."""

    originator_id: str
    originator_version: int
    at: str
    event: Event
    previous: str
    salt: str


class EventMapper(Mapper[Any]):
    """A mapper of the eventsourcing library with fixed names and checked bytes."""

    def __init__(self, encoder: Encoder = PLAIN) -> None:
        """Create a mapper. It needs no transcoder, because ``codec`` converts events."""
        self._encoder = encoder
        codec.prepare()

    @property
    def encoder(self) -> Encoder:
        """Encoder of the payloads."""
        return self._encoder

    def reading(self, shelf: Shelf) -> "EventMapper":
        """Return a mapper for another file, with the same keys."""
        return EventMapper(self._encoder.reading(shelf))

    def store(self, new: UnsealedEvent) -> tuple[StoredEvent, str]:
        """Return the row to insert, and the link that the next event names."""
        name, shape, payload = codec.encode(new.event)
        place = Place(new.originator_id, new.originator_version, name)
        envelope, blob = seal(place, shape, new.at, new.salt, new.previous, payload, self._encoder)
        return StoredEvent(*place, blob), envelope.link()

    def to_stored_event(self, domain_event: Any) -> StoredEvent:
        """Return the row of an event that was recorded before, with identical bytes."""
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
        """Return the row with its payload reduced to ``remains``, and the SHA-256 of that.

        Place, time and link are kept. ``remains`` is None if nothing is left. The old payload is not
        decoded, so it may be damaged.

        Raises:
            EnvelopeError: the row has no frame to keep.
        """
        place = Place(str(row.originator_id), row.originator_version, row.topic)
        name, shape, payload = place.name, 1, b""
        if remains is not None:
            name, shape, payload = codec.encode(remains)
        assert name == place.name
        blob = erase(place, parse_frame(row.state), shape, payload, self._encoder)
        return StoredEvent(*place, blob), sha256(payload).hexdigest()

    def moved(
        self, row: StoredEvent, into: str, *, follows: str, previous: str, salt: str, erased: bool
    ) -> tuple[StoredEvent, str | None]:
        """Return the row of an event for the stream ``into``, and its idempotency key if it has one.

        Shape and time are kept. ``follows`` is the link that the event must name where it is, and
        ``previous`` the one that it names in the new stream. With ``erased``, an erased event stays
        marked as erased; otherwise what remains of it becomes an ordinary event.

        Raises:
            EnvelopeError: the bytes were changed, or the event does not follow ``follows``.
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
        """Return the row of an opened event for ``place``. The other arguments are those of ``moved``."""
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
        """Check and decode a row.

        Raises:
            EnvelopeError: the bytes were changed.
            CodecError: this version cannot read the event.
        """
        stream, version = str(stored_event.originator_id), stored_event.originator_version
        return self.recorded(Place(stream, version, stored_event.topic), stored_event.state)

    def recorded(self, place: Place, state: object) -> RecordedEvent:
        """Check and decode the columns of a row; raises like ``to_domain_event``."""
        envelope, event = self.open(place, state)
        remains = sha256(envelope.payload).hexdigest() if envelope.erased else None
        return RecordedEvent(
            place.stream,
            place.version,
            envelope.at,
            event,
            envelope.previous,
            envelope.link(),
            envelope.salt,
            remains,
        )

    def unsealed(self, row: StoredEvent) -> Envelope:
        """Check and parse a row with any name; raises like ``to_domain_event``."""
        place = Place(str(row.originator_id), row.originator_version, row.topic)
        return self.unsealed_columns(place, row.state)

    def unsealed_columns(self, place: Place, state: object) -> Envelope:
        """Check and parse a row that is given as columns."""
        return unseal(place, state, self._encoder)

    def open(self, place: Place, state: object) -> tuple[Envelope, Event]:
        """Check and decode the columns of a row; raises like ``to_domain_event``."""
        envelope = unseal(place, state, self._encoder)
        if envelope.erased and not envelope.payload:
            return envelope, EventLost()
        return envelope, codec.decode(place.name, envelope.shape, envelope.payload)


def link_in(state: bytes) -> str:
    """Return the link of an event from its frame alone, or an empty string if that is damaged."""
    try:
        return parse_frame(state).link()
    except EnvelopeError:
        return ""

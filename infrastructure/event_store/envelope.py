"""The envelope of a stored event: its hash chain, its encodings, and the way from an event to bytes and back."""

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
"""What the first event of a stream names as the previous link."""
LONGEST_FRAME = 300
"""No frame is longer than so many bytes."""
PROOF_BYTES = 16
"""Of a proof, without the fingerprint of its key."""


class EnvelopeError(ValueError):
    """Stored bytes are not an envelope, or they differ from their digest."""


class Unsealed(EnvelopeError):
    """An event is not encrypted where only encrypted ones were stored."""


class Place(NamedTuple):
    """Where a row belongs."""

    stream: str
    version: int
    name: str


HIGHEST_VERSION = 2**62


def is_place(stream: object, version: object, name: object) -> bool:
    """Whether these columns say which event a row is: damaged ones may hold anything."""
    return (
        isinstance(stream, str)
        and isinstance(version, int)
        and isinstance(name, str)
        and 0 < version < HIGHEST_VERSION
    )


class Envelope(NamedTuple):
    """A stored event's frame, taken apart."""

    shape: int
    at: str
    salt: str
    digest: str
    previous: str
    payload: bytes
    erased: bool = False
    """Whether ``payload`` is only what is left of it; then ``salt`` is the check of that."""
    encoding: str = ""
    """How ``payload`` is stored; empty: as it is."""

    def link(self) -> str:
        """What the next event of the stream must name as its previous link."""
        return sha256((self.previous + self.digest).encode("ascii")).hexdigest()


class Encoder(Protocol):
    """Knows how payloads are stored."""

    @property
    def encoding(self) -> str:
        """The encoding of what is written from now on; empty: none."""
        ...

    def encode(self, place: Place, envelope: Envelope) -> tuple[str, bytes]:
        """What stands in the field of the salt, and the stored payload, in the envelope's encoding."""
        ...

    def decode(self, place: Place, envelope: Envelope) -> Envelope:
        """The envelope with salt and payload as they were.

        Raises:
            EnvelopeError: the stored bytes were changed, or belong elsewhere.
        """
        ...

    def vouch(self, place: Place, envelope: Envelope) -> None:
        """Refuse what is not encrypted where it should be.

        Raises:
            Unsealed: it was put there without the key.
        """
        ...

    def proof(self, said: bytes) -> bytes:
        """What is kept with ``said`` so that a change of it is noticed; by a key, who has none cannot
        make it.
        """
        ...

    def proves(self, said: bytes, proof: bytes) -> bool:
        """Whether ``proof`` was made of ``said``, and with a key where the log has one."""
        ...

    def reading(self, shelf: "Shelf") -> "Encoder":
        """The encoder of another file, with the same keys."""
        ...


class PlainHead(NamedTuple):
    """The newest event of a stream that was stored before the log had a key; none by default."""

    version: int = 0
    link: str = GENESIS


class Shelf(Protocol):
    """Where the log keeps dictionaries and the fingerprints of its keys."""

    def dictionary(self, number: int, encoder: "Encoder") -> bytes:
        """A dictionary; raises ``DictionaryDamaged``."""
        ...

    def fingerprints(self) -> Collection[str]:
        """Those of all keys that the log was ever written with."""
        ...

    def plain_head(self, stream: str, encoder: "Encoder") -> PlainHead | None:
        """How far a stream is not encrypted; None where the log is not encrypted yet, or trusted.

        Raises:
            EnvelopeError: that was changed.
        """
        ...

    def newest_key(self) -> str | None:
        """The fingerprint of the key that the newest event is encrypted with; None if it is not."""
        ...

    def refuse_unnoted(self) -> None:
        """Raises ``LogDamaged`` where there are encrypted events, and no key was ever noted."""
        ...


class PlainEncoder:
    """Writes payloads as they are, and reads no others."""

    encoding = ""

    def encode(self, place: Place, envelope: Envelope) -> tuple[str, bytes]:
        """See ``Encoder``."""
        del place
        return envelope.salt, envelope.payload

    def decode(self, place: Place, envelope: Envelope) -> Envelope:
        """See ``Encoder``."""
        del place
        raise EnvelopeError(f"nothing is known of the encoding {envelope.encoding!r}")

    def vouch(self, place: Place, envelope: Envelope) -> None:
        """See ``Encoder``."""

    def proof(self, said: bytes) -> bytes:
        """See ``Encoder``."""
        return sha256(said).digest()[:PROOF_BYTES]

    def proves(self, said: bytes, proof: bytes) -> bool:
        """See ``Encoder``."""
        return proof == self.proof(said)

    def reading(self, shelf: Shelf) -> Encoder:
        """See ``Encoder``."""
        del shelf
        return self


PLAIN = PlainEncoder()


def digest_of(place: Place, shape: int, at: str, salt: str, payload: bytes) -> str:
    """The digest of an event; the salt keeps a short erased text from being guessed."""
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
    """Frame a payload; returns the envelope and the bytes to store."""
    digest = digest_of(place, shape, at, salt, payload)
    envelope = Envelope(shape, at, salt, digest, previous, payload, encoding=encoder.encoding)
    return envelope, stored_bytes(place, envelope, encoder)


def erase(
    place: Place, before: Envelope, shape: int, remains: bytes, encoder: Encoder = PLAIN
) -> bytes:
    """The bytes to store in the place of an event of which only ``remains`` is left."""
    _, at, _, digest, previous, *_ = before
    check = _check_of(place, shape, at, remains)
    left = Envelope(shape, at, check, digest, previous, remains, True, encoder.encoding)
    return stored_bytes(place, left, encoder)


def stored_bytes(place: Place, envelope: Envelope, encoder: Encoder) -> bytes:
    """The bytes to store of an envelope that is open, in the encoding that it names."""
    shape, at, salt, digest, previous, payload, erased, encoding = envelope
    magic = (ERASED if erased else MAGIC).decode()
    last = ""
    if encoding:
        salt, payload = encoder.encode(place, envelope)
        last = f" {encoding}"
    return f"{magic} {shape} {at} {salt} {digest} {previous}{last}\n".encode("ascii") + payload


def unseal(place: Place, blob: object, encoder: Encoder = PLAIN) -> Envelope:
    """Take the stored bytes of a row apart.

    Raises:
        EnvelopeError: the bytes are not an envelope, were changed, or belong elsewhere.
    """
    envelope = framed(blob)
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


def framed(blob: object) -> Envelope:
    """Take stored bytes apart without checking them; the payload may be missing.

    Raises:
        EnvelopeError: the bytes are not an envelope.
    """
    if not isinstance(blob, bytes) or not blob.startswith((MAGIC, ERASED)):
        raise EnvelopeError("the stored bytes are not an event of refold")
    head, _, payload = blob.partition(b"\n")
    try:
        magic, number, at, salt, digest, previous, *more = head.decode("ascii").split(" ")
        (encoding,) = more or ("",)
        erased = magic == ERASED.decode()
        return Envelope(int(number), at, salt, digest, previous, payload, erased, encoding)
    except ValueError as error:
        raise EnvelopeError("the frame of the stored event is damaged") from error


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

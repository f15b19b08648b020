"""The envelope around every stored event: time, salt, digest, and the chain.

One line of ASCII, a line feed, then the payload (JSON in UTF-8)::

    refold1 SHAPE TIME SALT DIGEST PREVIOUS

``DIGEST`` is the SHA-256 of salt, place (stream, version, name), shape, time and payload: content that
was changed or put elsewhere is noticed from its row alone. ``PREVIOUS`` is the link of the event before
it in the stream, and a link is the SHA-256 of the previous link and the digest. So the chain covers
digests, not payloads: a payload can be erased in place and the chain still holds.

An event whose content was erased keeps its place, its time and its link::

    erased1 SHAPE TIME CHECK DIGEST PREVIOUS

``DIGEST`` is the one it had, which nothing can be compared with any more: its salt is gone, so that not
even a short text can be guessed from it. ``CHECK`` is the digest of what is left of the payload, and
the event that records the erasure names the SHA-256 of that as well: nothing is erased unrecorded.

A seventh field, ENCODING, says how the payload is stored if not as it is: steps in their order, such as
``zstd``, ``zstd:DICTIONARY`` and ``aes:KEY``. Digests are those of the payload as it was before; where it
is encrypted, salt or check stand encrypted before it, and ``-`` in their field.
"""

from collections.abc import Collection
from hashlib import sha256
from typing import NamedTuple, Protocol

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

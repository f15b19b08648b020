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
"""

from hashlib import sha256
from typing import NamedTuple

MAGIC = b"refold1"
ERASED = b"erased1"
GENESIS = "0" * 64
"""What the first event of a stream names as the previous link."""
LONGEST_FRAME = 300
"""No frame is longer than so many bytes."""


class EnvelopeError(ValueError):
    """Stored bytes are not an envelope, or they differ from their digest."""


class Place(NamedTuple):
    """Where a row belongs."""

    stream: str
    version: int
    name: str


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

    def link(self) -> str:
        """What the next event of the stream must name as its previous link."""
        return sha256((self.previous + self.digest).encode("ascii")).hexdigest()


def digest_of(place: Place, shape: int, at: str, salt: str, payload: bytes) -> str:
    """The digest of an event; the salt keeps a short erased text from being guessed."""
    stream, version, name = place
    head = f"{salt}\0{stream}\0{version}\0{name}\0{shape}\0{at}\0"
    digest = sha256(head.encode("utf-8", "surrogatepass"))
    digest.update(payload)
    return digest.hexdigest()


def seal(
    place: Place, shape: int, at: str, salt: str, previous: str, payload: bytes
) -> tuple[Envelope, bytes]:
    """Frame a payload; returns the envelope and the bytes to store."""
    digest = digest_of(place, shape, at, salt, payload)
    head = f"{MAGIC.decode()} {shape} {at} {salt} {digest} {previous}\n"
    return Envelope(shape, at, salt, digest, previous, payload), head.encode("ascii") + payload


def erase(place: Place, before: Envelope, shape: int, remains: bytes) -> bytes:
    """The bytes to store in the place of an event of which only ``remains`` is left."""
    check = _check_of(place, shape, before.at, remains)
    head = f"{ERASED.decode()} {shape} {before.at} {check} {before.digest} {before.previous}\n"
    return head.encode("ascii") + remains


def unseal(place: Place, blob: object) -> Envelope:
    """Take the stored bytes of a row apart.

    Raises:
        EnvelopeError: the bytes are not an envelope, were changed, or belong elsewhere.
    """
    envelope = framed(blob)
    shape, at, salt, digest, _, payload, erased = envelope
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
        magic, number, at, salt, digest, previous = head.decode("ascii").split(" ")
        erased = magic == ERASED.decode()
        return Envelope(int(number), at, salt, digest, previous, payload, erased)
    except ValueError as error:
        raise EnvelopeError("the frame of the stored event is damaged") from error

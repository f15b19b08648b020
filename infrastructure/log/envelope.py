"""The envelope around every stored event: time, salt, digest of the payload, and the chain.

One line of ASCII, a line feed, then the payload (JSON in UTF-8)::

    refold1 SHAPE TIME SALT DIGEST PREVIOUS

``DIGEST`` is the SHA-256 of salt and payload; ``PREVIOUS`` is the link of the event before it in the
stream. A link covers stream, version, name, shape, time, digest and the previous link, but not the
payload: a payload can be erased in place and the chain still holds.
"""

from hashlib import sha256
from typing import NamedTuple

MAGIC = b"refold1"
GENESIS = "0" * 64
"""What the first event of a stream names as the previous link."""


LONGEST_FRAME = 300
"""No frame is longer than so many bytes."""


class EnvelopeError(ValueError):
    """Stored bytes are not an envelope, or its content differs from its digest."""


class Envelope(NamedTuple):
    """A stored event's frame, taken apart."""

    shape: int
    at: str
    salt: str
    digest: str
    previous: str
    payload: bytes

    def link(self, stream: str, version: int, name: str) -> str:
        """What the next event of the stream must name as its previous link."""
        frame = f"{self.previous}\0{stream}\0{version}\0{name}\0{self.shape}\0{self.at}\0"
        return sha256((frame + self.digest).encode("utf-8", "surrogatepass")).hexdigest()


def digest_of(salt: str, payload: bytes) -> str:
    """The digest of a payload; the salt keeps a short erased text from being guessed."""
    return sha256(salt.encode("ascii") + payload).hexdigest()


def seal(shape: int, at: str, salt: str, previous: str, payload: bytes) -> tuple[Envelope, bytes]:
    """Frame a payload; returns the envelope and the bytes to store."""
    envelope = Envelope(shape, at, salt, digest_of(salt, payload), previous, payload)
    head = f"{MAGIC.decode()} {shape} {at} {salt} {envelope.digest} {previous}\n"
    return envelope, head.encode("ascii") + payload


def unseal(blob: object, *, check: bool = True) -> Envelope:
    """Take stored bytes apart, and refuse content that differs from its digest.

    Raises:
        EnvelopeError: the bytes are not an envelope, or were changed.
    """
    if not isinstance(blob, bytes) or not blob.startswith(MAGIC):
        raise EnvelopeError("the stored bytes are not an event of refold")
    head, _, payload = blob.partition(b"\n")
    try:
        _, number, at, salt, digest, previous = head.decode("ascii").split(" ")
        shape = int(number)
    except ValueError as error:
        raise EnvelopeError("the frame of the stored event is damaged") from error
    if check and digest_of(salt, payload) != digest:
        raise EnvelopeError("the content differs from its digest")
    return Envelope(shape, at, salt, digest, previous, payload)

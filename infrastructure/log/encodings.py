"""The encodings that a log's payloads are stored in: compressed, encrypted, or both in this order."""

from collections.abc import Collection
from functools import lru_cache
from typing import Protocol

from .compression import Compressor, require_zstandard
from .encryption import Key, Keys
from .envelope import Envelope, EnvelopeError, Place

ZSTD, AES = "zstd", "aes"
HIDDEN = "-"
"""What stands in the field of a salt that is encrypted."""


class DictionaryDamaged(EnvelopeError):
    """The dictionary that a payload was compressed with is missing, or differs from its digest."""

    def __init__(self, number: int, problem: str) -> None:
        super().__init__(f"its dictionary {number} {problem}")
        self.number = number


class Shelf(Protocol):
    """Where the log keeps dictionaries and the fingerprints of its keys."""

    def dictionary(self, number: int, encoder: "Encodings") -> bytes:
        """A dictionary; raises ``DictionaryDamaged``."""
        ...

    def fingerprints(self) -> Collection[str]:
        """Those of all keys that the log was ever written with."""
        ...


class Encodings:
    """The ``Encoder`` of one open log."""

    def __init__(self, keys: Keys, shelf: Shelf) -> None:
        self._keys = keys
        self._shelf = shelf
        # A few dictionaries are in use at once, at the most while one takes the place of another.
        self._compressor = lru_cache(maxsize=8)(self._made)
        self.encoding = "" if keys.fingerprint is None else f"{AES}:{keys.fingerprint}"

    def compressed(self, dictionary: int | None) -> str:
        """The encoding of payloads that are compressed from now on."""
        step = ZSTD if dictionary is None else f"{ZSTD}:{dictionary}"
        return f"{step},{self.encoding}" if self.encoding else step

    def prepare(self, dictionary: int | None) -> None:
        """Read a dictionary now, while no transaction is open that could wait for this one."""
        self._compressor("" if dictionary is None else str(dictionary))

    def encode(self, place: Place, envelope: Envelope) -> tuple[str, bytes]:
        """See ``Encoder``."""
        salt, stored = envelope.salt, envelope.payload
        for step in envelope.encoding.split(","):
            kind, _, which = step.partition(":")
            if kind == ZSTD:
                stored = self._compressor(which).compress(stored)
            else:
                hidden = f"{salt}\n".encode("ascii") + stored
                stored = self._keys.key(which).encrypt(hidden, _bound(place, envelope))
                salt = HIDDEN
        return salt, stored

    def decode(self, place: Place, envelope: Envelope) -> Envelope:
        """See ``Encoder``.

        Raises:
            EnvelopeError: the stored bytes were changed, or belong elsewhere.
            LogLocked: they are encrypted with a key that was not given.
        """
        salt, payload = envelope.salt, envelope.payload
        for step in reversed(envelope.encoding.split(",")):
            kind, _, which = step.partition(":")
            if kind == AES and envelope.salt == HIDDEN:
                plain = self._known_key(which).decrypt(payload, _bound(place, envelope))
                head, _, payload = plain.partition(b"\n")
                salt = head.decode("ascii", "replace")
            elif kind == ZSTD:
                payload = self._compressor(which).decompress(payload)
            else:
                raise EnvelopeError(f"nothing is known of the encoding {envelope.encoding!r}")
        return envelope._replace(salt=salt, payload=payload)

    def unlock(self) -> None:
        """Make sure that everything in the log can be read.

        Raises:
            LogLocked: a key is missing or another one.
        """
        for fingerprint in self._shelf.fingerprints():
            self._keys.key(fingerprint)

    def _known_key(self, fingerprint: str) -> Key:
        # Damage of the frame must not be taken for a key that is missing.
        if not self._keys.has(fingerprint) and fingerprint not in self._shelf.fingerprints():
            raise EnvelopeError("it names a key that this log was never written with")
        return self._keys.key(fingerprint)

    def _made(self, number: str) -> Compressor:
        require_zstandard()
        if not number:
            return Compressor(None)
        if not number.isascii() or not number.isdecimal():
            raise EnvelopeError(f"it names a dictionary {number!r} that cannot be")
        return Compressor(self._shelf.dictionary(int(number), self))


def _bound(place: Place, envelope: Envelope) -> bytes:
    """What a ciphertext is bound to, so that it is of no use anywhere else."""
    stream, version, name = place
    bound = f"{stream}\0{version}\0{name}\0{envelope.shape}\0{envelope.at}"
    return bound.encode("utf-8", "surrogatepass")

"""Compress payloads with zstandard, with or without a dictionary that was trained on a log."""

import threading
from collections.abc import Sequence
from functools import lru_cache
from time import monotonic

from refold.domain.errors import InvalidSetting

from .codec import LARGEST, SNAPSHOT
from .encryption import Key, Keys
from .envelope import PLAIN, PROOF_BYTES, Envelope, EnvelopeError, Place, PlainHead, Shelf, Unsealed

LEVEL = 12
"""Compression level. Old payloads are compressed once; higher levels take longer and save little."""
DICTIONARY_BYTES = 64 * 1024
FEWEST_SAMPLES = 16
"""Minimum number of samples. With fewer, a dictionary costs more than it saves."""


class Compressor:
    """A compressor and decompressor with one dictionary, or without one."""

    def __init__(self, dictionary: bytes | None) -> None:
        import zstandard

        data = None if dictionary is None else zstandard.ZstdCompressionDict(dictionary)
        # One lock each, because the library releases the global interpreter lock.
        self._lock = threading.Lock()
        self._made_by = zstandard
        self._reader = zstandard.ZstdDecompressor(dict_data=data)
        # The frame names the dictionary, and the envelope has a digest of its own.
        self._writer = zstandard.ZstdCompressor(
            LEVEL, dict_data=data, write_checksum=False, write_dict_id=False
        )

    def compress(self, payload: bytes) -> bytes:
        """Return the compressed payload."""
        with self._lock:
            return self._writer.compress(payload)

    def decompress(self, stored: bytes) -> bytes:
        """Return the original payload.

        Raises:
            EnvelopeError: the bytes were changed.
        """
        try:
            if self._made_by.get_frame_parameters(stored).content_size > LARGEST:
                raise EnvelopeError("the compressed content was changed: it claims too many bytes")
            with self._lock:
                return self._reader.decompress(stored, allow_extra_data=False)
        except (self._made_by.ZstdError, MemoryError) as error:
            raise EnvelopeError(f"the compressed content was changed ({error})") from error


def require_zstandard() -> None:
    """Check that the zstandard library is installed.

    Raises:
        InvalidSetting: the library is missing; the message names the extra to install.
    """
    from importlib.util import find_spec

    if find_spec("zstandard") is None:
        raise InvalidSetting(
            "compression needs zstandard, which is not installed: pip install 'refold[compression]'"
        )


def train_dictionary(samples: Sequence[bytes]) -> bytes | None:
    """Train a dictionary on samples, or return None if there are too few of them."""
    import zstandard

    if len(samples) < FEWEST_SAMPLES:
        return None
    size = min(DICTIONARY_BYTES, sum(map(len, samples)) // 8)
    try:
        return zstandard.train_dictionary(size, list(samples), level=LEVEL).as_bytes()
    except zstandard.ZstdError:
        return None  # The samples are too short or too similar to be worth a dictionary.


ZSTD, AES = "zstd", "aes"
HIDDEN = "-"
"""Text in the salt field of an envelope whose salt is encrypted."""
LOOK_AGAIN = 1.0
"""Seconds before a log without encrypted events is checked for them again."""


class DictionaryDamaged(EnvelopeError):
    """The dictionary that a payload was compressed with is missing, or differs from its digest."""

    def __init__(self, number: int, problem: str) -> None:
        super().__init__(f"its dictionary {number} {problem}")
        self.number = number


class Encodings:
    """The ``Encoder`` of one open log."""

    def __init__(self, keys: Keys, shelf: Shelf) -> None:
        self._keys = keys
        self._shelf = shelf
        # Few dictionaries are in use at once: usually one, and two while one replaces another.
        self._compressor = lru_cache(maxsize=8)(self._make)
        self.fingerprint = keys.fingerprint
        """Fingerprint of the key that new events are encrypted with, or None."""
        self.encoding = "" if keys.fingerprint is None else f"{AES}:{keys.fingerprint}"
        self._heads: dict[str, PlainHead] = {}
        self._looks_again = 0.0
        """Time at which to check again whether the log has become encrypted."""

    def reading(self, shelf: Shelf) -> "Encodings":
        """Return an encoder for another file, with the same keys."""
        return Encodings(self._keys, shelf)

    def compressed(self, dictionary: int | None) -> str:
        """Return the encoding of payloads that are compressed from now on."""
        step = ZSTD if dictionary is None else f"{ZSTD}:{dictionary}"
        return f"{step},{self.encoding}" if self.encoding else step

    def prepare(self, dictionary: int | None) -> None:
        """Read a dictionary now, before a transaction is open that could wait for this read."""
        self._compressor("" if dictionary is None else str(dictionary))

    def encode(self, place: Place, envelope: Envelope) -> tuple[str, bytes]:
        """Return the text of the salt field and the payload in the envelope's encoding."""
        salt, stored = envelope.salt, envelope.payload
        for step in envelope.encoding.split(","):
            kind, _, which = step.partition(":")
            if kind == ZSTD:
                stored = self._compressor(which).compress(stored)
            else:
                hidden = f"{salt}\n".encode("ascii") + stored
                stored = self._keys.key(which).encrypt(hidden, _binding(place, envelope))
                salt = HIDDEN
        return salt, stored

    def decode(self, place: Place, envelope: Envelope) -> Envelope:
        """Return the envelope with the original salt and payload.

        Raises:
            EnvelopeError: the stored bytes were changed, or belong to another place.
            LogLocked: the bytes are encrypted with a key that was not given.
        """
        salt, payload = envelope.salt, envelope.payload
        for step in reversed(envelope.encoding.split(",")):
            kind, _, which = step.partition(":")
            if kind == AES and envelope.salt == HIDDEN:
                plain = self._known_key(which).decrypt(payload, _binding(place, envelope))
                head, _, payload = plain.partition(b"\n")
                salt = head.decode("ascii", "replace")
            elif kind == ZSTD:
                payload = self._compressor(which).decompress(payload)
            else:
                raise EnvelopeError(f"unknown encoding {envelope.encoding!r}")
        return envelope._replace(salt=salt, payload=payload)

    def vouch(self, place: Place, envelope: Envelope) -> None:
        """Reject a plain event that was stored after the log had a key.

        Anyone can compute digests and links, so the version up to which a stream may be plain is stored
        encrypted.
        """
        if AES in envelope.encoding or not place.stream:
            return
        head = self._plain_head(place.stream)
        if head is None:
            return
        if place.version > head.version:
            raise Unsealed(
                "it is not encrypted, although the log was encrypted before it was stored"
            )
        if (
            place.version == head.version
            and place.name != SNAPSHOT
            and envelope.link() != head.link
        ):
            raise Unsealed(
                "it is not encrypted, and differs from the event that was here before the log had a key"
            )

    def proof(self, said: bytes) -> bytes:
        """Return a proof for ``said``, made with the key if the log has one."""
        key = self._keys.writing
        return PLAIN.proof(said) if key is None else key.proof(said)

    def proves(self, said: bytes, proof: bytes) -> bool:
        """Return whether ``proof`` was made for ``said``."""
        if not self.encoding:
            return PLAIN.proves(said, proof)
        fingerprint = proof[:-PROOF_BYTES].hex()
        try:
            return self._known_key(fingerprint).proves(said, proof)
        except EnvelopeError:
            return False

    def look_again(self) -> None:
        """Check at the next read whether the log has become encrypted."""
        self._looks_again = 0.0

    def unlock(self) -> None:
        """Check that every event in the log can be decrypted.

        Raises:
            LogLocked: a key is missing or wrong.
            LogDamaged: the record of the keys was removed.
        """
        fingerprints, newest = self._shelf.fingerprints(), self._shelf.newest_key()
        own = self._keys.fingerprint
        if fingerprints and own is not None and newest == own not in fingerprints:
            self._shelf.refuse_unnoted()  # The row was changed.
        if self.encoding and not fingerprints:
            self._shelf.refuse_unnoted()
            fingerprints = self._shelf.fingerprints()  # Others may store the first event meanwhile.
        for fingerprint in fingerprints:
            self._keys.key(fingerprint)
        if newest is not None and not self.encoding:
            self._keys.key(
                newest
            )  # A reader with the key would reject an event that is written without it.

    def _plain_head(self, stream: str) -> PlainHead | None:
        known = self._heads.get(stream)
        if known is not None or monotonic() < self._looks_again:
            return known
        found = self._shelf.plain_head(stream, self)
        if found is None:
            self._looks_again = monotonic() + LOOK_AGAIN
        else:
            self._heads[stream] = found
        return found

    def _known_key(self, fingerprint: str) -> Key:
        # A damaged frame must not be reported as a missing key.
        if not self._keys.has(fingerprint) and fingerprint not in self._shelf.fingerprints():
            raise EnvelopeError("it names a key that this log was never written with")
        return self._keys.key(fingerprint)

    def _make(self, number: str) -> Compressor:
        require_zstandard()
        if not number:
            return Compressor(None)
        if not number.isascii() or not number.isdecimal():
            raise EnvelopeError(f"it names an invalid dictionary {number!r}")
        return Compressor(self._shelf.dictionary(int(number), self))


def _binding(place: Place, envelope: Envelope) -> bytes:
    """Return the bytes that a ciphertext is bound to, so that it is useless in any other place.

    They include the previous link: without the key, an event cannot be given another history. The
    digest of an erased event cannot be compared with anything else.
    """
    stream, version, name = place
    _, at, _, digest, previous, _, erased, _ = envelope
    bound = f"{stream}\0{version}\0{name}\0{envelope.shape}\0{at}\0{digest}\0{previous}\0{erased:d}"
    return bound.encode("utf-8", "surrogatepass")

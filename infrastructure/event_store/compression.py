"""Payloads compressed with zstandard, alone or with a dictionary that was trained on a log."""

import threading
from collections.abc import Sequence
from importlib.util import find_spec

from refold.domain.errors import InvalidSetting

from .envelope import EnvelopeError

LEVEL = 12
"""Old payloads are compressed once and read rarely; above, time grows and size hardly falls."""
DICTIONARY_BYTES = 64 * 1024
LARGEST = 64 * 1024 * 1024
"""Bytes that a payload has at most: damaged bytes must not claim all memory."""
FEWEST_SAMPLES = 16
"""With fewer, a dictionary costs more than it saves."""


class Compressor:
    """Compresses and decompresses with one dictionary, or with none."""

    def __init__(self, dictionary: bytes | None) -> None:
        import zstandard

        data = None if dictionary is None else zstandard.ZstdCompressionDict(dictionary)
        # One at a time may use each: the library lets go of Python's own lock.
        self._lock = threading.Lock()
        self._made_by = zstandard
        self._reader = zstandard.ZstdDecompressor(dict_data=data)
        # The frame names the dictionary, and the envelope has a digest of its own.
        self._writer = zstandard.ZstdCompressor(
            LEVEL, dict_data=data, write_checksum=False, write_dict_id=False
        )

    def compress(self, payload: bytes) -> bytes:
        """The payload compressed."""
        with self._lock:
            return self._writer.compress(payload)

    def decompress(self, stored: bytes) -> bytes:
        """The payload as it was.

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
    """Refuse to compress or decompress where the library is missing.

    Raises:
        InvalidSetting: names the extra to install.
    """
    if find_spec("zstandard") is None:
        raise InvalidSetting(
            "compression needs zstandard, which is not installed: pip install 'refold[compression]'"
        )


def trained_dictionary(samples: Sequence[bytes]) -> bytes | None:
    """A dictionary of what samples have in common; None where there are too few of them."""
    import zstandard

    if len(samples) < FEWEST_SAMPLES:
        return None
    size = min(DICTIONARY_BYTES, sum(map(len, samples)) // 8)
    try:
        return zstandard.train_dictionary(size, list(samples), level=LEVEL).as_bytes()
    except zstandard.ZstdError:
        return None  # Too short, or too much alike, to be worth one.

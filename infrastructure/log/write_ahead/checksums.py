"""The checksums in SQLite's write-ahead log, computed for many frames at once.

SQLite sums the words of a frame in pairs, ``s1 += x + s2; s2 += y + s1``, and begins with the checksum
of the frame before. A loop over single words would take a second for 4 MB. Here every frame has a lane
of 64 bits in one large integer, so that one addition adds a word to the sums of all frames.
"""

import struct
from array import array

FRAME_HEAD = 24
"""Bytes before the page in a frame. The first 8 are summed; salts and the checksum are not."""

Sums = tuple[int, int]

_WORD = 0xFFFF_FFFF


def frame_sums(frames: bytes, size: int, seeds: list[Sums], *, big: bool) -> list[Sums]:
    """Return the checksum of each frame in ``frames``, which are ``size`` bytes long each.

    ``seeds``: for each frame the checksum of the one before. ``big``: the order of bytes in the words.
    """
    pairs = size // 8
    summed = (0, *range(FRAME_HEAD // 8, pairs))
    return _lanes(_words(frames, big=big), pairs, summed, seeds)


def header_sums(header: bytes, *, big: bool) -> Sums:
    """Return the checksum of a file header, from its first 24 bytes."""
    [sums] = _lanes(_words(header[:24], big=big), 3, (0, 1, 2), [(0, 0)])
    return sums


def _words(data: bytes, *, big: bool) -> "array[int]":
    """Return the bytes as items of two words, in little-endian order."""
    if big:
        words = array("I", data)
        words.byteswap()
        data = words.tobytes()
    return array("Q", data)


def _lanes(
    items: "array[int]", stride: int, summed: tuple[int, ...], seeds: list[Sums]
) -> list[Sums]:
    count = len(seeds)
    low = int.from_bytes(struct.pack("<Q", _WORD) * count, "little")
    one = int.from_bytes(struct.pack(f"<{count}Q", *(s for s, _ in seeds)), "little")
    two = int.from_bytes(struct.pack(f"<{count}Q", *(s for _, s in seeds)), "little")
    for at in summed:
        pair = int.from_bytes(items[at::stride].tobytes(), "little")
        one = (one + two + (pair & low)) & low
        two = (two + one + (pair >> 32 & low)) & low
    shape = f"<{count}Q"
    return list(
        zip(
            struct.unpack(shape, one.to_bytes(8 * count, "little")),
            struct.unpack(shape, two.to_bytes(8 * count, "little")),
            strict=True,
        )
    )

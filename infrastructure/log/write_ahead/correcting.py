"""Finding the one bit of a frame that was turned over: its checksum tells which one it can be.

The checksum is linear in the words of the frame: the difference between the stored one and the computed
one is that of a single bit. Low bits of a word are told apart; of the highest ones, of which only few
bits of the checksum depend, there can be some hundred that fit. Then the digests of events decide.
"""

from .checksums import FRAME_HEAD, Sums, frame_sums

_WORD = 0xFFFF_FFFF


def corrections(frame: bytes, seed: Sums, stored: Sums, *, big: bool) -> list[bytes]:
    """Return what the frame can have been before one bit was turned over; empty if it is not one bit."""
    [computed] = frame_sums(frame, len(frame), [seed], big=big)
    wanted = (stored[0] - computed[0] & _WORD, stored[1] - computed[1] & _WORD)
    variants: list[bytes] = []
    for at, bit in _turned(len(frame), wanted):
        place = at + (3 - bit // 8 if big else bit // 8)
        made = bytearray(frame)
        made[place] ^= 1 << bit % 8
        variants.append(bytes(made))
    seeds = [seed] * len(variants)
    sums = frame_sums(b"".join(variants), len(frame), seeds, big=big) if variants else []
    return [made for made, found in zip(variants, sums, strict=True) if found == stored]


def _turned(size: int, wanted: Sums) -> list[tuple[int, int]]:
    """Return the words, by their places, and the bits that would make this difference."""
    found: list[tuple[int, int]] = []
    # How much the first and the second word of a pair weigh in the two sums.
    one, two = (1, 1), (0, 1)
    for place in (*range(size - 8, FRAME_HEAD - 8, -8), 0):
        for at, weight in ((place, one), (place + 4, two)):
            for bit in range(32):
                change = (weight[0] << bit & _WORD, weight[1] << bit & _WORD)
                if wanted in (change, (-change[0] & _WORD, -change[1] & _WORD)):
                    found.append((at, bit))
        one, two = _earlier(one), _earlier(two)
    return found


def _earlier(weight: Sums) -> Sums:
    first = weight[0] + weight[1] & _WORD
    return first, weight[1] + first & _WORD

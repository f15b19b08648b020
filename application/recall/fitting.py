"""Fits hits into the room of an answer: texts are cut around the words that were found, the best stays."""

from collections.abc import Callable, Sequence

from .excerpts import excerpt
from .results import RecallHit

Count = Callable[[str], int]

LEAST_TEXT = 40
"""Tokens below which a text is of no use: then fewer hits are shown."""


def fitted(
    hits: Sequence[RecallHit], tokens: Sequence[str], room: int, count: Count
) -> tuple[tuple[RecallHit, ...], int]:
    """As many of the hits, as long as fit ``room`` tokens, and what they take with their neighbours.

    ``tokens``: of the question. Where all is too much, long texts are cut first, then neighbours of the
    last hits go, then the last hits.
    """
    kept = hits[: max(1, room // LEAST_TEXT)]
    size = sum(_size(hit, count) for hit in kept)
    if size <= room:
        return tuple(kept), size
    beside = any(hit.neighbours for hit in kept)
    shares = _shares([count(hit.text) for hit in kept], room * 4 // 5 if beside else room)
    cut = [_cut(hit, tokens, share, count) for hit, share in zip(kept, shares, strict=True)]
    left = room - sum(count(hit.text) for hit in cut)
    shown: list[RecallHit] = []
    for hit in cut:
        beside_it = sum(count(neighbour.text) for neighbour in hit.neighbours)
        fits = beside_it <= left
        left -= beside_it if fits else 0
        shown.append(hit if fits else hit.replaced(neighbours=()))
    return tuple(shown), room - left


def _size(hit: RecallHit, count: Count) -> int:
    return count(hit.text) + sum(count(neighbour.text) for neighbour in hit.neighbours)


def _shares(sizes: Sequence[int], room: int) -> list[int]:
    """How much each may take: short ones all they need, long ones an equal part of the rest."""
    shares = [0] * len(sizes)
    left, waiting = room, sorted(range(len(sizes)), key=lambda n: sizes[n])
    while waiting:
        shares[waiting[0]] = share = min(sizes[waiting[0]], left // len(waiting))
        left -= share
        waiting = waiting[1:]
    return shares


def _cut(hit: RecallHit, tokens: Sequence[str], most: int, count: Count) -> RecallHit:
    start, stop = excerpt(hit.text, tokens, max(1, most), count)
    return hit.replaced(text=hit.text[start:stop], start=hit.start + start, stop=hit.start + stop)

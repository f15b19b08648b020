"""Chunks for a summariser whose window is smaller than the source (requirement C6)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from refold.application.ports import SourceMessage
from refold.domain.messages import gist

Round = tuple[SourceMessage, ...]
"""What is never separated: a response with calls and all up to its last result, or one message."""
Chunk = tuple[SourceMessage, ...]


class Weighed(NamedTuple):
    """A message, and what it takes of a summariser's window."""

    source: SourceMessage
    tokens: int


def rounds_of(messages: Sequence[SourceMessage]) -> tuple[Round, ...]:
    """Messages in order, calls together with their results (invariant 1)."""
    found: list[list[SourceMessage]] = []
    asked: frozenset[str] = frozenset()
    asking = 0
    for source in messages:
        calls, results, _ = gist(source.message)
        if source.message.role == "assistant":
            asked, asking = frozenset(calls), len(found)
        elif not asked.isdisjoint(results):
            # Whatever was said between a call and its result goes with them.
            found[asking:] = [[s for part in found[asking:] for s in part]]
            found[-1].append(source)
            continue
        found.append([source])
    return tuple(map(tuple, found))


def chunked(rounds: Iterable[Sequence[Weighed]], room: int) -> Iterator[Chunk]:
    """As many rounds as fit into ``room`` at once; one that is larger has a chunk of its own."""
    chunk: list[SourceMessage] = []
    left = room
    for one in rounds:
        needed = sum(weighed.tokens for weighed in one)
        if chunk and needed > left:
            yield tuple(chunk)
            chunk, left = [], room
        chunk.extend(weighed.source for weighed in one)
        left -= needed
    if chunk:
        yield tuple(chunk)

"""What is read again to make a summary anew: all that it covers, or, of a long history, what tells most."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from refold.application.core import Core
from refold.application.loaded import LoadedConversation
from refold.application.stream_places import StreamPlaces
from refold.domain.coverage import Coverage
from refold.domain.events import CompactionPerformed, MessageAppended

MOST = 1_536
"""More covered messages than so many are not all read again: each takes half a millisecond."""
FIRST = 64
"""So many of the oldest are: what a conversation is about stands there."""
NEWEST = 512
"""So many of the newest are."""
_BESIDE = 1
"""Messages beside one that a line of the ledger comes from: the call to a result, the answer to a request."""
_APART = 8
"""Positions that are read on over, where nothing is wanted."""


class Stretch(NamedTuple):
    """Positions from the first up to but not including the second."""

    start: int
    stop: int


def reread_positions(
    old: CompactionPerformed, touched: Iterable[Stretch], gone: frozenset[int]
) -> Sequence[int]:
    """Which of the covered messages are read again, oldest first.

    ``touched``: the parts that lose an extract. Of a long history: its beginning and its end and those of
    each such part, and where the lines of the ledger come from, so that these are found again.
    """
    coverage = old.coverage
    whole = Stretch(coverage.start, coverage.stop)
    if coverage.count <= MOST:
        wanted = set(range(*whole))
    else:
        wanted = _ends(whole).union(*map(_ends, touched))
        for line in old.ledger:
            wanted.update(range(line.position - _BESIDE, line.position + _BESIDE + 1))
    return sorted(p for p in wanted - gone if coverage.covers(p))


def read_again(
    core: Core, loaded: LoadedConversation, positions: Sequence[int]
) -> Iterator[MessageAppended]:
    """The messages at these positions that were not erased before."""
    state, thread_id = loaded.state, loaded.thread_id
    places = StreamPlaces(partial(core.log.read, thread_id), state.version, state.length)
    wanted = frozenset(positions)
    for start, stop in _runs(positions):
        for logged in places.messages(start, stop):
            event = logged.event
            if (
                isinstance(event, MessageAppended)
                and not logged.erased
                and event.position in wanted
            ):
                yield event


def stretch_of(covered: Coverage, before: Coverage | None) -> Stretch:
    """What a compaction covered first."""
    return Stretch(before.stop if before else covered.start, covered.stop)


def _ends(part: Stretch) -> set[int]:
    if part.stop - part.start <= FIRST + NEWEST:
        return set(range(*part))
    return {
        *range(part.start, part.start + FIRST),
        *range(part.stop - NEWEST, part.stop),
    }


def _runs(positions: Sequence[int]) -> Iterator[Stretch]:
    start = stop = -1
    for position in positions:
        if start < 0 or position > stop + _APART:
            if start >= 0:
                yield Stretch(start, stop)
            start = position
        stop = position + 1
    if start >= 0:
        yield Stretch(start, stop)

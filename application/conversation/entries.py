"""Parts of a window: live messages, of which a long run stays in the log, and ways to shorten them."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import eq
from typing import Literal, NamedTuple, Protocol, cast, overload

from refold.domain.messages import Message
from refold.domain.originals import Original


class Entry(NamedTuple):
    """A live message as the log stores it."""

    position: int
    message_id: str
    message: Message
    tokens: int
    """Tokens of the whole message, including thinking."""
    thinking: int
    stop_reason: str | None
    bytes: int = 0
    """Bytes of the whole message as JSON."""
    original: Original | None = None
    """Form in which another API gave the message, shrunk, or None."""


class Words(NamedTuple):
    """Words to search stored messages for."""

    promises: Mapping[bytes, float]
    """Weight of each word; a word has ASCII letters in lower case and no apostrophes."""
    others: Sequence[tuple[bytes, float]]
    """Weights of all other words, as UTF-8. They also match inside longer words."""


class ScanResult(NamedTuple):
    """The result of searching stored messages."""

    digest: str
    """Digest of the messages that were searched."""
    telling: frozenset[int]
    """Positions of the messages with the highest weights."""


class StoredMessages(Protocol):
    """Reader of the live messages of one conversation from the log, in order."""

    def read(self, start: int, stop: int) -> Iterator[Entry]:
        """Yield the messages at positions ``start`` up to but not including ``stop``.

        Raises:
            LogError: they cannot be read.
        """
        ...

    def scan(self, start: int, stop: int, words: Words, most: int) -> ScanResult:
        """Find the user's messages with the highest weights, at most ``most`` of them.

        The weight of a message is that of its best word. Newer messages win ties.
        """
        ...


@dataclass(frozen=True, slots=True)
class StoredRun:
    """Consecutive live messages that are read from the log on demand."""

    start: int
    stop: int
    count: int
    """Number of messages, which is less than the number of positions if some were lost."""
    log: StoredMessages
    measures: Mapping[int, int]
    """Tokens that remain of erased messages, by position."""

    def covers(self, position: int) -> bool:
        """Return whether a position is within the run."""
        return self.start <= position < self.stop

    def read(self, start: int, stop: int) -> Iterator[Entry]:
        """Yield the messages at positions ``start`` up to but not including ``stop``."""
        for entry in self.log.read(max(start, self.start), min(stop, self.stop)):
            tokens = self.measures.get(entry.position)
            yield entry if tokens is None else entry._replace(tokens=tokens, thinking=0)

    def drop_before(self, start: int) -> "StoredRun":
        """Return the run without the messages before ``start``."""
        gone = sum(1 for _ in self.read(self.start, start))
        return replace(self, start=start, count=self.count - gone)


class LongEntries(Sequence[Entry]):
    """Entries of a conversation that is too long to keep in memory.

    First come the entries kept on purpose, then a stored run, then the newest entries.
    """

    def __init__(self, kept: Sequence[Entry], stored: StoredRun, newest: Sequence[Entry]) -> None:
        self.kept = tuple(kept)
        self.stored = stored
        self.newest = tuple(newest)

    @property
    def held(self) -> tuple[Entry, ...]:
        """Entries that are in memory."""
        return self.kept + self.newest

    def between(self, start: int, stop: int) -> Iterator[Entry]:
        """Yield the entries at positions ``start`` up to but not including ``stop``."""
        yield from (e for e in self.kept if start <= e.position < stop)
        if start < self.stored.stop and stop > self.stored.start:
            yield from self.stored.read(start, stop)
        yield from (e for e in self.newest if start <= e.position < stop)

    def __iter__(self) -> Iterator[Entry]:
        yield from self.kept
        yield from self.stored.read(self.stored.start, self.stored.stop)
        yield from self.newest

    def __reversed__(self) -> Iterator[Entry]:
        yield from reversed(self.newest)
        yield from reversed([*self.stored.read(self.stored.start, self.stored.stop)])
        yield from reversed(self.kept)

    def __len__(self) -> int:
        return len(self.kept) + self.stored.count + len(self.newest)

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Entry, ...]: ...
    def __getitem__(self, index: int | slice) -> Entry | tuple[Entry, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        at = index - len(self) if index >= 0 else index
        if -len(self.newest) <= at < 0:
            return self.newest[at]
        if not -len(self) <= at < 0:
            raise IndexError(index)
        return next(islice(self, at + len(self), None))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        its = cast(Sequence[object], other)
        return len(self) == len(its) and all(map(eq, self, its))

    def __hash__(self) -> int:
        return hash(len(self))


Entries = tuple[Entry, ...] | LongEntries


def held_entries(entries: Entries) -> tuple[Entry, ...]:
    """Return the entries that are in memory."""
    return entries.held if isinstance(entries, LongEntries) else entries


def entries_between(entries: Entries, start: int, stop: int) -> Iterator[Entry]:
    """Yield the entries at positions ``start`` up to but not including ``stop``."""
    if isinstance(entries, LongEntries):
        return entries.between(start, stop)
    return (entry for entry in entries if start <= entry.position < stop)


def entry_at(entries: Entries, position: int) -> Entry | None:
    """Return the entry at a position, or None if no live message is there."""
    if not isinstance(entries, LongEntries):
        return _held_at(entries, position)
    if entries.stored.covers(position):
        return next(entries.stored.read(position, position + 1), None)
    return _held_at(entries.kept, position) or _held_at(entries.newest, position)


def is_live(entries: Entries, position: int) -> bool:
    """Return whether the message at a position is live, without reading it from the log.

    A lost message within a stored run counts as live.
    """
    if isinstance(entries, LongEntries) and entries.stored.covers(position):
        return True
    return entry_at(entries, position) is not None


def _held_at(entries: tuple[Entry, ...], position: int) -> Entry | None:
    # Most entries are a run.
    place = position - entries[0].position if entries else 0
    if not (0 <= place < len(entries) and entries[place].position == position):
        place = bisect_left(entries, position, key=_position)
    found = entries[place] if place < len(entries) else None
    return found if found is not None and found.position == position else None


def positions_of(entries: Entries) -> Iterator[int]:
    """Yield the positions of the entries, including lost messages within a stored run."""
    if isinstance(entries, LongEntries):
        yield from map(_position, entries.kept)
        yield from range(entries.stored.start, entries.stored.stop)
        yield from map(_position, entries.newest)
    else:
        yield from map(_position, entries)


def start_of_run(entries: Entries, stop: int) -> int:
    """Return the first of the positions before ``stop`` that all have a live message."""
    if isinstance(entries, LongEntries):
        there = frozenset(positions_of(entries))
        while stop - 1 in there:
            stop -= 1
        return stop
    # Positions ascend, so those of a run are as far apart as their places.
    end = bisect_left(entries, stop, key=_position)
    offset = stop - end
    return bisect_left(range(end), offset, key=lambda n: entries[n].position - n) + offset


def shelve(
    entries: Entries,
    keep: int,
    log: StoredMessages,
    measures: Mapping[int, int],
    begin: int,
) -> Entries:
    """Return the entries with only the newest ``keep`` of them in memory.

    Every message from position ``begin`` on is live; entries before it stay in memory.
    """
    if isinstance(entries, LongEntries):
        kept, newest = entries.kept, entries.newest
    else:
        first = bisect_left(entries, begin, key=_position)
        kept, newest = entries[:first], entries[first:]
    old = newest[: max(0, len(newest) - keep)]
    if not old:
        return entries
    start, count = old[0].position, len(old)
    if isinstance(entries, LongEntries):
        start, count = entries.stored.start, count + entries.stored.count
    run = StoredRun(start, old[-1].position + 1, count, log, measures)
    return LongEntries(kept, run, newest[len(old) :])


def _position(entry: Entry) -> int:
    return entry.position


PreviewKey = tuple[int, str, str]
"""Key of a shortened part: position, call id, and side of the tool call (``call`` or ``result``).

For user content, the second item is the index of the block and the third is ``said``.
"""
SAID = "said"


Method = Literal["offload", "soft-trim", "hard-clear", "left-out"]
"""Way to shorten a part: to a preview, to its beginning, to a marker, or leave it out.

Neighbouring parts that were left out share one marker.
"""


class Preview(NamedTuple):
    """The way a shortened part is shown."""

    head: int
    tail: int
    tokens_freed: int
    """Number of tokens saved on the part in total."""
    method: Method = "offload"


class PinnedText(NamedTuple):
    """A pinned text that the ledger shows."""

    pin_id: str
    position: int | None
    text: str
    tokens: int

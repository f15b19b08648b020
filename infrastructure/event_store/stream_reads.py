"""Reads of streams: some events, all of the log in order, and the streams that were used last."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from refold.application.errors import LogDamaged, LogError
from refold.application.ports.conversation_log import LoggedEvent

from .envelope import Place
from .loading import Stream, opened_columns
from .mapper import EventMapper, RecordedEvent
from .recorder import Row

CONFLICTS = 20
"""How often a decision is made again when a writer without the lock was quicker."""


def overtaken(path: Path) -> LogError:
    """The error for a decision that was stale each time."""
    return LogError(f"{path}: {CONFLICTS} times another writer was quicker; nothing was stored")


def whole(
    thread_id: str,
    wanted: Sequence[int],
    read: Callable[[], Sequence[RecordedEvent]],
    head: Callable[[], int],
) -> Sequence[LoggedEvent]:
    """The events with these versions up to the ``head`` of the stream, as ``read`` gives them.

    Raises:
        LogDamaged: one of them is missing.
    """
    lacking: int | None = None
    while True:
        found = read()
        there = {event.originator_version for event in found}
        missing = next((version for version in wanted if version not in there), None)
        if missing is None or missing > head():
            return [event.logged() for event in found]
        if missing == lacking:
            raise LogDamaged(thread_id, missing, "the event is missing")
        # Another process may have appended it after the reading and before the look at the head.
        lacking = missing


CAPACITY = 64
"""How many conversations are kept; the least recently used are dropped first."""


class RememberedStreams:
    """Loaded conversations by their names; what is kept may be behind the log. Threads may share it."""

    def __init__(self) -> None:
        self._streams: OrderedDict[str, Stream] = OrderedDict()
        self._threads = threading.Lock()

    def find(self, thread_id: str) -> Stream | None:
        """The conversation as it was when it was last put here."""
        return self._streams.get(thread_id)

    def put(self, thread_id: str, stream: Stream) -> None:
        """Remember it as it is now."""
        with self._threads:
            self._streams[thread_id] = stream
            self._streams.move_to_end(thread_id)
            if len(self._streams) > CAPACITY:
                self._streams.popitem(last=False)

    def forget(self, thread_ids: Iterable[str]) -> None:
        """Remember these no more."""
        with self._threads:
            for thread_id in thread_ids:
                self._streams.pop(thread_id, None)

    def clear(self) -> None:
        """Remember none."""
        self._streams.clear()


BATCH = 200
"""Events that a scan reads at once: as many as stay in the processor's cache."""


def scanned(
    rows_after: Callable[[int], Sequence[Row]],
    mapper: EventMapper,
    after: int,
    seen: dict[str, int],
    forget: Callable[[], None],
) -> Iterator[LoggedEvent]:
    """The events with a number over ``after``; ``seen`` is given the newest version of each stream.

    That an event belongs where it is, its digest says; the chain of links is left to ``check``.
    ``forget``: see ``looked_twice``.

    Raises:
        LogDamaged: one is missing or changed.
    """
    # From the beginning each stream is known whole; later on, from its first event here.
    begins = 0 if after == 0 else None
    looked_at: int | None = None
    while True:
        try:
            for event in _read(rows_after, mapper, after, seen, begins):
                after = event.number
                yield event
        except LogDamaged:
            if looked_at == after:
                raise
            looked_at = after
            forget()
        else:
            return


def _read(
    rows_after: Callable[[int], Sequence[Row]],
    mapper: EventMapper,
    after: int,
    seen: dict[str, int],
    begins: int | None,
) -> Iterator[LoggedEvent]:
    """One look at the events; ``begins``: the version before the first of each stream, where it is known."""
    while True:
        rows = rows_after(after)
        for number, stream, version, name, state in rows:
            before = seen.get(stream, begins)
            if before is not None and version != before + 1:
                raise LogDamaged(stream, before + 1, "the event is missing")
            envelope, event = opened_columns(mapper, Place(stream, version, name), state)
            seen[stream] = version
            yield LoggedEvent(number, stream, version, envelope.at, event, envelope.erased)
        if len(rows) < BATCH:
            return
        after = rows[-1][0]

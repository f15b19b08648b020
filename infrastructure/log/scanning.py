"""Scanning the whole log: every event in the order of the log, none missing from its stream."""

from collections.abc import Callable, Iterator, Sequence

from refold.application.errors import LogDamaged
from refold.application.event_log import LoggedEvent

from .file.sqlite import Row
from .loading import opened_columns
from .stored.envelope import Place
from .stored.mapper import EventMapper

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

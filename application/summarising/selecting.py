"""What is read closely of a history too long for that: its beginning, its end, and what a look finds."""

from collections.abc import Iterator
from typing import NamedTuple

from refold.application.ports import SourceMessage
from refold.application.projections.entries import Entries, Entry, LongEntries, Words
from refold.domain.coverage import Coverage
from refold.domain.ledger.telling import OTHERS, PROMISES

FIRST = 64
"""So many of the oldest messages are read: what a conversation is about stands there."""
TELLING = 1_024
"""So many messages are read between the oldest and the newest: those that promise most."""
NEWEST = 2_048
"""So many of the newest messages are read."""


WORDS = Words(
    {word.encode(): promise for word, promise in PROMISES.items()},
    tuple((word.encode(), promise) for word, promise in OTHERS),
)


class Selected(NamedTuple):
    """The covered messages that are read closely."""

    messages: tuple[SourceMessage, ...]
    skimmed: int = 0
    """How many more are covered, which were only looked through."""
    digest: str = ""
    """Names all of those that were looked through; empty where none were."""


def selected(entries: Entries, coverage: Coverage) -> Selected:
    """Choose what is read closely of the messages that a plan covers."""
    if not isinstance(entries, LongEntries):
        return Selected(_sources(iter(entries), coverage))
    run, end = entries.stored, _newest_from(entries, coverage)
    begin = min(run.start + FIRST, end)
    looked = run.log.look_through(begin, end, WORDS, TELLING)
    read = [*entries.kept, *entries.between(run.start, begin)]
    for position in sorted(p for p in looked.telling if p < run.stop):
        read += run.read(position, position + 1)
    read += [e for e in entries.newest if e.position >= end or e.position in looked.telling]
    messages = _sources(iter(read), coverage)
    return Selected(messages, _covered(entries, coverage) - len(messages), looked.digest)


def _newest_from(entries: LongEntries, coverage: Coverage) -> int:
    """From which position on all covered messages are read."""
    covered = [e.position for e in entries.newest if e.position < coverage.stop]
    return covered[-NEWEST] if len(covered) >= NEWEST else entries.stored.stop


def _covered(entries: LongEntries, coverage: Coverage) -> int:
    """How many of the entries are covered."""
    run = entries.stored
    held = sum(1 for entry in entries.held if coverage.covers(entry.position))
    kept = [p for p in coverage.exclusions if run.start <= p < run.stop]
    before = max(0, min(run.stop, coverage.start) - run.start)
    return held + run.count - len(kept) - before


def _sources(entries: Iterator[Entry], coverage: Coverage) -> tuple[SourceMessage, ...]:
    return tuple(
        SourceMessage(position=entry.position, message=entry.message)
        for entry in entries
        if coverage.covers(entry.position)
    )

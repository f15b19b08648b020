"""Checking one stream, event by event in the order of the log: gaps, order, chain, and erasures."""

from collections.abc import Iterator

from refold.application.ports.conversation_log import Damage
from refold.domain.events import (
    ConversationErased,
    ConversationForked,
    EventLost,
    MessageAppended,
    MessageErased,
)
from refold.domain.notes import MemoriesChosen
from refold.infrastructure.event_store.envelope import GENESIS
from refold.infrastructure.event_store.mapper import RecordedEvent

from .row_reads import RawRow

LOG = "log"
"""The place of damage that is of the log itself."""


BELIEVED = 1_000
"""So far behind the newest intact event, the version of a damaged one is believed."""


class StreamCheck:
    """What was seen of a stream so far."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        self.version = 0
        self.keys: set[tuple[str, int]] = set()
        self.unread: set[int] = set()
        """Versions of damaged events: nothing is known of their content."""
        self.gone = 0
        """The version at which the conversation was erased."""
        self._link: str | None = GENESIS
        """Of the newest event; None where it is not known."""
        self._gaps: list[range] = []
        self._pending: int | None = None
        """An event that does not follow the one before; the next one tells which of the two is wrong."""
        self._erased: dict[int, str] = {}
        self._rewritten: dict[int, str] = {}
        self._kept: set[int] = set()

    def take(
        self, row: RawRow, link: str, recorded: RecordedEvent | None, problem: Damage | None
    ) -> Iterator[Damage]:
        """Take the next event in; ``link`` is that of its frame, and empty if that is damaged."""
        version = row.version
        if problem is not None and version != self.version + 1:
            pass  # What it says of its place cannot be believed.
        elif version <= self.version:
            yield from self._late(version)
        else:
            yield from self._settle(recorded)
            if version > self.version + 1:
                self._gaps.append(range(self.version + 1, version))
            elif recorded and self._link is not None and recorded.previous != self._link:
                self._pending = version
            # What follows a damaged event cannot be blamed for not following it.
            self.version, self._link = version, link if recorded else None
        if problem is not None:
            self.unread.add(version)
            yield problem
        if recorded is not None:
            self._note(recorded)

    def finish(self) -> Iterator[Damage]:
        """What can be told only at the end."""
        yield from self._settle(None)
        beyond = [v for v in self.unread if self.version < v <= self.version + BELIEVED]
        if beyond:
            # Nothing intact comes after it that would show what is missing before it.
            self._gaps.append(range(self.version + 1, max(beyond) + 1))
        for first, last in self._missing():
            detail = "the event is" if first == last else f"events {first} to {last} are"
            yield self._damage(first, "gap", f"{detail} missing")
        yield from self._check_erasures()

    def has(self, version: int) -> bool:
        """Whether there is an event with this version, whatever its state."""
        return 0 < version <= self.version and not any(version in gap for gap in self._gaps)

    def _missing(self) -> Iterator[tuple[int, int]]:
        for gap in self._gaps:
            first = gap[0]
            for version in sorted(v for v in self.unread if v in gap):
                if first < version:
                    yield first, version - 1
                first = version + 1
            if first <= gap[-1]:
                yield first, gap[-1]

    def _late(self, version: int) -> Iterator[Damage]:
        gap = next((gap for gap in self._gaps if version in gap), None)
        if gap is None:
            yield self._damage(version, "duplicate", "the log has an event of this version twice")
            return
        at = self._gaps.index(gap)
        parts = (range(gap.start, version), range(version + 1, gap.stop))
        self._gaps[at : at + 1] = [part for part in parts if part]
        yield self._damage(version, "reordered", "it lies after later events in the log")

    def _settle(self, following: RecordedEvent | None) -> Iterator[Damage]:
        if self._pending is None:
            return
        if following is not None and following.previous == self._link:
            detail = "it does not follow the event before: one of the two is of another history"
            yield self._damage(self._pending, "chain", detail)
        else:
            detail = "it follows neither the event before nor comes before the next: it is foreign"
            yield self._damage(self._pending, "foreign", detail)
            self._link = None
        self._pending = None

    def _note(self, recorded: RecordedEvent) -> None:
        if recorded.remains is not None:
            self._erased[recorded.originator_version] = recorded.remains
        match recorded.event:
            case MessageAppended(key=str(key)):
                self.keys.add((key, recorded.originator_version))
            case MessageErased(rewritten=rewritten) | MemoriesChosen(rewritten=rewritten):
                self._rewritten.update((r.version, r.remains) for r in rewritten)
            case EventLost() if recorded.remains is None:
                self._kept.add(recorded.originator_version)
            case ConversationForked():
                # What a conversation was forked from stays when it is erased.
                self._kept.add(recorded.originator_version)
            case ConversationErased():
                self.gone = recorded.originator_version
            case _:
                pass

    def _check_erasures(self) -> Iterator[Damage]:
        for version, remains in self._erased.items():
            if version > self.gone and self._rewritten.get(version) != remains:
                detail = "its content was taken out, and no erasure says so"
                yield self._damage(version, "erased", detail)
        expected = self._rewritten.keys() | set(range(1, self.gone))
        for version in sorted(expected - self._erased.keys() - self.unread - self._kept):
            if self.has(version):
                detail = "it was erased, and its content is back"
                yield self._damage(version, "restored", detail)

    def _damage(self, version: int, kind: str, detail: str) -> Damage:
        return Damage(LOG, self.thread_id, version, kind, detail)

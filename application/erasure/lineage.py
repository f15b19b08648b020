"""Find the stored events that contain the text of a message, or text made from it."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import NamedTuple

from refold.application.conversation.loaded import LoadedConversation
from refold.application.conversation.stream_places import DECISION_KINDS, StreamPlaces, places_in
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.runtime.core import Core
from refold.domain.conversation import Conversation, Coverage
from refold.domain.erasing import is_made_from
from refold.domain.events import (
    CompactionPerformed,
    CompactionRequested,
    Event,
    MessageAppended,
    MessageErased,
)
from refold.domain.messages import Message
from refold.domain.notes import NotesFlushed
from refold.domain.pinning import WITHDRAWN_LABEL
from refold.domain.quoted_text import IsQuoted, is_quoting, quote_checker, quoting_attempts

AT_ONCE = 1_000
"""Number of events to read at a time."""

_BUT_COMPACTIONS = tuple(kind for kind in DECISION_KINDS if kind is not CompactionPerformed)
"""Kinds of decisions that are small to read."""

Said = tuple[LoggedEvent, MessageAppended]
"""A message with its log entry."""


class Lineage(NamedTuple):
    """Stored events that concern some messages of a conversation, up to a version."""

    thread_id: str
    positions: frozenset[int]
    """Positions of the requested messages."""
    version: int = 0
    """Last version that was read."""
    messages: Mapping[int, Said] = {}
    """Requested messages that exist, by position."""
    erased: frozenset[int] = frozenset()
    """All positions that were erased before, requested or not."""
    decisions: tuple[tuple[int, Event], ...] = ()
    """Events other than messages and erasures, with their versions."""
    takes_all: bool = False
    """True if texts written by the owner are erased with the messages, quoting them or not."""

    @property
    def fresh(self) -> frozenset[int]:
        """Positions of requested messages that exist and were not erased before."""
        return self.positions & self.messages.keys() - self.erased

    def has_only_texts(self, state: Conversation) -> bool:
        """Return whether texts of an owner are left in a conversation whose messages were all erased before."""
        if not self.takes_all or self.erased != frozenset(range(state.length)):
            return False
        notes = any(isinstance(event, NotesFlushed) and event.notes for _, event in self.decisions)
        return (
            notes or bool(state.pins or state.edits) or state.label not in (None, WITHDRAWN_LABEL)
        )

    def said(self, positions: frozenset[int]) -> list[Message]:
        """Return the messages at these positions."""
        return [self.messages[p][1].message for p in sorted(positions & self.messages.keys())]

    def is_quoted(self, positions: frozenset[int]) -> IsQuoted:
        """Return a predicate for other texts that are erased with the messages at these positions."""
        return _every_text if self.takes_all else quote_checker(self.said(positions))

    @property
    def quoting(self) -> frozenset[str]:
        """Ids of attempts whose focus quotes a ``fresh`` message, and of those that continue their summaries."""
        return quoting_attempts((event for _, event in self.decisions), self.is_quoted(self.fresh))

    @property
    def withdrawn(self) -> frozenset[str]:
        """Ids of summaries and of notes on demand that are made from the ``fresh`` messages or quote them."""
        made = [event for _, event in self.made_from(self.fresh)]
        summaries = {e.summary_id for e in made if isinstance(e, CompactionPerformed)}
        notes = {e.flush_id for e in made if isinstance(e, NotesFlushed) and e.is_on_demand}
        return frozenset(summaries | notes)

    @property
    def withdrawn_notes(self) -> Mapping[int, NotesFlushed]:
        """Notes that were taken from ``fresh`` messages, by version."""
        made = self.made_from(self.fresh)
        return {at: event for at, event in made if isinstance(event, NotesFlushed) and event.notes}

    def made_from(self, positions: frozenset[int]) -> Iterator[tuple[int, Event]]:
        """Yield the messages at these positions, and the events made or quoted from them."""
        attempts: dict[str, Coverage] = {
            event.attempt_id: event.coverage
            for _, event in self.decisions
            if isinstance(event, CompactionRequested)
        }
        for position in sorted(positions & self.messages.keys()):
            logged, said = self.messages[position]
            yield logged.version, said
        is_quoted = self.is_quoted(positions)
        quoting = quoting_attempts((event for _, event in self.decisions), is_quoted)
        for version, event in self.decisions:
            if is_made_from(event, positions, attempts) or is_quoting(event, quoting, is_quoted):
                yield version, event


def _has_focus(event: Event) -> bool:
    return isinstance(event, CompactionRequested) and bool(event.focus)


def _every_text(text: str) -> bool:
    return bool(text)


def trace(core: Core, loaded: LoadedConversation, known: Lineage) -> Lineage:
    """Update ``known`` to the version of the loaded conversation.

    Only the requested messages and decisions are read. Compactions before the first of these messages
    cannot contain its text, and are not read.
    """
    places = _places(core, loaded)
    messages, decisions = dict(known.messages), list(known.decisions)
    erased = set(known.erased)
    for logged, said in _said(places, known.positions - messages.keys()):
        messages[said.position] = logged, said
        erased.update({said.position} if logged.erased else ())
    kept = [logged.version for logged, _ in messages.values()]
    first = 0 if known.takes_all else min(kept, default=0)
    for logged in _decisions(places, known.version, first):
        event = logged.event
        if isinstance(event, MessageErased):
            erased.add(event.position)
        else:  # Which of them lose content is decided by ``is_made_from`` and ``is_quoting``.
            decisions.append((logged.version, event))
    return known._replace(
        version=loaded.state.version,
        messages=messages,
        erased=frozenset(erased),
        decisions=tuple(decisions),
    )


def _decisions(places: StreamPlaces, after: int, first: int) -> Iterator[LoggedEvent]:
    """Yield the decisions after a version. Without a focus, compactions before version ``first`` are left out.

    A compaction contains text of earlier messages, and its focus, which can also quote a later one. The
    request of the compaction has the same focus.
    """
    if after < first:
        found = places.decisions_after(after, _BUT_COMPACTIONS)
        early = list(takewhile(lambda logged: logged.version < first, found))
        if not any(_has_focus(logged.event) for logged in early):
            yield from early
            after = first
    yield from places.decisions_after(after)


def versions_at(
    core: Core, loaded: LoadedConversation, positions: Iterable[int]
) -> Mapping[int, int]:
    """Return the versions of the messages at these positions, by position. No decision is looked for."""
    return {
        said.position: logged.version for logged, said in _said(_places(core, loaded), positions)
    }


def _places(core: Core, loaded: LoadedConversation) -> StreamPlaces:
    return places_in(core, loaded.thread_id, loaded.state.version, loaded.state.length)


def _said(places: StreamPlaces, positions: Iterable[int]) -> Iterator[Said]:
    for first, stop in _runs(positions):
        for logged in places.messages(first, stop):
            if isinstance(logged.event, MessageAppended) and logged.event.position >= first:
                yield logged, logged.event


def _runs(positions: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield start and stop of each run of consecutive positions."""
    first = stop = -1
    for position in sorted(positions):
        if position != stop:
            if stop > first:
                yield first, stop
            first = position
        stop = position + 1
    if stop > first:
        yield first, stop


def copies(core: Core, thread_id: str, versions: Mapping[int, int]) -> Mapping[str, frozenset[int]]:
    """Return the shared positions in other conversations, by thread id.

    ``versions`` are those of the messages, by position. A fork shares positions and versions with
    its source, and so do forks of forks.
    """
    found = {thread_id: frozenset(versions)}
    forks, grown = core.log.forks(), True
    while grown:
        grown = False
        for fork in forks:
            for one, other in ((fork.source, fork.thread_id), (fork.thread_id, fork.source)):
                shared = _positions_up_to(fork.version, found.get(one, frozenset()), versions)
                known = found.get(other, frozenset())
                if not shared <= known:
                    found[other], grown = known | shared, True
    return {thread: positions for thread, positions in found.items() if thread != thread_id}


def descendants(core: Core, thread_id: str) -> Mapping[str, int]:
    """Return the direct and indirect forks of a conversation, each with the last shared version."""
    found: dict[str, int] = {}
    forks, grown = core.log.forks(), True
    while grown:
        grown = False
        for fork in forks:
            if fork.source == thread_id:
                shared = fork.version
            elif fork.source in found:
                shared = min(fork.version, found[fork.source])
            else:
                continue
            if fork.thread_id not in found:
                found[fork.thread_id], grown = shared, True
    return found


def _positions_up_to(
    version: int, positions: Iterable[int], versions: Mapping[int, int]
) -> frozenset[int]:
    return frozenset(p for p in positions if versions[p] <= version)


def read_events(core: Core, thread_id: str, first: int, last: int) -> Iterator[LoggedEvent]:
    """Yield the events from version ``first`` to ``last``, reading some at a time."""
    for version in range(first, last + 1, AT_ONCE):
        yield from core.log.read(thread_id, version, min(version + AT_ONCE - 1, last))

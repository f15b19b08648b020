"""The messages that notes are taken of: live ones from the window, covered ones from the log."""

from collections.abc import Iterator

from refold.application.core import Core
from refold.application.event_log import LoggedEvent
from refold.application.loaded import LoadedConversation
from refold.application.ports import SourceMessage
from refold.application.projections.entries import entries_between
from refold.domain.events import MessageAppended, MessageErased
from refold.domain.remembering import Note, NotesFlushed

AT_ONCE = 1_000
"""Events read in one go."""


def messages_to_note(
    core: Core, loaded: LoadedConversation, start: int, stop: int
) -> tuple[SourceMessage, ...]:
    """The messages at positions ``start`` up to but not including ``stop``, oldest first.

    Those that a summary covers already are there as well: not every cycle reaches as far as the
    compaction that ends it.
    """
    found = {
        entry.position: SourceMessage(position=entry.position, message=entry.message)
        for entry in entries_between(loaded.window.entries, start, stop)
    }
    if start < loaded.state.covered_to:
        # A message never has a smaller version than the number of messages up to it.
        for logged in _read(core, loaded.thread_id, start + 1, loaded.state.version):
            event = logged.event
            if not isinstance(event, MessageAppended) or event.position < start:
                continue
            if event.position >= min(stop, loaded.state.covered_to):
                break
            if not logged.erased:
                source = SourceMessage(position=event.position, message=event.message)
                found.setdefault(event.position, source)
    return tuple(found[position] for position in sorted(found))


def earlier_notes(core: Core, loaded: LoadedConversation) -> tuple[Note, ...]:
    """What was noted before, the newest of it: the same line is not noted twice."""
    events = core.log.read_at(loaded.thread_id, loaded.state.notes_versions)
    flushes = [logged.event for logged in events if isinstance(logged.event, NotesFlushed)]
    return tuple(note for flush in flushes for note in flush.notes)


def is_erased_since(core: Core, then: LoadedConversation, now: LoadedConversation) -> bool:
    """Whether a message was erased since: then notes may hold what is to be forgotten."""
    if then.state.first_message_id not in ("", now.state.first_message_id):
        return True  # All of it was, and something else was begun.
    events = _read(core, then.thread_id, then.state.version + 1, now.state.version)
    return any(isinstance(logged.event, MessageErased) for logged in events)


def _read(core: Core, thread_id: str, first: int, last: int) -> Iterator[LoggedEvent]:
    for version in range(first, last + 1, AT_ONCE):
        yield from core.log.read(thread_id, version, min(version + AT_ONCE - 1, last))

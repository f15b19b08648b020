"""Which messages of a very long conversation stay in the log when it is loaded."""

from typing import NamedTuple

from refold.application.event_log import LoggedEvent
from refold.application.projections.entries import LongEntries, StoredMessages, StoredRun
from refold.application.projections.window import Window
from refold.application.stream_places import ReadEvents, StreamPlaces
from refold.domain.archiving import live_messages
from refold.domain.conversation import Conversation
from refold.domain.events import (
    CompactionFailed,
    CompactionRequested,
    ConversationForked,
    ConversationLabelled,
    MessageErased,
)
from refold.domain.fading import REMEMBERED
from refold.domain.frames import RequestFrameChanged
from refold.domain.remembering import NotesFlushed

MOST_HELD = REMEMBERED + REMEMBERED // 4
"""More of the newest messages than so many are not held in memory, once they are larger than any window.
Every cut lies among the newest that the state remembers."""
LARGEST_WINDOW = 1_200_000
"""Tokens. No model reads more at once; what fits it is held in memory, however many messages it has."""
MOST_DECISIONS = 64
"""Among more decisions than so many nobody looks for one that changes what is shown."""
HARMLESS = (
    CompactionRequested,
    CompactionFailed,
    ConversationForked,
    ConversationLabelled,
    NotesFlushed,
    RequestFrameChanged,
)
"""Events that change nothing that is shown."""


class Stored(NamedTuple):
    """What stays in the log, and the version from which on the others are read."""

    run: StoredRun
    first: int


def stored_run(state: Conversation, read: ReadEvents, log: StoredMessages) -> Stored | None:
    """All but the newest messages, if they can stay in the log: nothing that was decided up to this state
    changes how they are shown. None: they must be read.
    """
    others = state.version - live_messages(state)
    if not state.older_live or state.live_tokens < LARGEST_WINDOW or others > MOST_DECISIONS:
        return None
    places = StreamPlaces(read, state.version, state.length)
    decided = [*places.decisions_after(0)] if others else []
    first = state.version - REMEMBERED + 1
    if len(decided) < others or not all(_is_harmless(one, first) for one in decided):
        return None
    count = first - 1 - sum(1 for one in decided if one.version < first)
    return Stored(StoredRun(0, count, count, log, {}), first)


def _is_harmless(decided: LoggedEvent, first: int) -> bool:
    """Whether a decision changes nothing of what is not read, from version ``first`` on all being read."""
    if decided.version >= first and isinstance(decided.event, MessageErased):
        return True  # It brings the measure of what is left of the message.
    return isinstance(decided.event, HARMLESS)


def trimmed(window: Window, state: Conversation, log: StoredMessages) -> Window:
    """The window with only the newest messages in memory, where no model could read all of them."""
    entries = window.entries
    held = entries.newest if isinstance(entries, LongEntries) else entries
    if len(held) < MOST_HELD or state.live_tokens < LARGEST_WINDOW:
        return window
    return window.shelved(REMEMBERED, log)

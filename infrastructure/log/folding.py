"""Folds a stream that is read batch by batch into state and window."""

from collections.abc import Sequence

from refold.application.projections.window import Window, must_reload, project, undone_by
from refold.domain.conversation import Conversation
from refold.domain.events import CompactionPerformed, Event
from refold.domain.folding import fold

from .file.sqlite import Head
from .stored.mapper import RecordedEvent


class StreamFolding:
    """What was folded so far: the state from the event behind it on, the window from its live messages on."""

    def __init__(self, state: Conversation, undone: frozenset[str] = frozenset()) -> None:
        """``state``: of a snapshot, or of the beginning; ``undone``: compactions known to be undone."""
        self.state = state
        self.window = Window()
        self.head = Head()
        self.link = ""
        """Of the event that the state began at."""
        self.undone = undone
        self.lacks = False
        """Whether the window lacks messages that an undone compaction had covered."""
        self._version = state.version
        self._performed: set[str] = set()

    def begin(self, early: Sequence[Event]) -> None:
        """Fold what is shown of before the live messages."""
        self.window = project(self.window, early)

    def take(self, recorded: Sequence[RecordedEvent]) -> None:
        """Fold the next events."""
        events = [one.event for one in recorded]
        new = [one.event for one in recorded if one.originator_version > self._version]
        for one in recorded:
            if one.originator_version == self._version:
                self.link = one.link
        self._note_undone(events, new)
        if not self.lacks:
            self.window = project(self.window, events, self.undone)
        self.state = fold(new, self.state)
        self.head = Head(recorded[-1].originator_version, recorded[-1].link)

    def _note_undone(self, events: Sequence[Event], new: Sequence[Event]) -> None:
        # Behind a snapshot, what is undone may have covered what was never read; behind an earlier batch,
        # what was dropped from the window there.
        undone = frozenset(undone_by(events)) - self.undone
        is_dropped = not self._performed.isdisjoint(undone)
        self.lacks = self.lacks or is_dropped or (self._version > 0 and must_reload(new))
        self.undone |= undone
        self._performed |= {e.summary_id for e in events if isinstance(e, CompactionPerformed)}

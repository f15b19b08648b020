"""Durable notes, and earlier messages quoted in the system text.

These names are the storage format, like those in ``events``.
"""

from collections.abc import Collection
from typing import Literal

from .value import Value

NoteKind = Literal["decision", "preference", "constraint", "task", "fact"]
"""Kind of a note.

A decision, a preference of the user, a constraint, an open task, or a fact.
"""


class Note(Value, frozen=True):
    """A text worth remembering after its conversation has left the context."""

    kind: NoteKind
    text: str
    positions: tuple[int, ...] = ()
    """Positions of the source messages; empty if a model did not name any."""


class NotesFlushed(Value, frozen=True):
    """Durable notes were taken of messages before a compaction, or there was nothing to note."""

    flush_id: str
    start: int
    stop: int
    """End of the range of messages that were read, exclusive. ``start`` is its beginning."""
    notes: tuple[Note, ...]
    """Notes that were taken; empty if there was nothing to save."""
    taken_by: str
    """``ledger`` if code took the notes, or else the name of the summariser."""
    model: str = ""
    prompt_fingerprint: str = ""
    model_calls: int = 0
    """Number of model calls, including retries."""
    reason: str = ""
    """Reason why code took the notes instead of a model, or why they were rebuilt. A short constant."""
    replaces: str | None = None
    """Id of the flush that this one replaces, because something its notes were made from was erased."""
    taken_at: str | None = None
    """Time when the replaced notes were first taken, in ISO 8601 and UTC.

    None if the notes were taken when they were logged.
    """

    @property
    def is_on_demand(self) -> bool:
        """Whether a model asked for the note, or withdrew it, between two compactions: no message was read."""
        return self.start == self.stop


MemoryKind = Literal["message", "note", "summary"]


class Rewritten(Value, frozen=True):
    """An earlier event of this conversation whose content was removed while its row remained."""

    version: int
    remains: str
    """SHA-256 of the remaining payload."""


class ChosenMemory(Value, frozen=True):
    """An excerpt of an earlier message, or of a note or summary from another conversation."""

    position: int
    """Position of the message, or of the first message that the note or summary was made from."""
    message_id: str
    """Id of the message or summary. For a note, the id of its flush with the number of the note."""
    role: str
    """Writer of the text: ``tool`` for a tool result, ``note`` and ``summary`` for derived texts."""
    at: str
    """Time of writing, or else of logging, in ISO 8601 and UTC."""
    text: str
    score: float
    """Score relative to the best one: above 0, at most 1."""
    thread_id: str | None = None
    """Thread id of the other conversation, or None for this one."""
    kind: MemoryKind = "message"
    start: int = 0
    """Position of the first source message in the other conversation."""
    stop: int = 0
    """Position after the last source message in the other conversation."""

    def is_made_of(self, thread_id: str, positions: Collection[int]) -> bool:
        """Return whether the excerpt comes from one of these messages of another conversation."""
        return self.thread_id == thread_id and any(self.start <= p < self.stop for p in positions)


class MemoriesChosen(Value, frozen=True):
    """Earlier messages were chosen for quotation in the system text. They replace earlier choices."""

    query_position: int
    """Position of the message that the search was made for."""
    memories: tuple[ChosenMemory, ...]
    """Chosen excerpts, best first. An empty tuple removes the quotations."""
    tokens: int
    """Tokens as rendered, including heading and guidance."""
    rewritten: tuple[Rewritten, ...] = ()
    """Earlier choices whose content was removed, because a message they quoted was erased elsewhere."""

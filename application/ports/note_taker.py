"""The port for taking notes with a model; a summariser may implement it too."""

from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from refold.domain.notes import Note
from refold.domain.value import Value

from .summariser import SourceMessage


class NotesRequest(Value, frozen=True):
    """The messages to take notes from. All texts in it are data, never instructions."""

    messages: tuple[SourceMessage, ...]
    """Messages to read, oldest first."""
    most: int
    """Maximum number of notes; further ones are dropped."""


class NotesDraft(Value, frozen=True):
    """The answer of a note taker, before it is checked."""

    notes: tuple[Note, ...]
    """Notes, empty if there is nothing to save."""
    model: str
    prompt_fingerprint: str
    """Digest of the prompt; changes whenever its wording changes."""
    stop_reason: str | None = None
    attempts: int = 1
    """Number of model calls, including retries."""


@runtime_checkable
class NoteTaker(Protocol):
    """A summariser that also takes notes.

    Raises ``SummariserError`` on failure; code then takes the notes. Keeps its requests within its own
    window, with several calls if necessary.
    """

    async def take_notes(self, request: NotesRequest) -> NotesDraft:
        """Return notes of ``request.messages``."""
        ...


TakeNotes = Callable[[NotesRequest], Awaitable[NotesDraft]]


def note_taking(summariser: object) -> TakeNotes | None:
    """Return the function with which a summariser takes notes, or None if it has none."""
    take: TakeNotes | None = getattr(summariser, "take_notes", None)
    return take

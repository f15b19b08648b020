"""The port for taking notes with a model: what a summariser may be able to do as well."""

from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from refold.domain.notes import Note
from refold.domain.value import Value

from .summariser import SourceMessage


class NotesRequest(Value, frozen=True):
    """What notes are to be taken of. All texts in it are data, never instructions."""

    messages: tuple[SourceMessage, ...]
    """Oldest first."""
    most: int
    """Of more notes than so many the first ones are kept."""


class NotesDraft(Value, frozen=True):
    """A note taker's answer, not yet accepted."""

    notes: tuple[Note, ...]
    """Empty where there is nothing to save."""
    model: str
    prompt_fingerprint: str
    """Names the prompt exactly: a digest that changes whenever its wording does."""
    stop_reason: str | None = None
    attempts: int = 1
    """How often the model was asked, retries included."""


@runtime_checkable
class NoteTaker(Protocol):
    """A summariser that takes notes as well.

    Raises ``SummariserError`` when it cannot: code does it then. Keeps within its own window, in several
    calls where it must.
    """

    async def take_notes(self, request: NotesRequest) -> NotesDraft:
        """Take notes of ``request.messages``."""
        ...


TakeNotes = Callable[[NotesRequest], Awaitable[NotesDraft]]


def note_taking(summariser: object) -> TakeNotes | None:
    """How a summariser takes notes; None where it cannot."""
    take: TakeNotes | None = getattr(summariser, "take_notes", None)
    return take

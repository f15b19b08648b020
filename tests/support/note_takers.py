"""Summarisers that take notes as well: each in one way, good or bad, without a model."""

import asyncio

from refold.application.errors import SummariserError
from refold.application.ports.summariser import NotesDraft, NotesRequest
from refold.domain.notes import Note

from .fake_summarisers import GoodSummariser


class NotingSummariser(GoodSummariser):
    """Notes what the first message of each request says; ``noted`` keeps the requests."""

    name = "noting"

    def __init__(self, *notes: Note) -> None:
        self.notes = notes
        self.noted: list[NotesRequest] = []

    async def take_notes(self, request: NotesRequest) -> NotesDraft:
        self.noted.append(request)
        first = request.messages[0]
        said = Note(kind="fact", text=f"noted from {first.position}", positions=(first.position,))
        return NotesDraft(
            notes=self.notes or (said,), model="noting-1", prompt_fingerprint="fake", attempts=2
        )


class SilentNoteTaker(NotingSummariser):
    """Has nothing to save."""

    async def take_notes(self, request: NotesRequest) -> NotesDraft:
        self.noted.append(request)
        return NotesDraft(notes=(), model="noting-1", prompt_fingerprint="fake")


class RaisingNoteTaker(NotingSummariser):
    """Fails as it is told to."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    async def take_notes(self, request: NotesRequest) -> NotesDraft:
        self.noted.append(request)
        raise self.error


class HangingNoteTaker(NotingSummariser):
    """Never answers."""

    async def take_notes(self, request: NotesRequest) -> NotesDraft:
        self.noted.append(request)
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")


def overloaded() -> SummariserError:
    return SummariserError("overloaded", "fake failure. Try again.", attempts=3)

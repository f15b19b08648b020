"""A summariser that stands before another one: asked in a way of its own, and else the one behind it."""

from collections.abc import Awaitable, Callable
from functools import partial

from .notes.taker import NotesDraft, NotesRequest, TakeNotes, note_taking
from .ports import (
    BoundedSummariser,
    Summariser,
    SummaryDraft,
    SummaryRequest,
    for_models,
    is_by_code,
    signs,
)

Ask = Callable[[Summariser, SummaryRequest], Awaitable[SummaryDraft]]
"""How the one behind is asked."""
AskNotes = Callable[[TakeNotes, NotesRequest], Awaitable[NotesDraft]]
"""How it is asked for notes, where it takes some."""


class Relay:
    """Has the name of the summariser behind it, and can do what that one can."""

    def __init__(self, behind: Summariser, ask: Ask, ask_notes: AskNotes | None) -> None:
        self.behind = behind
        self.ask = ask
        self._ask_notes = ask_notes

    @property
    def name(self) -> str:
        """The name of the one behind."""
        return self.behind.name

    @property
    def signs(self) -> bool:
        """Whether the one behind signs what it writes."""
        return signs(self.behind)

    def for_models(self, asked: str | None, answering: str | None) -> Summariser:
        """Return a relay before the one behind, as that asks these models."""
        behind = for_models(self.behind, asked, answering)
        return self if behind is self.behind else relayed(behind, self.ask, self._ask_notes)

    @property
    def by_code(self) -> bool:
        """Return whether the one behind asks no model."""
        return is_by_code(self.behind)

    @property
    def take_notes(self) -> TakeNotes | None:
        """How the one behind takes notes, in the way of this relay; None where it takes none."""
        behind = note_taking(self.behind)
        if behind is None or self._ask_notes is None:
            return behind
        return partial(self._ask_notes, behind)

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        """Ask the one behind, in the way of this relay."""
        return await self.ask(self.behind, request)


class BoundedRelay(Relay):
    """The same before one with a window of its own."""

    def __init__(
        self,
        behind: Summariser,
        bounds: BoundedSummariser,
        ask: Ask,
        ask_notes: AskNotes | None,
    ) -> None:
        super().__init__(behind, ask, ask_notes)
        self._bounds = bounds

    @property
    def window(self) -> int:
        """The window of the one behind."""
        return self._bounds.window

    def measure(self, request: SummaryRequest) -> int:
        """The size of a request, as the one behind measures it."""
        return self._bounds.measure(request)


def relayed(behind: Summariser, ask: Ask, ask_notes: AskNotes | None = None) -> Relay:
    """``behind``, asked by ``ask``, and for notes by ``ask_notes`` or as it is."""
    if isinstance(behind, BoundedSummariser):
        return BoundedRelay(behind, behind, ask, ask_notes)
    return Relay(behind, ask, ask_notes)

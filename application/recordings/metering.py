"""A summariser that tells what its model was given and what it wrote."""

from collections.abc import Callable

from refold.application.notes.taker import NotesDraft, NotesRequest, TakeNotes
from refold.application.ports import Summariser, SummaryDraft, SummaryRequest, TokenCounter
from refold.application.relaying import relayed

Heard = Callable[[int, int, str | None], None]
"""Is told of every call: tokens given, tokens written, and by which model."""


def metered(summariser: Summariser, counter: TokenCounter, heard: Heard) -> Summariser:
    """``summariser``, with ``heard`` told of every call.

    An answer that failed is not counted: providers do not charge for it.
    """

    async def ask(behind: Summariser, request: SummaryRequest) -> SummaryDraft:
        draft = await behind.summarise(request)
        given = sum(counter.count_message(s.message).total for s in request.messages)
        texts = (request.previous or "", request.focus or "", request.ledger, request.repair or "")
        given += sum(map(counter.count_text, texts))
        heard(given, counter.count_text(draft.text), draft.model)
        return draft

    async def ask_notes(take: TakeNotes, request: NotesRequest) -> NotesDraft:
        draft = await take(request)
        given = sum(counter.count_message(s.message).total for s in request.messages)
        heard(given, sum(counter.count_text(note.text) for note in draft.notes), draft.model)
        return draft

    return relayed(summariser, ask, ask_notes)

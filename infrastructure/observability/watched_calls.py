"""A summariser whose every call is told, one by one: tries after a passing trouble as well."""

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from refold.application.ports.note_taker import NotesDraft, NotesRequest, TakeNotes
from refold.application.ports.summariser import Summariser, SummaryDraft, SummaryRequest
from refold.application.summaries.asking import relayed


class Answered(Protocol):
    """What is told of a draft."""

    @property
    def model(self) -> str:
        """The model that wrote it."""
        ...

    @property
    def stop_reason(self) -> str | None:
        """Why it stopped."""
        ...


Draft = TypeVar("Draft", bound=Answered)


class Call(Protocol):
    """One call of a summariser, while it runs."""

    def answered(self, draft: Answered, seconds: float) -> None:
        """It gave this."""
        ...

    def failed(self, error: BaseException, seconds: float) -> None:
        """It raised this."""
        ...


Following = Callable[[Summariser], AbstractContextManager[Call]]
"""Entered for each call."""


def watched(summariser: Summariser, following: Following) -> Summariser:
    """``summariser``, with each call followed."""

    async def ask(behind: Summariser, request: SummaryRequest) -> SummaryDraft:
        return await _followed(following(behind), lambda: behind.summarise(request))

    async def ask_notes(behind: TakeNotes, request: NotesRequest) -> NotesDraft:
        return await _followed(following(summariser), lambda: behind(request))

    return relayed(summariser, ask, ask_notes)


async def _followed(
    followed: AbstractContextManager[Call], ask: Callable[[], Awaitable[Draft]]
) -> Draft:
    started = time.monotonic()
    with followed as call:
        try:
            draft = await ask()
        except BaseException as error:
            call.failed(error, time.monotonic() - started)
            raise
        call.answered(draft, time.monotonic() - started)
    return draft

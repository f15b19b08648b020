"""A wrapper that observes every call of a summariser, retries included."""

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from refold.application.ports.summariser import (
    NotesDraft,
    NotesRequest,
    Summariser,
    SummaryDraft,
    SummaryRequest,
    TakeNotes,
)
from refold.application.summaries.summariser_calls import checked_draft, relay


class ObservedDraft(Protocol):
    """The draft of a summariser, as telemetry sees it."""

    @property
    def model(self) -> str:
        """Model that wrote the draft."""
        ...

    @property
    def stop_reason(self) -> str | None:
        """Reason why the model stopped."""
        ...


Draft = TypeVar("Draft", bound=ObservedDraft)


class Call(Protocol):
    """A running call of a summariser."""

    def answered(self, draft: ObservedDraft, seconds: float) -> None:
        """Record a successful call."""
        ...

    def failed(self, error: BaseException, seconds: float) -> None:
        """Record a failed call."""
        ...


CallContext = Callable[[Summariser], AbstractContextManager[Call]]
"""A function that returns a context to enter for each call."""


def observe_calls(summariser: Summariser, following: CallContext) -> Summariser:
    """Wrap the summariser so that each call is observed."""

    async def ask(behind: Summariser, request: SummaryRequest) -> SummaryDraft:
        async def summarise() -> SummaryDraft:
            return checked_draft(await behind.summarise(request))

        return await _follow(following(behind), summarise)

    async def ask_notes(behind: TakeNotes, request: NotesRequest) -> NotesDraft:
        return await _follow(following(summariser), lambda: behind(request))

    return relay(summariser, ask, ask_notes)


async def _follow(
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


class Unobserved:
    """A call that is not recorded."""

    def answered(self, draft: ObservedDraft, seconds: float) -> None:
        """Record nothing."""

    def failed(self, error: BaseException, seconds: float) -> None:
        """Record nothing."""

"""A summariser whose every call is told, one by one: tries after a passing trouble as well."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from refold.application.ports import (
    BoundedSummariser,
    Summariser,
    SummaryDraft,
    SummaryRequest,
    signs,
)


class Call(Protocol):
    """One call of a summariser, while it runs."""

    def answered(self, draft: SummaryDraft, seconds: float) -> None:
        """It gave this."""
        ...

    def failed(self, error: BaseException, seconds: float) -> None:
        """It raised this."""
        ...


Following = Callable[[Summariser], AbstractContextManager[Call]]
"""Entered for each call."""


def watched(summariser: Summariser, following: Following) -> Summariser:
    """``summariser``, with each call followed; it keeps its name and what it can do."""
    if isinstance(summariser, BoundedSummariser):
        return WatchedBoundedSummariser(summariser, summariser, following)
    return WatchedSummariser(summariser, following)


class WatchedSummariser:
    """Passes everything on, and tells."""

    def __init__(self, summariser: Summariser, following: Following) -> None:
        self._summariser = summariser
        self._following = following

    @property
    def name(self) -> str:
        """The summariser's own name."""
        return self._summariser.name

    @property
    def signs(self) -> bool:
        """Whether the summariser signs what it writes."""
        return signs(self._summariser)

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        """Ask the summariser."""
        started = time.monotonic()
        with self._following(self._summariser) as call:
            try:
                draft = await self._summariser.summarise(request)
            except BaseException as error:
                call.failed(error, time.monotonic() - started)
                raise
            call.answered(draft, time.monotonic() - started)
        return draft


class WatchedBoundedSummariser(WatchedSummariser):
    """The same for a summariser with a window of its own."""

    def __init__(
        self, summariser: Summariser, bounds: BoundedSummariser, following: Following
    ) -> None:
        super().__init__(summariser, following)
        self._bounds = bounds

    @property
    def window(self) -> int:
        """The summariser's own window."""
        return self._bounds.window

    def measure(self, request: SummaryRequest) -> int:
        """The size of a request, as the summariser measures it."""
        return self._bounds.measure(request)

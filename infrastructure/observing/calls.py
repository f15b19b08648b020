"""A summariser whose every call is told, one by one: tries after a passing trouble as well."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from refold.application.ports import Summariser, SummaryDraft, SummaryRequest
from refold.application.relaying import relayed


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
    """``summariser``, with each call followed."""

    async def ask(behind: Summariser, request: SummaryRequest) -> SummaryDraft:
        started = time.monotonic()
        with following(behind) as call:
            try:
                draft = await behind.summarise(request)
            except BaseException as error:
                call.failed(error, time.monotonic() - started)
                raise
            call.answered(draft, time.monotonic() - started)
        return draft

    return relayed(summariser, ask)

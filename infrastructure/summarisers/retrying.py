"""Asks a summariser again, with growing delay, while its trouble is one that passes."""

import asyncio
from collections.abc import Awaitable, Callable

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential_jitter,
)

from refold.application.errors import SummariserError
from refold.application.ports import (
    BoundedSummariser,
    Summariser,
    SummaryDraft,
    SummaryRequest,
    signs,
)

TRIES = 3
"""Requirement D6."""
PASSING = frozenset({"rate_limited", "overloaded", "timeout", "connection", "server_error"})
"""The reasons of a ``SummariserError`` that may be gone a moment later."""
LONGEST_WAIT = 60.0
"""Seconds. Who asks for more is not waited for: the conversation goes on without."""

Sleep = Callable[[float], Awaitable[None]]
Backoff = Callable[[RetryCallState], float]

_GROWING = wait_exponential_jitter(multiplier=1, max=20)


def retrying(
    summariser: Summariser,
    tries: int = TRIES,
    *,
    backoff: Backoff = _GROWING,
    sleep: Sleep = asyncio.sleep,
) -> Summariser:
    """``summariser``, asked up to ``tries`` times in all; it keeps its name and what it can do."""
    if tries < 1:
        raise ValueError(f"tries is {tries}: it counts the first call, so 1 or more")
    if isinstance(summariser, RetryingSummariser):
        return summariser
    if isinstance(summariser, BoundedSummariser):
        return BoundedRetryingSummariser(summariser, summariser, tries, backoff, sleep)
    return RetryingSummariser(summariser, tries, backoff, sleep)


class RetryingSummariser:
    """A summariser that is asked again after a passing trouble.

    Only a ``SummariserError`` with one of the ``PASSING`` reasons is tried again, unless the other
    side asks to be left alone for longer than ``LONGEST_WAIT``. The draft and the last error count
    all calls.
    """

    def __init__(self, summariser: Summariser, tries: int, backoff: Backoff, sleep: Sleep) -> None:
        self._summariser = summariser
        self._tries = tries
        self._backoff = backoff
        self._sleep = sleep

    @property
    def name(self) -> str:
        """The summariser's own name."""
        return self._summariser.name

    @property
    def signs(self) -> bool:
        """Whether the summariser signs what it writes."""
        return signs(self._summariser)

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        """Ask, and ask again."""
        calls = 0
        again = AsyncRetrying(
            stop=stop_after_attempt(self._tries),
            retry=retry_if_exception(_passes),
            wait=self._wait,
            sleep=self._sleep,
            reraise=True,
        )
        async for attempt in again:
            with attempt:
                try:
                    draft = await self._summariser.summarise(request)
                except SummariserError as error:
                    calls += error.attempts
                    if calls == error.attempts:
                        raise
                    raise _after(calls, error) from None
                return draft.replaced(attempts=draft.attempts + calls) if calls else draft
        raise AssertionError("the last attempt returns or raises")

    def through(self, wrap: Callable[[Summariser], Summariser]) -> Summariser:
        """The same retries of what ``wrap`` makes of the summariser: it sees each call."""
        inner = wrap(self._summariser)
        return retrying(inner, self._tries, backoff=self._backoff, sleep=self._sleep)

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after if isinstance(error, SummariserError) else None
        return max(self._backoff(state), asked or 0.0)


class BoundedRetryingSummariser(RetryingSummariser):
    """The same for a summariser with a window of its own."""

    def __init__(
        self,
        summariser: Summariser,
        bounds: BoundedSummariser,
        tries: int,
        backoff: Backoff,
        sleep: Sleep,
    ) -> None:
        super().__init__(summariser, tries, backoff, sleep)
        self._bounds = bounds

    @property
    def window(self) -> int:
        """The summariser's own window."""
        return self._bounds.window

    def measure(self, request: SummaryRequest) -> int:
        """The size of a request, as the summariser measures it."""
        return self._bounds.measure(request)


def _passes(error: BaseException) -> bool:
    return (
        isinstance(error, SummariserError)
        and error.reason in PASSING
        and (error.retry_after or 0.0) <= LONGEST_WAIT
    )


def _after(calls: int, error: SummariserError) -> SummariserError:
    return SummariserError(
        error.reason,
        f"after {calls} attempts: {error}",
        attempts=calls,
        retry_after=error.retry_after,
    )

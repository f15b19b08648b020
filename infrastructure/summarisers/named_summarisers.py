"""Retry a summariser after temporary errors, and create the summarisers that settings can name."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, Self, TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from refold.application.errors import SummariserError
from refold.application.ports.summariser import (
    NotesDraft,
    NotesRequest,
    Summariser,
    SummaryDraft,
    SummaryRequest,
    TakeNotes,
)
from refold.application.ports.token_counter import TokenCounter
from refold.application.summaries.summariser_calls import Relay, relay
from refold.infrastructure.api_failures import is_temporary
from refold.infrastructure.settings.option_checks import warn_of_missing_key

from .anthropic import AnthropicSummariser
from .api_calls import TIMEOUT
from .server_compaction import ServerCompactionSummariser

TRIES = 3
"""Maximum number of attempts."""
LONGEST_WAIT = 60.0
"""Maximum seconds to wait before a retry. If the API asks for more, the summariser fails."""


class _Counted(Protocol):
    """A draft that has a number of attempts."""

    @property
    def attempts(self) -> int: ...

    def __replace__(self, *, attempts: int) -> Self: ...


Draft = TypeVar("Draft", bound=_Counted)
Sleep = Callable[[float], Awaitable[None]]
Backoff = Callable[[RetryCallState], float]

_GROWING = wait_exponential(max=20) + wait_random(0, 1)


def _as_it_is(summariser: Summariser) -> Summariser:
    return summariser


def retrying(
    summariser: Summariser,
    tries: int = TRIES,
    *,
    backoff: Backoff = _GROWING,
    sleep: Sleep = asyncio.sleep,
    each: Callable[[Summariser], Summariser] = _as_it_is,
) -> Summariser:
    """Return ``summariser`` with up to ``tries`` attempts. One that already retries is returned unchanged.

    ``each`` wraps the summariser for every single attempt, for example to observe each call.
    """
    if tries < 1:
        raise ValueError(f"tries is {tries}: it counts the first call, so 1 or more")
    if isinstance(summariser, Relay) and isinstance(summariser.ask, Retries):
        return relay(each(summariser.wrapped), summariser.ask, summariser.ask.for_notes)
    retries = Retries(tries, backoff, sleep)
    return relay(each(summariser), retries, retries.for_notes)


@dataclass(frozen=True, slots=True)
class Retries:
    """A wrapper that retries a summariser after temporary errors.

    It retries only after a ``SummariserError`` with one of the ``PASSING`` reasons, and not if the API
    asks to wait for longer than ``LONGEST_WAIT``. The draft and the last error count all calls.
    """

    tries: int
    backoff: Backoff
    sleep: Sleep

    async def __call__(self, behind: Summariser, request: SummaryRequest) -> SummaryDraft:
        """Call the summariser, and retry after temporary errors."""
        return await self._try(lambda: behind.summarise(request))

    async def for_notes(self, behind: TakeNotes, request: NotesRequest) -> NotesDraft:
        """Request notes, and retry after temporary errors."""
        return await self._try(lambda: behind(request))

    async def _try(self, ask: Callable[[], Awaitable[Draft]]) -> Draft:
        calls = 0
        again = AsyncRetrying(
            stop=stop_after_attempt(self.tries),
            retry=retry_if_exception(_passes),
            wait=self._wait,
            sleep=self.sleep,
            reraise=True,
        )
        async for attempt in again:
            with attempt:
                try:
                    draft = await ask()
                except SummariserError as error:
                    calls += error.attempts
                    if calls == error.attempts:
                        raise
                    raise _final_error(calls, error) from None
                return draft.__replace__(attempts=draft.attempts + calls) if calls else draft
        raise AssertionError("the last attempt returns or raises")

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after if isinstance(error, SummariserError) else None
        return max(self.backoff(state), asked or 0.0)


def _passes(error: BaseException) -> bool:
    return isinstance(error, SummariserError) and is_temporary(
        error.reason, error.retry_after, LONGEST_WAIT
    )


def _final_error(calls: int, error: SummariserError) -> SummariserError:
    return SummariserError(
        error.reason,
        f"after {calls} attempts: {error}",
        attempts=calls,
        retry_after=error.retry_after,
    )


def anthropic_summariser(
    name: Literal["anthropic", "anthropic-server"],
    counter: TokenCounter,
    *,
    model: str | None = None,
    answering: str | None = None,
    timeout: float = TIMEOUT,
) -> Summariser:
    """Return the summariser with this name, without retries (see ``retrying``).

    ``model`` writes the summaries. ``answering`` is the conversation's own model, which is used if no
    other is named or the other cannot be used.
    """
    made: AnthropicSummariser | ServerCompactionSummariser
    if name == "anthropic":
        made = AnthropicSummariser(model=model, timeout=timeout, counter=counter)
    else:
        made = ServerCompactionSummariser(model=model, timeout=timeout, counter=counter)
    return made.for_models(None, answering)


def warn_without_key(name: str) -> None:
    """Warn if a summariser of the Messages API is chosen without credentials."""
    if any(os.environ.get(variable) for variable in _CREDENTIALS) or _has_profile():
        return
    warn_of_missing_key(
        "summariser", name, "ANTHROPIC_API_KEY", "the built-in summariser writes every summary"
    )


def _has_profile() -> bool:
    """Return whether the SDK may find credentials in its own files."""
    folder = os.environ.get("ANTHROPIC_CONFIG_DIR")
    places = (Path(folder) if folder else Path.home() / ".config" / "anthropic",)
    return any(place.exists() for place in places)


_CREDENTIALS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_PROFILE",
    "ANTHROPIC_FEDERATION_RULE_ID",
    "ANTHROPIC_IDENTITY_TOKEN",
    "ANTHROPIC_IDENTITY_TOKEN_FILE",
)

"""Asks a summariser again, with growing delay, while its trouble is one that passes."""

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
from refold.application.ports.note_taker import NotesDraft, NotesRequest, TakeNotes
from refold.application.ports.summariser import (
    Summariser,
    SummaryDraft,
    SummaryRequest,
    TokenCounter,
)
from refold.application.summaries.summariser_calls import Relay, relayed
from refold.infrastructure.api_failures import is_temporary
from refold.infrastructure.settings.option_checks import warn_of_missing_key

from .anthropic import AnthropicSummariser
from .api_calls import TIMEOUT
from .server_compaction import ServerCompactionSummariser

TRIES = 3
"""Requirement D6."""
LONGEST_WAIT = 60.0
"""Seconds. Who asks for more is not waited for: the conversation goes on without."""


class _Counted(Protocol):
    """A draft that says how often it was asked for."""

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
    """``summariser``, asked up to ``tries`` times in all; one that tries again already does as before.

    ``each`` is asked in its place at every try: made of the summariser itself, to see each call.
    """
    if tries < 1:
        raise ValueError(f"tries is {tries}: it counts the first call, so 1 or more")
    if isinstance(summariser, Relay) and isinstance(summariser.ask, Retries):
        return relayed(each(summariser.behind), summariser.ask, summariser.ask.for_notes)
    retries = Retries(tries, backoff, sleep)
    return relayed(each(summariser), retries, retries.for_notes)


@dataclass(frozen=True, slots=True)
class Retries:
    """Asks a summariser again after a passing trouble.

    Only a ``SummariserError`` with one of the ``PASSING`` reasons is tried again, unless the other
    side asks to be left alone for longer than ``LONGEST_WAIT``. The draft and the last error count
    all calls.
    """

    tries: int
    backoff: Backoff
    sleep: Sleep

    async def __call__(self, behind: Summariser, request: SummaryRequest) -> SummaryDraft:
        """Ask, and ask again."""
        return await self._tried(lambda: behind.summarise(request))

    async def for_notes(self, behind: TakeNotes, request: NotesRequest) -> NotesDraft:
        """The same for notes."""
        return await self._tried(lambda: behind(request))

    async def _tried(self, ask: Callable[[], Awaitable[Draft]]) -> Draft:
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
                    raise _after(calls, error) from None
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


def _after(calls: int, error: SummariserError) -> SummariserError:
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
    """The summariser of this name; ``retrying`` makes it try again.

    ``model``: the one that is asked for summaries. ``answering``: the conversation's own: it is asked
    where no other is named, or the other cannot be used (requirement D9).
    """
    made: AnthropicSummariser | ServerCompactionSummariser
    if name == "anthropic":
        made = AnthropicSummariser(model=model, timeout=timeout, counter=counter)
    else:
        made = ServerCompactionSummariser(model=model, timeout=timeout, counter=counter)
    return made.for_models(None, answering)


def warn_without_key(name: str) -> None:
    """Warn where a summariser of the Messages API was chosen and nothing says how to authenticate."""
    if any(os.environ.get(variable) for variable in _CREDENTIALS) or _has_profile():
        return
    warn_of_missing_key(
        "summariser", name, "ANTHROPIC_API_KEY", "the built-in summariser writes every summary"
    )


def _has_profile() -> bool:
    """Whether the SDK may find credentials in files of its own."""
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

"""A summariser that asks a model through the Anthropic Messages API."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from refold.application.ports import SummaryDraft, SummaryRequest
from refold.infrastructure.summarisers.api_failures import (
    Failure,
    final_error,
    refuse_unusable_key,
    translate,
    without_secrets,
)
from refold.infrastructure.summarisers.prompt import (
    SECTIONS,
    Prompt,
    build_prompt,
    missing_sections,
    prompt_fingerprint,
)
from refold.infrastructure.summarisers.quoting import RESULT_LIMIT

if TYPE_CHECKING:
    import anthropic

DEFAULT_MODEL = "claude-haiku-5-5"
"""The newest small model: window 1,000,000 tokens, output up to 128,000 (public model table)."""

# Newer models think before they write unless told otherwise, each in its own way, and what they
# think counts as output. So room for it is added instead of a setting that half of them refuse.
_THINKING_ROOM = 8_192

Sleep = Callable[[float], Awaitable[None]]
Backoff = Callable[[RetryCallState], float]


class _Block(BaseModel):
    type: str
    text: str = ""


class _Answer(BaseModel):
    """What is read of an answer; the SDK builds its own classes without checking the shape."""

    content: list[_Block]
    model: str | None = None
    stop_reason: str | None = None

    def text(self) -> str:
        return "".join(b.text for b in self.content if b.type == "text").strip()


class AnthropicSummariser:
    """Writes summaries with a model of the Anthropic Messages API.

    ``model``: may differ from the conversation's (requirement D9). ``client``: yours to configure
    and close; without one, a client is made for each summary from the environment, so that the
    summariser can be used from several event loops. ``max_attempts``: calls in all for one summary
    (requirement D6: 3); the SDK's own retries are switched off. ``timeout``: seconds for one call.
    ``result_limit``: characters kept of one tool result in the prompt. ``backoff`` and ``sleep``:
    how long to wait between calls, and how.

    Retried: overloaded, rate limited, 5xx, timeout, connection. A truncated answer is not: the room
    is already half again the limit, so a longer text would be refused for its length.
    """

    def __init__(
        self,
        *,
        model: str = DEFAULT_MODEL,
        client: "anthropic.AsyncAnthropic | None" = None,
        max_attempts: int = 3,
        timeout: float = 300.0,
        result_limit: int = RESULT_LIMIT,
        backoff: Backoff | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        if not model.strip():
            raise ValueError("model is blank: name one, or leave it out for the default")
        if max_attempts < 1:
            raise ValueError(
                f"max_attempts is {max_attempts}: it counts the first call, so 1 or more"
            )
        if not timeout > 0:
            raise ValueError(f"timeout is {timeout}: it must be above 0 seconds")
        self._model = model
        self._client = client
        self._max_attempts = max_attempts
        self._timeout = timeout
        self._result_limit = result_limit
        self._backoff = backoff or wait_random_exponential(multiplier=1, max=20)
        self._sleep = sleep

    @property
    def name(self) -> str:
        """``anthropic``."""
        return "anthropic"

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self._model

    @property
    def prompt_fingerprint(self) -> str:
        """Names the prompt's wording; see ``prompt.prompt_fingerprint``."""
        return prompt_fingerprint(self._result_limit)

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        """Ask for a summary; only a complete one is returned, so ``complete`` is always True.

        Raises ``SummariserError`` with one of these reasons: authentication, bad_request,
        too_large, truncated, refused, empty, bad_answer, rate_limited, overloaded, server_error,
        timeout, connection. Cancellation passes through.
        """
        prompt = build_prompt(request, self._result_limit)
        room = output_room(request.limit_tokens)
        try:
            async with self._connected() as client:
                answer = await self._ask_until_answered(client, prompt, room)
        except Failure as failure:
            # Without a cause: the SDK's error holds the request, and with it the key.
            raise final_error(failure) from None
        return SummaryDraft(
            text=answer.text(),
            complete=True,
            model=answer.model or self._model,
            prompt_fingerprint=self.prompt_fingerprint,
            stop_reason=answer.stop_reason,
        )

    async def _ask_until_answered(
        self, client: "anthropic.AsyncAnthropic", prompt: Prompt, room: int
    ) -> _Answer:
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self._max_attempts),
            retry=retry_if_exception(lambda error: isinstance(error, Failure) and error.retried),
            wait=self._wait,
            sleep=self._sleep,
            reraise=True,
        )
        async for attempt in retrying:
            with attempt:
                try:
                    return await self._ask(client, prompt, room)
                except Failure as failure:
                    failure.attempts = attempt.retry_state.attempt_number
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after if isinstance(error, Failure) else None
        return max(self._backoff(state), asked or 0.0)

    @asynccontextmanager
    async def _connected(self) -> "AsyncGenerator[anthropic.AsyncAnthropic, None]":
        if self._client is not None:
            yield self._client.with_options(max_retries=0)
            return
        # The import takes seconds; the conversation's own turn must not wait for it.
        await asyncio.to_thread(_import_sdk)
        import anthropic

        try:
            client = anthropic.AsyncAnthropic(max_retries=0)
        except (anthropic.AnthropicError, OSError, ValueError, TypeError) as error:
            raise Failure("authentication", f"no usable credentials: {error}") from None
        async with client:
            yield client

    async def _ask(self, client: "anthropic.AsyncAnthropic", prompt: Prompt, room: int) -> _Answer:
        import anthropic

        refuse_unusable_key(client)
        try:
            # The SDK's timeout is for each read; this one bounds the whole call.
            async with asyncio.timeout(self._timeout):
                response = await client.messages.with_raw_response.create(
                    model=self._model,
                    max_tokens=room,
                    system=prompt.system,
                    messages=[{"role": "user", "content": prompt.user}],
                    timeout=self._timeout,
                )
            body = response.http_response.content
        except (anthropic.AnthropicError, OSError, ValueError, TypeError) as error:
            failure = translate(error)
            failure.detail = without_secrets(failure.detail, client)
            raise failure from None
        return _accepted(body)


def output_room(limit_tokens: int) -> int:
    """The ``max_tokens`` of a call: half again the limit, and room for thinking.

    Half again, because the limit is measured by a local estimate and models count the same text
    up to a third higher.
    """
    return limit_tokens * 3 // 2 + _THINKING_ROOM


def _import_sdk() -> None:
    import anthropic  # noqa: F401  # pyright: ignore[reportUnusedImport]


def _accepted(body: bytes) -> _Answer:
    """The answer, if it is a complete summary."""
    try:
        answer = _Answer.model_validate_json(body)
    except ValidationError as error:
        count = error.error_count()
        raise Failure("bad_answer", f"not a Messages API answer ({count} faults)") from None
    match answer.stop_reason:
        case "end_turn" | "stop_sequence":
            pass
        case "max_tokens":
            raise Failure("truncated", "the answer ran into max_tokens")
        case "model_context_window_exceeded":
            raise Failure("too_large", "the model's window was full before the answer ended")
        case "refusal":
            raise Failure("refused", "the model declined to answer")
        case other:
            raise Failure("bad_answer", f"the model stopped for {other!r} instead of ending")
    text = answer.text()
    if not text:
        raise Failure("empty", "the model answered without a text")
    missing = missing_sections(text)
    if len(missing) * 2 > len(SECTIONS):
        raise Failure("bad_answer", f"sections missing in the answer: {', '.join(missing)}")
    return answer

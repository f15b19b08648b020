"""Calls of the Messages API: the client, the time-out, and answers that are read as they came."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel, ValidationError

from refold.application.errors import SummariserError
from refold.application.models import rules_for
from refold.infrastructure.summarisers.api_failures import failed, refuse_unusable_key, translate

if TYPE_CHECKING:
    import anthropic

# Newer models think before they write unless told otherwise, each in its own way, and what they
# think counts as output. So room for it is added instead of a setting that half of them refuse.
_THINKING_ROOM = 8_192

TIMEOUT = 180.0
"""Seconds for one call: three of them end before a compaction counts as abandoned."""


def window_of(model: str, window: int | None) -> int:
    """The window of a summariser's model in tokens: as given, or what is known for the model.

    Raises:
        ValueError: the model is blank, or the window is no size.
    """
    if not model.strip():
        raise ValueError("model is blank: name one, or leave it out for the default")
    if window is not None and window < 1:
        raise ValueError(f"window is {window}: it is a number of tokens, or left out")
    return window or rules_for(model).window


def own_name(model: str | None) -> str | None:
    """Return a model of Anthropic by the name that the API knows; None for any other."""
    name = model.rpartition("/")[2] if model else ""
    return name if name.lower().startswith("claude-") else None


class Answer(BaseModel):
    """What is read of an answer; the SDK builds its own classes without checking the shape."""

    content: list[dict[str, Any]]
    model: str | None = None
    stop_reason: str | None = None

    def text(self) -> str:
        """All its text blocks together."""
        texts = (block.get("text") for block in self.content if block.get("type") == "text")
        return "".join(text for text in texts if isinstance(text, str)).strip()


class _Body(Protocol):
    @property
    def content(self) -> bytes: ...


class RawResponse(Protocol):
    """What is needed of the SDK's raw responses."""

    @property
    def http_response(self) -> _Body:
        """As the transport gave it."""
        ...


class MessagesApi:
    """A client of the Messages API for one summariser.

    ``client``: the user's own to configure and close; without one, a client is made for each call from
    the environment, so that a summariser can be used from several event loops. ``timeout``: seconds for
    one call. The SDK's own retries are switched off: see ``retrying``.
    """

    def __init__(self, client: "anthropic.AsyncAnthropic | None", timeout: float) -> None:
        if not timeout > 0:
            raise ValueError(f"timeout is {timeout}: it must be above 0 seconds")
        self._client = client
        self.timeout = timeout

    async def answer(
        self, ask: Callable[["anthropic.AsyncAnthropic"], Awaitable[RawResponse]]
    ) -> Answer:
        """The answer to one call.

        Raises ``SummariserError``: without a cause, since the SDK's error holds the request, and with
        it the key. Cancellation passes through.
        """
        async with self._connected() as client:
            body = await self._body(client, ask)
        try:
            return Answer.model_validate_json(body)
        except ValidationError as error:
            count = error.error_count()
            raise failed("bad_answer", f"not a Messages API answer ({count} faults)") from None

    async def _body(
        self,
        client: "anthropic.AsyncAnthropic",
        ask: Callable[["anthropic.AsyncAnthropic"], Awaitable[RawResponse]],
    ) -> bytes:
        import anthropic

        refuse_unusable_key(client)
        try:
            # The SDK's timeout is for each read; this one bounds the whole call.
            async with asyncio.timeout(self.timeout):
                return (await ask(client)).http_response.content
        except (anthropic.AnthropicError, OSError, ValueError, TypeError) as error:
            raise translate(error, client) from None

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
            raise failed("authentication", f"no usable credentials: {error}") from None
        async with client:
            yield client


def stopped(reason: str | None) -> SummariserError:
    """The error behind a stop reason with which no summary ends."""
    match reason:
        case "max_tokens":
            return failed("truncated", "the answer ran into max_tokens")
        case "model_context_window_exceeded":
            return failed("too_large", "the model's window was full before the answer ended")
        case "refusal":
            return failed("refused", "the model declined to answer")
        case other:
            return failed("bad_answer", f"the model stopped for {other!r} instead of ending")


def output_room(limit_tokens: int, window: int | None = None) -> int:
    """The ``max_tokens`` of a call: half again the limit, and room for thinking; less in a small window.

    Half again, because the limit is measured by a local estimate and models count the same text
    up to a third higher.
    """
    thinking = _THINKING_ROOM if window is None else min(_THINKING_ROOM, window // 4)
    return limit_tokens * 3 // 2 + thinking


def _import_sdk() -> None:
    import anthropic  # noqa: F401  # pyright: ignore[reportUnusedImport]

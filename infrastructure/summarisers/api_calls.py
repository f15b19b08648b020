"""Calls of the Messages API, and their errors: reason, time to wait and advice."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel, ValidationError

from refold.application.conversation.models import rules_for
from refold.application.errors import SummariserError
from refold.infrastructure.api_failures import (
    ADVICE,
    describe_error,
    is_sendable,
    reason_of,
    redact,
    requested_delay,
)

if TYPE_CHECKING:
    import anthropic


_NEXT = {
    **ADVICE,
    "authentication": "Set ANTHROPIC_API_KEY to a valid key, or pass client=.",
    "permission": "Use a model that the key may use, or name one as fallback_model=.",
    "not_found": "Check the model's name and the base URL, or name a fallback_model=.",
    "bad_request": "Check the model's name and the settings of the summariser.",
    "unsupported": "Use a model that compacts on the server, or the summariser 'anthropic'.",
    "bad_block": (
        "The compaction block of the conversation is no longer accepted: revert that compaction "
        "with revert_compaction(), or compact with another summariser, which reads its text."
    ),
    "too_large": "Summarise fewer messages at once, or use a model with a larger window.",
    "truncated": "Raise the limit on the summary's length, or summarise fewer messages at once.",
    "refused": "Try another model; the history is unchanged.",
    "empty": "Try again or try another model; the history is unchanged.",
    "bad_answer": "Check the base URL and any proxy, or try another model.",
    "timeout": "Try again, raise timeout=, or summarise fewer messages at once.",
}

# Reasons of 400 errors, by ``error.details.error_code``.
_CODES = {
    "compaction_signature_invalid": "bad_block",
    "compaction_content_mismatch": "bad_block",
    "compaction_tool_changes_mismatch": "bad_block",
    "compaction_block_ambiguous": "bad_block",
    "compaction_block_misplaced": "bad_block",
    "compaction_too_many_tool_references": "too_large",
}


def error_for(reason: str, detail: str, *, retry_after: float | None = None) -> SummariserError:
    """Return the error of the port after one call: the reason, the server's message and advice."""
    message = f"no summary: {detail}. {_NEXT[reason]}"
    return SummariserError(reason, message, retry_after=retry_after)


def translate(error: Exception, client: "anthropic.AsyncAnthropic") -> SummariserError:
    """Convert an exception of the SDK or its transport to an error without credentials."""
    import anthropic

    match error:
        case anthropic.APIStatusError():
            return _translate_status(error, client)
        case anthropic.APITimeoutError() | TimeoutError():
            return error_for("timeout", "no complete answer in time")
        case anthropic.APIConnectionError():
            said = without_secrets(describe_error(error.__cause__ or error), client)
            return error_for("connection", f"no connection: {said}")
        case anthropic.APIResponseValidationError():
            return error_for("bad_answer", without_secrets(str(error), client))
        case TypeError() if "authentication" in str(error):
            return error_for("authentication", "no API key was found")
        case OSError():
            return error_for("connection", without_secrets(describe_error(error), client))
        case _:
            return error_for("bad_request", without_secrets(describe_error(error), client))


def _translate_status(
    error: "anthropic.APIStatusError", client: "anthropic.AsyncAnthropic"
) -> SummariserError:
    kind, said = _error_message(error.body)
    status = error.status_code
    detail = f"HTTP {status} {kind}: {said}" if said else f"HTTP {status}"
    return error_for(
        _bad_request(error.body, said) if status == 400 else reason_of(status, kind),
        without_secrets(detail, client),
        retry_after=requested_delay(error.response.headers),
    )


def _bad_request(body: object, said: str) -> str:
    match body:
        case {"error": {"details": {"error_code": str(code)}}} if code in _CODES:
            return _CODES[code]
        case _ if "too long" in said.lower():
            # The API has no error code for a prompt that exceeds the window.
            return "too_large"
        case _ if "compaction" in said.lower():
            # Nor one for a model or platform without compaction, which rejects the parameter as
            # unknown.
            return "unsupported"
        case _:
            return "bad_request"


def _error_message(body: object) -> tuple[str, str]:
    """Return type and message of an error response. Missing ones are empty."""
    match body:
        case {"error": {"type": str(kind), "message": str(said)}}:
            return kind, said[:1_000]
        case _:
            return "", ""


def refuse_unusable_key(client: "anthropic.AsyncAnthropic") -> None:
    """Raise if a key cannot be sent at all, for example because it ends with a line break.

    The error of the transport would contain the key.
    """
    for secret in (client.api_key, client.auth_token):
        if secret and not is_sendable(secret):
            detail = "the API key contains white space or characters that cannot be sent"
            raise error_for("authentication", detail)


def without_secrets(text: str, client: "anthropic.AsyncAnthropic") -> str:
    """Return the text without the client's credentials, which a server may have echoed."""
    return redact(text, (client.api_key, client.auth_token))


# Newer models think before they answer unless configured otherwise, each in its own way, and
# thinking counts as output. So extra room is reserved instead of a setting that half of them
# reject.
_THINKING_ROOM = 8_192

TIMEOUT = 180.0
"""Seconds for one call. Three calls finish before a compaction counts as abandoned."""


def window_of(model: str, window: int | None) -> int:
    """Return the window of a model in tokens: the given one, or the known one.

    Raises:
        ValueError: the model is blank, or the window is not a valid size.
    """
    if not model.strip():
        raise ValueError("model is blank: name one, or leave it out for the default")
    if window is not None and window < 1:
        raise ValueError(f"window is {window}: give a number of tokens, or leave it out")
    return window or rules_for(model).window


def own_name(model: str | None) -> str | None:
    """Return the API name of a model of Anthropic, or None for another model."""
    name = model.rpartition("/")[2] if model else ""
    return name if name.lower().startswith("claude-") else None


class Answer(BaseModel):
    """The fields that are read from an answer. The SDK builds its own classes without validation."""

    content: list[dict[str, Any]]
    model: str | None = None
    stop_reason: str | None = None

    def text(self) -> str:
        """Return the text of all text blocks, joined."""
        texts = (block.get("text") for block in self.content if block.get("type") == "text")
        return "".join(text for text in texts if isinstance(text, str)).strip()


class _Body(Protocol):
    @property
    def content(self) -> bytes: ...


class RawResponse(Protocol):
    """The part of the SDK's raw responses that is used."""

    @property
    def http_response(self) -> _Body:
        """Response of the transport."""
        ...


class MessagesApi:
    """A client of the Messages API for one summariser.

    ``client`` is configured and closed by the caller. Without one, a client is created for each call
    from the environment, so that several event loops can share a summariser. ``timeout`` is the number
    of seconds for one call. The SDK's own retries are disabled; see ``retrying``.
    """

    def __init__(self, client: "anthropic.AsyncAnthropic | None", timeout: float) -> None:
        if not timeout > 0:
            raise ValueError(f"timeout is {timeout}: it must be above 0 seconds")
        self._client = client
        self.timeout = timeout

    async def answer(
        self, ask: Callable[["anthropic.AsyncAnthropic"], Awaitable[RawResponse]]
    ) -> Answer:
        """Make one call and return its answer.

        Raises ``SummariserError`` without a cause, because the SDK's error contains the request and
        with it the key. Cancellation is not caught.
        """
        async with self._connect() as client:
            body = await self._body(client, ask)
        try:
            return Answer.model_validate_json(body)
        except ValidationError as error:
            count = error.error_count()
            raise error_for("bad_answer", f"not a Messages API answer ({count} faults)") from None

    async def _body(
        self,
        client: "anthropic.AsyncAnthropic",
        ask: Callable[["anthropic.AsyncAnthropic"], Awaitable[RawResponse]],
    ) -> bytes:
        import anthropic

        refuse_unusable_key(client)
        try:
            # The SDK's timeout applies to each read; this one limits the whole call.
            async with asyncio.timeout(self.timeout):
                return (await ask(client)).http_response.content
        except (anthropic.AnthropicError, OSError, ValueError, TypeError) as error:
            raise translate(error, client) from None

    @asynccontextmanager
    async def _connect(self) -> "AsyncGenerator[anthropic.AsyncAnthropic, None]":
        if self._client is not None:
            yield self._client.with_options(max_retries=0)
            return
        # The import takes seconds, which the conversation's own turn must not wait for.
        await asyncio.to_thread(_import_sdk)
        import anthropic

        try:
            client = anthropic.AsyncAnthropic(max_retries=0)
        except (anthropic.AnthropicError, OSError, ValueError, TypeError) as error:
            raise error_for("authentication", f"no usable credentials: {error}") from None
        async with client:
            yield client


def error_for_stop(reason: str | None) -> SummariserError:
    """Return the error for a stop reason of an incomplete summary."""
    match reason:
        case "max_tokens":
            return error_for("truncated", "the answer reached max_tokens")
        case "model_context_window_exceeded":
            return error_for("too_large", "the model's window was full before the answer ended")
        case "refusal":
            return error_for("refused", "the model declined to answer")
        case other:
            return error_for("bad_answer", f"the model stopped for {other!r} instead of ending")


def output_room(limit_tokens: int, window: int | None = None) -> int:
    """Return ``max_tokens``: 1.5 times the limit plus room for thinking, or less in a small window.

    The factor is needed because the limit is a local estimate, and models count the same text up to a third
    higher.
    """
    thinking = _THINKING_ROOM if window is None else min(_THINKING_ROOM, window // 4)
    return limit_tokens * 3 // 2 + thinking


def _import_sdk() -> None:
    import anthropic  # noqa: F401  # pyright: ignore[reportUnusedImport]

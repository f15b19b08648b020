"""What can go wrong in a call of the Messages API: why, whether to call again, what to do."""

import math
from typing import TYPE_CHECKING

from refold.application.errors import SummariserError

if TYPE_CHECKING:
    import anthropic

LONGEST_WAIT = 60.0
"""Seconds. A server that asks for more is not waited for: the conversation goes on without."""

_NEXT = {
    "authentication": "Set ANTHROPIC_API_KEY to a valid key, or pass client=.",
    "bad_request": "Check the model's name and the settings of the summariser.",
    "too_large": "Summarise fewer messages at once, or use a model with a larger window.",
    "truncated": "Raise the limit on the summary's length, or summarise fewer messages at once.",
    "refused": "Try another model; the history is unchanged.",
    "empty": "Try again or try another model; the history is unchanged.",
    "bad_answer": "Check the base URL and any proxy, or try another model.",
    "rate_limited": "Try again later, or raise the account's limit.",
    "timeout": "Try again, raise timeout=, or summarise fewer messages at once.",
    "connection": "Check the network and the base URL, then try again.",
    "overloaded": "Try again later.",
    "server_error": "Try again later.",
}
_RETRIED = frozenset({"overloaded", "rate_limited", "server_error", "timeout", "connection"})


class Failure(Exception):
    """One attempt's failure, on its way to the end of the retries; it never leaves the adapter."""

    def __init__(
        self, reason: str, detail: str, *, final: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail
        self.attempts = 1
        self.retry_after = retry_after
        too_long = retry_after is not None and retry_after > LONGEST_WAIT
        self.retried = reason in _RETRIED and not final and not too_long


def translate(error: Exception) -> Failure:
    """The failure behind an exception of the SDK or of what it stands on."""
    import anthropic

    match error:
        case anthropic.APIStatusError():
            return _of_status(error)
        case anthropic.APITimeoutError() | TimeoutError():
            return Failure("timeout", "no complete answer in time")
        case anthropic.APIConnectionError():
            return Failure("connection", f"no connection: {_plain(error.__cause__ or error)}")
        case anthropic.APIResponseValidationError():
            return Failure("bad_answer", str(error))
        case TypeError() if "authentication" in str(error):
            return Failure("authentication", "no API key was found")
        case OSError():
            return Failure("connection", _plain(error))
        case _:
            return Failure("bad_request", _plain(error))


def _plain(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _of_status(error: "anthropic.APIStatusError") -> Failure:
    kind, said = _told(error.body)
    status = error.status_code
    match status, kind:
        case 401 | 402 | 403, _:
            reason = "authentication"
        case 413, _:
            reason = "too_large"
        case 400, _ if "too long" in said.lower():
            # The API has no code of its own for a prompt that exceeds the window.
            reason = "too_large"
        case 429, _:
            reason = "rate_limited"
        case (529, _) | (_, "overloaded_error"):
            reason = "overloaded"
        case 408 | 504, _:
            reason = "timeout"
        case _ if status >= 500 or status == 409:
            reason = "server_error"
        case _:
            reason = "bad_request"
    headers = error.response.headers
    return Failure(
        reason,
        f"HTTP {status} {kind}: {said}" if said else f"HTTP {status}",
        final=headers.get("x-should-retry") == "false",
        retry_after=_seconds(headers.get("retry-after")),
    )


def _told(body: object) -> tuple[str, str]:
    """Kind and message of an error body, empty where it has none."""
    match body:
        case {"error": {"type": str(kind), "message": str(said)}}:
            return kind, said[:1_000]
        case _:
            return "", ""


def _seconds(header: str | None) -> float | None:
    try:
        value = float(header or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def refuse_unusable_key(client: "anthropic.AsyncAnthropic") -> None:
    """Raise if a key cannot be sent at all, which a line break at its end does to it.

    The transport would quote the key in its error.
    """
    for secret in (client.api_key, client.auth_token):
        if secret and not (secret.isascii() and secret.isprintable() and secret == secret.strip()):
            detail = "the API key holds white space or characters that cannot be sent"
            raise Failure("authentication", detail)


def without_secrets(text: str, client: "anthropic.AsyncAnthropic") -> str:
    """The text without the client's credentials, should a server have echoed them."""
    for secret in (client.api_key, client.auth_token):
        if secret and secret.strip():
            text = text.replace(secret, "[redacted]")
    return text


def final_error(failure: Failure) -> SummariserError:
    """The error of the port: the reason, how many calls were made, and what to do next."""
    tries = "1 attempt" if failure.attempts == 1 else f"{failure.attempts} attempts"
    message = f"no summary after {tries}: {failure.detail}. {_NEXT[failure.reason]}"
    return SummariserError(failure.reason, message, attempts=failure.attempts)

"""What can go wrong in a call of the Messages API: why, how long to wait, what to do."""

import math
from typing import TYPE_CHECKING

from refold.application.errors import SummariserError

if TYPE_CHECKING:
    import anthropic

_NEXT = {
    "authentication": "Set ANTHROPIC_API_KEY to a valid key, or pass client=.",
    "permission": "Use a model that the key may use, or name one as fallback_model=.",
    "not_found": "Check the model's name and the base URL, or name a fallback_model=.",
    "bad_request": "Check the model's name and the settings of the summariser.",
    "unsupported": "Use a model that compacts on the server, or the summariser 'anthropic'.",
    "bad_block": (
        "The compaction block of the conversation is not accepted (any more): undo that compaction "
        "with revert_compaction(), or compact with another summariser, which reads its text."
    ),
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

# Of 400 errors, by ``error.details.error_code``.
_CODES = {
    "compaction_signature_invalid": "bad_block",
    "compaction_content_mismatch": "bad_block",
    "compaction_tool_changes_mismatch": "bad_block",
    "compaction_block_ambiguous": "bad_block",
    "compaction_block_misplaced": "bad_block",
    "compaction_too_many_tool_references": "too_large",
}


def failed(reason: str, detail: str, *, retry_after: float | None = None) -> SummariserError:
    """The error of the port after one call: the reason, what was said, and what to do next."""
    message = f"no summary: {detail}. {_NEXT[reason]}"
    return SummariserError(reason, message, retry_after=retry_after)


def translate(error: Exception, client: "anthropic.AsyncAnthropic") -> SummariserError:
    """The failure behind an exception of the SDK or of what it stands on, without credentials."""
    import anthropic

    match error:
        case anthropic.APIStatusError():
            return _of_status(error, client)
        case anthropic.APITimeoutError() | TimeoutError():
            return failed("timeout", "no complete answer in time")
        case anthropic.APIConnectionError():
            plain = _plain(error.__cause__ or error)
            return failed("connection", f"no connection: {without_secrets(plain, client)}")
        case anthropic.APIResponseValidationError():
            return failed("bad_answer", without_secrets(str(error), client))
        case TypeError() if "authentication" in str(error):
            return failed("authentication", "no API key was found")
        case OSError():
            return failed("connection", without_secrets(_plain(error), client))
        case _:
            return failed("bad_request", without_secrets(_plain(error), client))


def _plain(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _of_status(
    error: "anthropic.APIStatusError", client: "anthropic.AsyncAnthropic"
) -> SummariserError:
    kind, said = _told(error.body)
    status = error.status_code
    detail = f"HTTP {status} {kind}: {said}" if said else f"HTTP {status}"
    headers = error.response.headers
    final = headers.get("x-should-retry") == "false"
    return failed(
        _bad_request(error.body, said) if status == 400 else _reason(status, kind),
        without_secrets(detail, client),
        retry_after=math.inf if final else _seconds(headers.get("retry-after")),
    )


def _reason(status: int, kind: str) -> str:
    match status, kind:
        case 401 | 402, _:
            return "authentication"
        case 403, _:
            return "permission"
        case 404, _:
            return "not_found"
        case 413, _:
            return "too_large"
        case 429, _:
            return "rate_limited"
        case (529, _) | (_, "overloaded_error"):
            return "overloaded"
        case 408 | 504, _:
            return "timeout"
        case _ if status >= 500 or status == 409:
            return "server_error"
        case _:
            return "bad_request"


def _bad_request(body: object, said: str) -> str:
    match body:
        case {"error": {"details": {"error_code": str(code)}}} if code in _CODES:
            return _CODES[code]
        case _ if "too long" in said.lower():
            # The API has no code of its own for a prompt that exceeds the window.
            return "too_large"
        case _ if "compaction" in said.lower():
            # Nor for a model or platform without compaction: it takes the parameter for an unknown one.
            return "unsupported"
        case _:
            return "bad_request"


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
            raise failed("authentication", detail)


def without_secrets(text: str, client: "anthropic.AsyncAnthropic") -> str:
    """The text without the client's credentials, should a server have echoed them."""
    for secret in (client.api_key, client.auth_token):
        if secret and secret.strip():
            text = text.replace(secret, "[redacted]")
    return text

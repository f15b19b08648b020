"""Classify failed HTTP calls: the reason, whether and when to retry, and advice for the user."""

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType

TEMPORARY = frozenset({"rate_limited", "overloaded", "timeout", "connection", "server_error"})
"""Reasons that may disappear within seconds."""

ADVICE: Mapping[str, str] = MappingProxyType(
    {
        "rate_limited": "Try again later, or raise the account's limit.",
        "overloaded": "Try again later.",
        "server_error": "Try again later.",
        "timeout": "Try again.",
        "connection": "Check the network and the base URL, then try again.",
    }
)
"""Advice for each temporary reason. Callers add the reasons that their own settings can fix."""

_STATUS = {
    401: "authentication",
    402: "authentication",
    403: "permission",
    404: "not_found",
    405: "not_found",
    408: "timeout",
    409: "server_error",
    413: "too_large",
    429: "rate_limited",
    504: "timeout",
    529: "overloaded",
}


def reason_of(status: int, kind: str = "") -> str:
    """Return the reason for a failed call.

    ``kind`` is the error type in the body of the response.
    """
    known = _STATUS.get(status)
    if kind == "overloaded_error" and known in (None, "timeout", "server_error"):
        return "overloaded"
    if known is not None:
        return known
    if status >= 500:
        return "server_error"
    return "bad_request" if status >= 400 else "bad_answer"


def is_temporary(reason: str, retry_after: float | None, longest: float) -> bool:
    """Return whether a retry may succeed after at most ``longest`` seconds."""
    return reason in TEMPORARY and (retry_after or 0.0) <= longest


def requested_delay(headers: Mapping[str, str]) -> float | None:
    """Return the number of seconds that a response asks the client to wait.

    Return infinity if the response forbids a retry, and None if it has no usable hint.
    """
    if headers.get("x-should-retry") == "false":
        return math.inf
    try:
        seconds = float(headers.get("retry-after") or "")
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def is_sendable(key: str) -> bool:
    """Return whether a key can be sent in a header.

    The HTTP library quotes an invalid key in its error message.
    """
    return key.isascii() and key.isprintable() and key == key.strip()


def redact(text: str, secrets: Iterable[str | None]) -> str:
    """Return the text without these secrets. A server may have echoed them."""
    for secret in secrets:
        if secret and secret.strip():
            text = text.replace(secret, "[redacted]")
    return text


def describe_error(error: BaseException) -> str:
    """Return the type and the message of an error."""
    return f"{type(error).__name__}: {error}".rstrip(": ")

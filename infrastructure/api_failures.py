"""Failures of calls over HTTP: the reason, whether asking again helps, when, and the advice."""

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType

PASSING = frozenset({"rate_limited", "overloaded", "timeout", "connection", "server_error"})
"""The reasons that may be gone a moment later."""

ADVICE: Mapping[str, str] = MappingProxyType(
    {
        "rate_limited": "Try again later, or raise the account's limit.",
        "overloaded": "Try again later.",
        "server_error": "Try again later.",
        "timeout": "Try again.",
        "connection": "Check the network and the base URL, then try again.",
    }
)
"""What to do for each passing reason; callers add the reasons that their own settings mend."""

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
    """Return the reason behind the status of an answer; ``kind`` is the type of error in its body."""
    known = _STATUS.get(status)
    if kind == "overloaded_error" and known in (None, "timeout", "server_error"):
        return "overloaded"
    if known is not None:
        return known
    if status >= 500:
        return "server_error"
    return "bad_request" if status >= 400 else "bad_answer"


def passes(reason: str, retry_after: float | None, longest: float) -> bool:
    """Whether asking again may help after ``longest`` seconds at most."""
    return reason in PASSING and (retry_after or 0.0) <= longest


def asked_delay(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that an answer asks to wait: infinite where asking again is refused.

    None if it asks for nothing that can be understood.
    """
    if headers.get("x-should-retry") == "false":
        return math.inf
    try:
        seconds = float(headers.get("retry-after") or "")
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def is_sendable(key: str) -> bool:
    """Whether a key can stand in a header; the transport quotes one that cannot in its error."""
    return key.isascii() and key.isprintable() and key == key.strip()


def redacted(text: str, secrets: Iterable[str | None]) -> str:
    """Return the text without these secrets, which a server may have echoed."""
    for secret in secrets:
        if secret and secret.strip():
            text = text.replace(secret, "[redacted]")
    return text


def plain(error: BaseException) -> str:
    """Return the type of an error and what it says."""
    return f"{type(error).__name__}: {error}".rstrip(": ")

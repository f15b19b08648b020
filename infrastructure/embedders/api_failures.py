"""What can go wrong in a call of an endpoint for vectors: why, whether it passes, what to do."""

import json
import math
from collections.abc import Mapping, Sequence

from refold.application.errors import EmbedderError

PASSING = frozenset({"rate_limited", "overloaded", "timeout", "connection", "server_error"})
"""The reasons that may be gone a moment later."""
LONGEST_WAIT = 20.0
"""Seconds. Who asks to be left alone for longer is not asked again."""

_NEXT = {
    "authentication": "Set embedder_key (REFOLD_EMBEDDER_KEY) to a valid key.",
    "permission": "Set embedder_model to a model that the key may use.",
    "not_found": "Check embedder_url and embedder_model.",
    "bad_request": "Check embedder_model: it may be no model for embeddings.",
    "too_large": "Use a model that takes longer texts.",
    "bad_answer": "Check embedder_url, embedder_model and any proxy.",
    "rate_limited": "Try again later, or raise the account's limit.",
    "timeout": "Try again, or raise embedder_timeout.",
    "connection": "Check the network and embedder_url, then try again.",
    "overloaded": "Try again later.",
    "server_error": "Try again later.",
}
_TOO_LARGE = (
    "too long",
    "too large",
    "maximum context",
    "context length",
    "max_tokens",
    "too many tokens",
)
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


class EndpointFailed(EmbedderError):
    """An ``EmbedderError`` that knows how many seconds the other side asks to be left alone."""

    retry_after: float | None = None


def failed(reason: str, detail: str) -> EndpointFailed:
    """The error of the port: the reason, what was said, and what to do next."""
    return EndpointFailed(reason, f"no vectors: {detail}. {_NEXT[reason]}")


def of_transport(error: Exception, secrets: Sequence[str]) -> EndpointFailed:
    """No whole answer came."""
    import httpx2

    if isinstance(error, httpx2.TimeoutException | TimeoutError):
        return failed("timeout", "no complete answer in time")
    plain = _without(f"{type(error).__name__}: {error}".rstrip(": "), secrets)
    if isinstance(error, httpx2.InvalidURL | httpx2.UnsupportedProtocol):
        return failed("not_found", plain)
    if isinstance(error, httpx2.DecodingError):
        return failed("bad_answer", plain)
    return failed("connection", plain)


def of_status(
    status: int, headers: Mapping[str, str], body: bytes, secrets: Sequence[str]
) -> EndpointFailed:
    """The endpoint answered with an error."""
    said = _told(body, secrets)
    reason = _reason(status, said)
    error = failed(reason, f"HTTP {status}: {said}" if said else f"HTTP {status}")
    error.retry_after = _seconds(headers.get("retry-after"))
    return error


def passes(error: BaseException) -> bool:
    """Whether it may be gone a moment later, and nobody asks for a longer moment."""
    return (
        isinstance(error, EndpointFailed)
        and error.reason in PASSING
        and (error.retry_after or 0.0) <= LONGEST_WAIT
    )


def _reason(status: int, said: str) -> str:
    if (known := _STATUS.get(status)) is not None:
        return known
    if status >= 500:
        # Some servers say so of a text that is longer than the model takes.
        return "too_large" if _is_too_large(said) else "server_error"
    if status < 400:
        return "bad_answer"
    return "too_large" if _is_too_large(said) else "bad_request"


def _is_too_large(said: str) -> bool:
    return any(words in said.lower() for words in _TOO_LARGE)


def _told(body: bytes, secrets: Sequence[str]) -> str:
    """The words of an error body, cut short."""
    return " ".join(_without(_words(body), secrets).split())[:300]


def _words(body: bytes) -> str:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = body.decode("utf-8", "replace")
    match answer:
        case {"error": {"message": str(said)}} | {"error": str(said)} | {"message": str(said)}:
            return said
        case str(said):
            return said
        case _:
            return ""


def _without(text: str, secrets: Sequence[str]) -> str:
    """The text without the key, should a server have echoed it."""
    for secret in secrets:
        text = text.replace(secret, "[key]")
    return text


def _seconds(header: str | None) -> float | None:
    try:
        value = float(header or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None

"""The embedder on endpoints like OpenAI's, and the errors of its calls."""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tenacity import RetryCallState, Retrying, retry_if_exception
from tenacity.wait import wait_exponential, wait_random

from refold.application.errors import EmbedderError
from refold.application.ports.embedder import Vector
from refold.domain.errors import InvalidSetting
from refold.domain.text_cuts import encodable
from refold.infrastructure.api_failures import (
    ADVICE,
    describe_error,
    is_sendable,
    is_temporary,
    reason_of,
    redact,
    requested_delay,
)

if TYPE_CHECKING:
    import httpx2


LONGEST_WAIT = 20.0
"""Maximum seconds to wait before a retry. If the endpoint asks for more, the call fails."""

_NEXT = {
    **ADVICE,
    "authentication": "Set embedder_key (REFOLD_EMBEDDER_KEY) to a valid key.",
    "permission": "Set embedder_model to a model that the key may use.",
    "not_found": "Check embedder_url and embedder_model.",
    "bad_request": "Check embedder_model: it may not be a model for embeddings.",
    "too_large": "Use a model that takes longer texts.",
    "bad_answer": "Check embedder_url, embedder_model and any proxy.",
    "timeout": "Try again, or raise embedder_timeout.",
    "connection": "Check the network and embedder_url, then try again.",
}
_TOO_LARGE = (
    "too long",
    "too large",
    "maximum context",
    "context length",
    "max_tokens",
    "too many tokens",
)


class EndpointFailed(EmbedderError):
    """An ``EmbedderError`` with the number of seconds that the endpoint asks to wait."""

    retry_after: float | None = None


def error_for(reason: str, detail: str) -> EndpointFailed:
    """Return the error of the port: the reason, the server's message and advice."""
    return EndpointFailed(reason, f"no vectors: {detail}. {_NEXT[reason]}")


def transport_error(error: Exception, secrets: Sequence[str]) -> EndpointFailed:
    """Return the error for a call without a complete answer."""
    import httpx2

    if isinstance(error, httpx2.TimeoutException | TimeoutError):
        return error_for("timeout", "no complete answer in time")
    said = redact(describe_error(error), secrets)
    if isinstance(error, httpx2.InvalidURL | httpx2.UnsupportedProtocol):
        return error_for("not_found", said)
    if isinstance(error, httpx2.DecodingError):
        return error_for("bad_answer", said)
    return error_for("connection", said)


def status_error(
    status: int, headers: Mapping[str, str], body: bytes, secrets: Sequence[str]
) -> EndpointFailed:
    """Return the error for an error response."""
    said = _error_message(body, secrets)
    reason = _reason(status, said)
    error = error_for(reason, f"HTTP {status}: {said}" if said else f"HTTP {status}")
    error.retry_after = requested_delay(headers)
    return error


def _passes(error: BaseException) -> bool:
    return isinstance(error, EndpointFailed) and is_temporary(
        error.reason, error.retry_after, LONGEST_WAIT
    )


def _reason(status: int, said: str) -> str:
    reason = reason_of(status)
    # Some servers answer 500 to a text that is longer than their model accepts.
    is_vague = reason == "bad_request" or (reason == "server_error" and status >= 500)
    return "too_large" if is_vague and _is_too_large(said) else reason


def _is_too_large(said: str) -> bool:
    return any(words in said.lower() for words in _TOO_LARGE)


def _error_message(body: bytes, secrets: Sequence[str]) -> str:
    """Return the words of an error body, shortened."""
    return " ".join(redact(_words(body), secrets).split())[:300]


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


URL = "https://api.openai.com/v1"
MODEL = "text-embedding-3-small"
"""Default model of OpenAI's endpoint. Other endpoints have models of their own."""
LONGEST = 8_000
"""Maximum number of characters of a text. If a model rejects it as too long, shorter texts are sent."""
SHORTEST = 200
"""Minimum number of characters. Shorter texts are not cut further."""
BATCH = 64
"""Number of texts in a request."""
LARGEST = 256 * 1024 * 1024
"""Maximum number of bytes of an answer."""
TRIES = 3
TRIES_FOR_A_QUESTION = 2
"""Attempts for a query, which a user waits for."""

_GROWING = wait_exponential(multiplier=0.5, max=20) + wait_random(0, 1)


class OpenAIEmbedder:
    """An ``Embedder`` on ``URL/embeddings``: OpenAI's endpoint, or any compatible server."""

    name = "openai"

    def __init__(
        self,
        model: str | None = None,
        *,
        url: str | None = None,
        key: str | None = None,
        timeout: float = 30.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Create an embedder.

        ``url`` is the part before ``/embeddings``; a query string stays at the end. ``key`` is sent as
        a bearer token, if given. ``timeout`` is the number of seconds for one call, or for all calls of
        a query together.

        Raises:
            InvalidSetting: the URL or the key is not valid, or no model is named for the URL.
        """
        import httpx2

        if model is None and url is not None:
            raise InvalidSetting(
                f"embedder_model: name a model of {_show_url(url)}",
                setting="embedder_model",
            )
        self._url = _endpoint(URL if url is None else url)
        self._wanted = model or MODEL
        self.model = f"openai/{self._wanted}"
        self._secrets = (_check_key(key),) if key else ()
        self._timeout = timeout
        self._sleep = sleep
        headers = {"Authorization": f"Bearer {self._secrets[0]}"} if self._secrets else {}
        self._client = httpx2.Client(timeout=timeout, headers=headers)

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return a vector for each document."""
        found: list[Vector] = []
        for begin in range(0, len(texts), BATCH):
            found += self._embed(
                [encodable(t, LONGEST) for t in texts[begin : begin + BATCH]], TRIES
            )
        return found

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query."""
        until = time.monotonic() + self._timeout
        return self._embed([encodable(text, LONGEST)], TRIES_FOR_A_QUESTION, until)[0]

    def _embed(self, texts: list[str], tries: int, until: float = math.inf) -> list[Vector]:
        """Return vectors of texts. ``until`` is the end of all calls on the monotonic clock."""
        try:
            return self._retry(texts, tries, until)
        except EmbedderError as error:
            if error.reason != "too_large":
                raise
            half = len(texts) // 2
            if half:
                halves = texts[:half], texts[half:]
                return [one for part in halves for one in self._embed(part, tries, until)]
            if len(texts[0]) <= SHORTEST:
                raise
            return self._embed([texts[0][: max(SHORTEST, len(texts[0]) // 2)]], tries, until)

    def _retry(self, texts: list[str], tries: int, until: float) -> list[Vector]:
        again = Retrying(
            stop=partial(_is_over, tries, until),
            retry=retry_if_exception(_passes),
            wait=_wait,
            sleep=self._sleep,
            reraise=True,
        )
        return again(self._request, texts, until)

    def _request(self, texts: list[str], until: float) -> list[Vector]:
        import httpx2

        # Some servers reject an empty text.
        wanted = {"model": self._wanted, "input": [text or " " for text in texts]}
        left = min(self._timeout, until - time.monotonic())
        if left <= 0:
            raise error_for("timeout", "no complete answer in time")
        deadline = time.monotonic() + left
        try:
            with self._client.stream("POST", self._url, json=wanted, timeout=left) as response:
                body = _body(response, deadline)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise transport_error(error, self._secrets) from None
        if response.status_code != 200:
            raise status_error(response.status_code, response.headers, body, self._secrets)
        return _vectors(body, len(texts))


def _body(response: "httpx2.Response", deadline: float) -> bytes:
    """Read the answer within its time and size limits."""
    parts: list[bytes] = []
    size = 0
    for part in response.iter_bytes():
        parts.append(part)
        size += len(part)
        if time.monotonic() > deadline:
            raise error_for("timeout", "no complete answer in time")
        if size > LARGEST:
            raise error_for("bad_answer", "the answer is far too large")
    return b"".join(parts)


def _vectors(body: bytes, count: int) -> list[Vector]:
    try:
        answer = json.loads(body)
        rows = answer["data"]
        found: Mapping[int, Vector] = {
            int(row.get("index", place)): [float(one) for one in row["embedding"]]
            for place, row in enumerate(rows)
        }
        return [found[place] for place in range(count)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        detail = f"no list of {count} vectors ({type(error).__name__})"
        raise error_for("bad_answer", detail) from None


def _is_over(tries: int, until: float, state: RetryCallState) -> bool:
    """Return whether to stop retrying: after the last attempt, or if no time is left after the wait."""
    return state.attempt_number >= tries or time.monotonic() + state.upcoming_sleep >= until


def _wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, EndpointFailed) else None
    return max(_GROWING(state), asked or 0.0)


def _endpoint(url: str) -> str:
    import httpx2

    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        parsed = httpx2.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidSetting(
            f"embedder_url: {_show_url(url)!r} is not a URL such as {URL}", setting="embedder_url"
        )
    path, mark, query = parsed.raw_path.partition(b"?")
    whole = path.rstrip(b"/") + b"/embeddings" + mark + query
    return str(parsed.copy_with(raw_path=whole, fragment=None))


def _show_url(url: str) -> str:
    """Return a URL without the parts that may be secret."""
    return url.partition("?")[0].rpartition("@")[2]


def _check_key(key: str) -> str:
    # The error of the transport would contain it.
    if not is_sendable(key):
        raise InvalidSetting(
            "embedder_key: it contains white space or characters that cannot be sent",
            setting="embedder_key",
        )
    return key

"""A local HTTP server that answers as the Messages API does, by a script, and records requests."""

import itertools
import json
import re
import socket
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from .api_refusals import compaction_block, refusal

SECTIONS = (
    "Technical Context",
    "Project Overview",
    "Code Changes",
    "Debugging & Issues",
    "Current Status",
    "Pending Tasks",
    "User Preferences",
    "Key Decisions",
)
GOOD_SUMMARY = "\n\n".join(f"## {name}\nNothing new on {name}." for name in SECTIONS)
_ANY_ID = b"msg_01TestTestTestTestTestTest"
_SECRET_HEADERS = frozenset({"x-api-key", "authorization", "cookie"})


@dataclass(frozen=True)
class Answer:
    """One scripted answer: a status, a body, and what goes wrong on the way."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content_type: str = "application/json"
    delay: float = 0.0
    """Seconds to wait before answering; cut short when the server is closed."""
    drop: bool = False
    """Close the connection instead of answering."""


@dataclass(frozen=True)
class Recorded:
    """A request as it arrived, without its credentials."""

    path: str
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        """The request's JSON."""
        body: dict[str, Any] = json.loads(self.raw)
        return body


def message(
    *blocks: dict[str, Any], stop_reason: str | None = "end_turn", model: str = "claude-test-1"
) -> Answer:
    """A 200 answer of any content."""
    body = {
        "id": _ANY_ID.decode(),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(blocks),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "stop_details": None,
        "usage": {
            "input_tokens": 1_000,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 200,
            "service_tier": "standard",
        },
    }
    return Answer(body=json.dumps(body).encode(), headers={"request-id": "req_01Test"})


def ok(text: str = GOOD_SUMMARY, *, stop_reason: str | None = "end_turn") -> Answer:
    """A text that ended for the given reason."""
    return message({"type": "text", "text": text}, stop_reason=stop_reason)


def compacted(text: str | None = GOOD_SUMMARY, **fields: Any) -> Answer:
    """A signed compaction block alone; without a text, one that failed."""
    return message(compaction_block(text, **fields), stop_reason="compaction")


def not_compacted(stop_reason: str) -> Answer:
    """What comes where the call for the summary did not end well: no content."""
    return message(stop_reason=stop_reason)


def truncated(text: str = GOOD_SUMMARY[:120]) -> Answer:
    return ok(text, stop_reason="max_tokens")


def refused() -> Answer:
    return message(stop_reason="refusal")


def empty() -> Answer:
    return message()


def error(
    status: int,
    kind: str,
    said: str,
    headers: Mapping[str, str] | None = None,
    *,
    code: str | None = None,
) -> Answer:
    """An error in the API's shape; ``code`` is the one that some have in their details."""
    told: dict[str, Any] = {"type": kind, "message": said}
    if code is not None:
        told["details"] = {"error_code": code}
    body = {"type": "error", "error": told, "request_id": "req_01Test"}
    return Answer(
        status=status,
        body=json.dumps(body).encode(),
        headers={"request-id": "req_01Test", **(headers or {})},
    )


def overloaded() -> Answer:
    return error(529, "overloaded_error", "Overloaded")


def rate_limit(retry_after: float | str = 1) -> Answer:
    said = "This request would exceed your account's rate limit. Please try again later."
    return error(429, "rate_limit_error", said, {"retry-after": str(retry_after)})


def server_error() -> Answer:
    return error(500, "api_error", "Internal server error")


def unauthorised() -> Answer:
    return error(401, "authentication_error", "invalid x-api-key")


def bad_request(said: str = "max_tokens: must be positive", code: str | None = None) -> Answer:
    return error(400, "invalid_request_error", said, code=code)


def compaction_unavailable() -> Answer:
    said = "The compaction could not be completed, retry the request"
    return error(529, "overloaded_error", said, code="compaction_unavailable")


def too_large() -> Answer:
    return error(413, "request_too_large", "Request exceeds the maximum size")


def too_long() -> Answer:
    return bad_request("prompt is too long: 1200000 tokens > 1000000 maximum")


def slow(seconds: float = 30.0, text: str = GOOD_SUMMARY) -> Answer:
    return Answer(body=ok(text).body, delay=seconds)


def not_json() -> Answer:
    return Answer(body=b"<html><body>Bad gateway</body></html>", content_type="text/html")


def dropped() -> Answer:
    return Answer(drop=True)


class _QuickHTTPServer(HTTPServer):
    def thread_target(self) -> None:
        # The default asks twice a second whether to stop, and every test waits for that.
        assert self.server is not None
        self.server.serve_forever(poll_interval=0.01)


class AnthropicServer:
    """Answers ``POST /v1/messages`` from a script; a context manager.

    The answers come in order, the last one again and again, each with an id of its own. A request
    without a key, or one that the API would not take, is refused as the API does and uses up no
    answer. ``received`` is set when a request for messages has arrived, answered or not.
    """

    def __init__(self, answers: Iterable[Answer] = (), *, input_tokens: int = 1_000) -> None:
        self._answers = list(answers) or [ok()]
        self._input_tokens = input_tokens
        self._requests: list[Recorded] = []
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._closing = threading.Event()
        self._server = _QuickHTTPServer(threaded=True)
        self.received = threading.Event()

    def __enter__(self) -> Self:
        everything = self._server.expect_request(re.compile(".*"))
        everything.respond_with_handler(self._respond)
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.stop()

    @property
    def base_url(self) -> str:
        """For ``base_url=`` of a client."""
        return self._server.url_for("").rstrip("/")

    @property
    def requests(self) -> list[Recorded]:
        """The requests for messages, in order; those for counting tokens are not among them."""
        with self._lock:
            return [r for r in self._requests if r.path == "/v1/messages"]

    @property
    def counts(self) -> list[Recorded]:
        """The requests for counting tokens, in order."""
        with self._lock:
            return [r for r in self._requests if r.path == "/v1/messages/count_tokens"]

    def _respond(self, request: Request) -> Response:
        refusal = _refusal(request)
        if refusal is not None:
            return _response(refusal)
        self._record(request)
        if request.path.endswith("/count_tokens"):
            return _response(Answer(body=json.dumps({"input_tokens": self._input_tokens}).encode()))
        answer = self._next_answer()
        self.received.set()
        if answer.delay:
            self._closing.wait(answer.delay)
        if answer.drop:
            request.environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        return _response(answer)

    def _record(self, request: Request) -> None:
        headers = {k.lower(): v for k, v in request.headers.items()}
        safe = {k: v for k, v in headers.items() if k not in _SECRET_HEADERS}
        with self._lock:
            self._requests.append(Recorded(path=request.path, headers=safe, raw=request.data))

    def _next_answer(self) -> Answer:
        with self._lock:
            answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
            # A message with an id that is stored already counts as delivered again.
            own = b"msg_01Test%022d" % next(self._numbers)
            return replace(answer, body=answer.body.replace(_ANY_ID, own))


def _response(answer: Answer) -> Response:
    return Response(
        answer.body,
        status=answer.status,
        headers=dict(answer.headers),
        content_type=answer.content_type,
    )


def _refusal(request: Request) -> Answer | None:
    """What the API would say to a request that breaks its rules; only the plainest are checked."""
    if request.method != "POST" or not request.path.startswith("/v1/messages"):
        return error(404, "not_found_error", f"no such route: {request.method} {request.path}")
    if not (request.headers.get("x-api-key") or request.headers.get("authorization")):
        return error(401, "authentication_error", "x-api-key header is required")
    try:
        body: Any = json.loads(request.data.decode())
    except ValueError:
        return bad_request("the body is not JSON in UTF-8")
    beta = request.headers.get("anthropic-beta", "")
    refused = refusal(body, beta, counting=request.path.endswith("/count_tokens"))
    return bad_request(*refused) if refused else None

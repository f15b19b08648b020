"""A local Messages API that refuses what the real one refuses, and works with tools while it answers."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any, Self

from werkzeug import Request, Response

from refold.testing.request_judge import preserved_thinking_violations, violations

from .anthropic_server import _QuickHTTPServer  # pyright: ignore[reportPrivateUsage]

Json = dict[str, Any]
Reply = Callable[[Json, int], list[Json]]
"""Function of a request's body and its number that returns the content of the answer."""
TOOLS: list[Json] = [
    {
        "name": "run",
        "description": "Run a command.",
        "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}},
    }
]


def works(body: Json, number: int) -> list[Json]:
    """Think, call a tool twice for each question, then answer."""
    thought = {
        "type": "thinking",
        "thinking": f"thought {number}",
        "signature": f"c2lnbmF0dXJl{number:06d}",
    }
    last = body["messages"][-1]
    rounds = 0
    for message in reversed(body["messages"]):
        content = message["content"]
        is_result = not isinstance(content, str) and any(
            block["type"] == "tool_result" for block in content
        )
        if message["role"] == "user" and not is_result:
            break
        rounds += is_result
    if last["role"] == "user" and rounds < 2:
        call = {
            "type": "tool_use",
            "id": f"toolu_{number:05d}",
            "name": "run",
            "input": {"command": f"make part_{number}"},
        }
        return [thought, {"type": "text", "text": f"I run part {number}."}, call]
    return [thought, {"type": "text", "text": f"Done in request {number}: so it is. " * 8}]


class StrictServer:
    """Answers ``POST /v1/messages``, streamed or not; a context manager.

    Unless told otherwise, a request that the API would refuse gets the status 400 and is listed in ``refused``.
    """

    def __init__(self, reply: Reply = works, *, judges: bool = True) -> None:
        """Create the server. Without ``judges``, for a program with rules of its own, nothing is refused."""
        self._reply = reply
        self._judges = judges
        self._server = _QuickHTTPServer(threaded=True)
        self._lock = threading.Lock()
        self.bodies: list[Json] = []
        self.refused: list[str] = []
        self.fails: list[int] = []
        """Statuses that the next requests get instead of an answer."""
        self.others: list[str] = []
        """Paths of other requests."""

    def __enter__(self) -> Self:
        self._server.expect_request(re.compile(".*")).respond_with_handler(self._respond)
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    @property
    def base_url(self) -> str:
        """For ``base_url=`` of a client."""
        return self._server.url_for("").rstrip("/")

    def _respond(self, request: Request) -> Response:
        if request.path != "/v1/messages":
            self.others.append(request.path)
            return _json({"input_tokens": 7})
        with self._lock:
            if self.fails:
                return _error(self.fails.pop(0), "overloaded_error", "Overloaded")
            return self._answer(json.loads(request.data))

    def _answer(self, body: Json) -> Response:
        # The last requests are enough: a block that an earlier request had was judged with it.
        earlier = [one for one in self.bodies if one["model"] == body["model"]][-24:]
        thinking = preserved_thinking_violations([*earlier, body])
        found = violations(body) + [f for f in thinking if f"requests[{len(earlier)}]" in f]
        if found and self._judges:
            self.refused += found
            return _error(400, "invalid_request_error", "; ".join(found))
        content = self._reply(body, len(self.bodies))
        self.bodies.append({**body, "answer": content})
        is_call = any(block["type"] == "tool_use" for block in content)
        message = {
            "id": f"msg_{len(self.bodies):026d}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": "tool_use" if is_call else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
        if not body.get("stream"):
            return _json(message)
        return Response("".join(_events(message)), content_type="text/event-stream")


def _json(body: Json) -> Response:
    return Response(json.dumps(body), content_type="application/json")


def _error(status: int, kind: str, said: str) -> Response:
    body = {"type": "error", "error": {"type": kind, "message": said}}
    return Response(json.dumps(body), status=status, content_type="application/json")


def _events(message: Json) -> Iterator[str]:
    """Yield the events of a stream, with texts in pieces of seven characters."""
    yield _event(
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    )
    for at, block in enumerate(message["content"]):
        yield from _block_events(at, block)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}})
    yield _event({"type": "message_stop"})


def _block_events(at: int, block: Json) -> Iterator[str]:
    empty: dict[str, Json] = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"input": {}},
    }
    begun = {**block, **empty[block["type"]]}
    yield _event({"type": "content_block_start", "index": at, "content_block": begun})
    match block["type"]:
        case "text":
            deltas = [{"type": "text_delta", "text": part} for part in _pieces(block["text"])]
        case "thinking":
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case _:
            whole = json.dumps(block["input"])
            deltas = [{"type": "input_json_delta", "partial_json": p} for p in _pieces(whole)]
    for delta in deltas:
        yield _event({"type": "content_block_delta", "index": at, "delta": delta})
    yield _event({"type": "content_block_stop", "index": at})


def _pieces(text: str) -> list[str]:
    return [text[at : at + 7] for at in range(0, len(text), 7)]


def _event(event: Json) -> str:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"

"""A local OpenAI API that refuses what the real one refuses, and works with tools while it answers."""

import json
import re
import threading
from collections.abc import Iterator
from typing import Any, Self

from werkzeug import Request, Response

from refold.domain.value import is_list

from .anthropic_server import _QuickHTTPServer  # pyright: ignore[reportPrivateUsage]

Json = dict[str, Any]
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CHAT_PARTS = {
    "system": {"text"},
    "developer": {"text"},
    "user": {"text", "image_url", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
}
_INPUT_PARTS = {"input_text", "input_image", "input_file", "output_text", "refusal"}


class OpenAIServer:
    """Answers ``POST /chat/completions`` and ``/responses``; a context manager.

    A request that the API would refuse gets the status 400 and is listed in ``refused``.
    """

    def __init__(self) -> None:
        self._server = _QuickHTTPServer(threaded=True)
        self._lock = threading.Lock()
        self.bodies: list[Json] = []
        self.refused: list[str] = []

    def __enter__(self) -> Self:
        self._server.expect_request(re.compile(".*")).respond_with_handler(self._respond)
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    @property
    def base_url(self) -> str:
        """For ``base_url=`` of a client."""
        return self._server.url_for("/v1").rstrip("/")

    def _respond(self, request: Request) -> Response:
        body = json.loads(request.data)
        is_chat = request.path.endswith("/chat/completions")
        with self._lock:
            found = [*(_chat_faults(body) if is_chat else _item_faults(body))]
            if found:
                self.refused += found
                error = {"message": "; ".join(found), "type": "invalid_request_error"}
                return Response(json.dumps({"error": error}), 400, content_type="application/json")
            number = len(self.bodies)
            self.bodies.append(body)
        answer = _completion(body, number) if is_chat else _response(body, number)
        return Response(json.dumps(answer), content_type="application/json")


def _chat_faults(body: Json) -> Iterator[str]:
    open_calls: list[str] = []
    if not body["messages"]:
        yield "messages: empty"
    for at, message in enumerate(body["messages"]):
        role, content, place = message.get("role"), message.get("content"), f"messages[{at}]"
        if role not in _CHAT_PARTS:
            yield f"{place}.role: {role!r}"
            continue
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                yield f"{place}: must follow a message with its tool call"
            else:
                open_calls.remove(message["tool_call_id"])
        elif open_calls:
            yield f"{place}: tool calls {open_calls} have no answer"
        if role == "assistant":
            open_calls = [call["id"] for call in message.get("tool_calls") or ()]
            yield from _call_faults(message, place)
        if content is None and not message.get("tool_calls"):
            yield f"{place}.content: null"
        if is_list(content):
            kinds = {str(part.get("type")) for part in content}
            if not content or kinds - _CHAT_PARTS[role]:
                yield f"{place}.content: parts {sorted(kinds)} in a message of {role}"
    if open_calls:
        yield f"messages: tool calls {open_calls} have no answer"


def _call_faults(message: Json, place: str) -> Iterator[str]:
    calls = message.get("tool_calls")
    if calls is not None and not calls:
        yield f"{place}.tool_calls: empty"
    for call in calls or ():
        if not _NAME.fullmatch(call["function"]["name"]):
            yield f"{place}.tool_calls: name {call['function']['name']!r}"
        json.loads(call["function"]["arguments"])


def _item_faults(body: Json) -> Iterator[str]:
    """Yield what is wrong with the items of a request: a call needs its output, reasoning the item after it."""
    items: list[Json] = body["input"]
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    outputs = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    if sorted(calls) != sorted(outputs) or len(set(calls)) != len(calls):
        yield f"input: calls {calls} and outputs {outputs} differ"
    for at, item in enumerate(items):
        after: Json = items[at + 1] if at + 1 < len(items) else {}
        is_answer = after.get("type") in ("function_call", "reasoning") or (
            after.get("role") == "assistant"
        )
        if item.get("type") == "reasoning" and not is_answer:
            yield f"input[{at}]: reasoning {item['id']!r} without its following item"
        content = item.get("content")
        kinds = {str(part["type"]) for part in content} if is_list(content) else set[str]()
        if item.get("type") != "reasoning" and kinds - _INPUT_PARTS:
            yield f"input[{at}].content: parts {sorted(kinds)}"


def _is_done(rounds: int) -> bool:
    return rounds >= 2


def _completion(body: Json, number: int) -> Json:
    rounds = 0
    for message in reversed(body["messages"]):
        if message["role"] == "user":
            break
        rounds += message["role"] == "tool"
    answer: Json = {"role": "assistant", "content": f"Done in request {number}: so it is. " * 8}
    if not _is_done(rounds) and body.get("tools"):
        arguments = json.dumps({"command": f"make part_{number}"})
        function = {"name": "run", "arguments": arguments}
        calls = [{"id": f"call_{number}", "type": "function", "function": function}]
        answer = {"role": "assistant", "content": f"I run part {number}.", "tool_calls": calls}
    reason = "tool_calls" if "tool_calls" in answer else "stop"
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_800_000_000,
        "model": body["model"],
        "choices": [{"index": 0, "message": answer, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def _response(body: Json, number: int) -> Json:
    rounds = 0
    for item in reversed(body["input"]):
        if item.get("role") == "user":
            break
        rounds += item.get("type") == "function_call_output"
    reasoning: Json = {
        "type": "reasoning",
        "id": f"rs_{number}",
        "summary": [],
        "encrypted_content": "c2VhbA==",
    }
    works = bool(body.get("tools")) and not _is_done(rounds)
    said = f"I run part {number}." if works else f"Done in request {number}. " * 8
    text: Json = {"type": "output_text", "text": said, "annotations": [], "logprobs": []}
    output: list[Json] = [
        reasoning,
        {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": [text],
        },
    ]
    if works:
        output.append(
            {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": f"call_{number}",
                "name": "run",
                "arguments": json.dumps({"command": f"make part_{number}"}),
                "status": "completed",
            }
        )
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_800_000_000,
        "status": "completed",
        "model": body["model"],
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
        "usage": {
            "input_tokens": 10,
            "output_tokens": 5,
            "total_tokens": 15,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 1},
        },
    }

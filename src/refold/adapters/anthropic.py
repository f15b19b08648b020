"""A memory for applications of the ``anthropic`` client: its middleware, and its memory tool."""

import copy
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

try:
    from anthropic import (
        APIRequest,
        APIResponse,
        AsyncAPIResponse,
        AsyncCallNext,
        CallNext,
        Middleware,
    )

    from .anthropic_memory_tool import AsyncMemoryTool, MemoryTool
except ImportError as error:  # pragma: no cover
    raise ImportError(
        "refold.adapters.anthropic needs anthropic 2.12 or newer: pip install 'refold[anthropic]'"
    ) from error

from refold.application.api.async_memory import AsyncMemory
from refold.application.api.blocking import run_to_end
from refold.application.api.following import Failures, FollowingMemory
from refold.application.api.memory import Memory
from refold.application.api.results import Context
from refold.application.conversation.models import binds_thinking
from refold.application.conversation.parsing import read_thread_id
from refold.application.runtime.opening_process import waiting_at_most
from refold.application.runtime.plain_lines import plain_logger
from refold.domain.messages import THINKING
from refold.domain.value import is_list, is_object

__all__ = ["ABORTED", "AsyncMemoryTool", "MemoryMiddleware", "MemoryTool", "ThreadOf"]
logger = plain_logger("refold.adapters.anthropic")

ThreadOf = Callable[[Mapping[str, Any]], str | None]
"""Function of the body of a request that returns its thread id, or None for a request to leave alone."""
PATH = "/v1/messages"
_BETA = "anthropic-beta"
ABORTED = "aborted"
"""``stop_reason`` of a reply of which only a part was read."""


class _Asked(NamedTuple):
    """A request of the application for a message."""

    request: APIRequest
    body: Mapping[str, Any]
    thread_id: str
    messages: Sequence[Any]

    @property
    def prefill(self) -> Sequence[Any]:
        """The beginning of the reply, if the application gave one."""
        return self.messages[-1:] if _is_prefill(self.messages[-1]) else ()

    @property
    def kept(self) -> Sequence[Any]:
        """The messages to store."""
        return self.messages[: len(self.messages) - len(self.prefill)]

    @property
    def given(self) -> dict[str, Any]:
        """System text, tools and model, which the compacted request has as well."""
        body = self.body
        return {
            "system": body.get("system"),
            "tools": body.get("tools") or (),
            "model": body.get("model"),
        }


class _Call(NamedTuple):
    """A request for a message, and what is needed to store its reply."""

    request: APIRequest
    thread_id: str
    messages: Sequence[Any]
    """The application's own messages."""
    is_kept: bool
    """Whether the memory has these messages, so that the reply can be stored."""


class MemoryMiddleware(Middleware):
    """Stores what an application sends and gets, and sends the compacted request in place of its own.

    The application keeps its own message list and calls ``client.messages.create``, ``stream`` or a tool runner
    as before. New messages of the list are stored before the request, the reply when it ends. Other calls pass
    unchanged. If the memory cannot be used, the application's own request is sent, with one warning.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        thread: str | ThreadOf,
        owner: str | None = None,
        lock_wait: float = 2.0,
    ) -> None:
        """Create a middleware for the clients ``Anthropic`` and ``AsyncAnthropic``.

        ``thread``: id of the conversation, or a function of the request's body that returns it; None leaves the
        request as it is. ``owner``: owner of the conversations. ``lock_wait``: seconds to wait for a log that another
        process holds, before the application's own request is sent.

        Raises:
            InvalidThreadId: ``thread`` is blank, too long or not printable.
            InvalidSetting: ``memory`` is no memory.
        """
        self._memory = FollowingMemory(memory, owner)
        self._thread = thread if callable(thread) else read_thread_id(thread)
        self._lock_wait = lock_wait
        self._failures = Failures(logger, "the application's own messages are sent")
        self._said_kept = False

    def handle(self, request: APIRequest, call_next: CallNext) -> APIResponse[Any]:
        """Send the compacted request, and store the reply."""
        asked = self._asked(request)
        if asked is None:
            return call_next(request)
        try:
            with waiting_at_most(self._lock_wait):
                follow, length = self._following(asked), len(asked.kept)
                context = self._memory.context_of(follow, length, **asked.given)
                call = self._compacted(asked, context)
        except Exception as error:  # The request must go out as it would without a memory.
            call = self._failed(asked, error)
        response = call_next(call.request)
        if not call.is_kept or not response.http_response.is_success:
            return response
        if request.stream:
            self._read_along(response.http_response, call)
        else:
            self._store(call, _reply_in(response.http_response.read()))
        return response

    async def handle_async(
        self, request: APIRequest, call_next: AsyncCallNext
    ) -> AsyncAPIResponse[Any]:
        """Send the compacted request, and store the reply."""
        asked = self._asked(request)
        if asked is None:
            return await call_next(request)
        try:
            with waiting_at_most(self._lock_wait):
                follow, length = self._following(asked), len(asked.kept)
                context = await self._memory.acontext_of(follow, length, **asked.given)
                call = self._compacted(asked, context)
        except Exception as error:  # The request must go out as it would without a memory.
            call = self._failed(asked, error)
        response = await call_next(call.request)
        if not call.is_kept or not response.http_response.is_success:
            return response
        if request.stream:
            self._read_along_async(response.http_response, call)
        else:
            found = _reply_in(await response.http_response.aread())
            await run_to_end(self._store, call, found)
        return response

    def _read_along(self, response: Any, call: _Call) -> None:
        """Store the reply when its stream was read or is closed."""
        reply, read, close = _StreamedReply(), response.iter_bytes, response.close

        def iter_bytes(*args: Any, **kwargs: Any) -> Iterator[bytes]:
            for part in read(*args, **kwargs):
                for line in part.splitlines(keepends=True):
                    reply.take(line)
                    yield line
            self._store(call, reply.end())

        def close_and_store() -> None:
            close()
            self._store(call, reply.end())

        response.iter_bytes, response.close = iter_bytes, close_and_store

    def _read_along_async(self, response: Any, call: _Call) -> None:
        reply, read, close = _StreamedReply(), response.aiter_bytes, response.aclose

        async def aiter_bytes(*args: Any, **kwargs: Any) -> AsyncIterator[bytes]:
            async for part in read(*args, **kwargs):
                for line in part.splitlines(keepends=True):
                    reply.take(line)
                    yield line
            await run_to_end(self._store, call, reply.end())

        async def aclose_and_store() -> None:
            await close()
            await run_to_end(self._store, call, reply.end())

        response.aiter_bytes, response.aclose = aiter_bytes, aclose_and_store

    def _asked(self, request: APIRequest) -> _Asked | None:
        """Return what a request for a message asks for, or None if this one is not for the memory."""
        body, path = request.json, request.url.partition("?")[0]
        if request.method.lower() != "post" or not path.endswith(PATH) or not is_object(body):
            return None
        messages = body.get("messages")
        if not is_list(messages) or not messages or self._is_kept_by_the_api(body):
            return None
        try:
            thread_id = self._thread(body) if callable(self._thread) else self._thread
            if thread_id is None:
                return None
            return _Asked(request, body, read_thread_id(thread_id), messages)
        except Exception as error:  # The request must go out as it would without a memory.
            self._failures.report("", error)
            return None

    def _is_kept_by_the_api(self, body: Mapping[str, Any]) -> bool:
        """Return whether the API keeps the history of a request, so that its messages are only the newest."""
        if not body.get("thread"):
            return False
        if not self._said_kept:
            self._said_kept = True
            logger.warning(
                "requests that keep their history on the servers of the API (thread) are left as they are: "
                "pass thread=False to the tool runner, so that the memory gets the messages"
            )
        return True

    def _following(self, asked: _Asked) -> Callable[[], str]:
        return partial(self._memory.follow, asked.thread_id, asked.kept)

    def _compacted(self, asked: _Asked, context: Context) -> _Call:
        request, body, messages = asked.request, asked.body, asked.messages
        betas = _value_of(request.headers, _BETA)
        given = context.for_anthropic(betas=[b for b in betas.split(",") if b] if betas else ())
        headers = {**request.headers, **given.pop("extra_headers", {})}
        given["messages"] = [*given["messages"], *asked.prefill]
        if mark := _cache_mark(messages):
            _set_cache_mark(given["messages"], mark)
        self._failures.is_over(asked.thread_id)
        rest = {k: v for k, v in body.items() if k not in ("messages", "system", "tools")}
        changed = request.copy(body={**rest, **given}, headers=headers)
        return _Call(changed, asked.thread_id, asked.kept, is_kept=not asked.prefill)

    def _failed(self, asked: _Asked, error: Exception) -> _Call:
        self._failures.report(asked.thread_id, error)
        own = _own_request(asked.request, asked.body, asked.messages)
        return _Call(own, asked.thread_id, asked.messages, is_kept=False)

    def _store(self, call: _Call, reply: Mapping[str, Any] | None) -> None:
        if reply is None:
            return
        try:
            with waiting_at_most(self._lock_wait):
                self._memory.add_reply(call.thread_id, reply, call.messages)
        except Exception as error:  # The application has the reply; it comes again in its list.
            self._failures.report(call.thread_id, error)


def _own_request(
    request: APIRequest, body: Mapping[str, Any], messages: Sequence[Any]
) -> APIRequest:
    """Return the application's own request, without thinking that was signed for another prefix."""
    if not binds_thinking(body.get("model")):
        return request
    return request.copy(body={**body, "messages": [_without_thinking(m) for m in messages]})


def _without_thinking(message: Any) -> Any:
    content = message.get("content") if is_object(message) else None
    if not is_list(content) or message.get("role") != "assistant":
        return message
    kept = [block for block in content if _type_of(block) not in THINKING]
    return {**message, "content": kept} if kept else message


def _type_of(block: Any) -> Any:
    return block.get("type") if is_object(block) else getattr(block, "type", None)


def _is_prefill(message: Any) -> bool:
    """Return whether a last message is the beginning of the reply that is asked for."""
    if not is_object(message) or message.get("role") != "assistant":
        return False
    content = message.get("content")
    return isinstance(content, str) or all(_type_of(block) == "text" for block in content or ())


def _value_of(headers: Mapping[str, Any], name: str) -> str:
    return next((str(v) for k, v in headers.items() if k.lower() == name), "")


def _cache_mark(messages: Sequence[Any]) -> Any:
    """Return the newest cache mark that the application set in its messages, or None."""
    for message in reversed(messages):
        content = message.get("content") if is_object(message) else None
        for block in reversed(content if is_list(content) else []):
            if is_object(block) and block.get("cache_control"):
                return block["cache_control"]
    return None


def _set_cache_mark(messages: list[dict[str, Any]], mark: Any) -> None:
    last = messages[-1]
    content = last["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    blocks[-1] = {**blocks[-1], "cache_control": mark}
    messages[-1] = {**last, "content": blocks}


def _reply_in(raw: bytes) -> dict[str, Any] | None:
    """Return the message in the body of a response, or None if it has nothing to keep."""
    try:
        return _kept(json.loads(raw))
    except ValueError:
        return None


def _kept(message: Any) -> dict[str, Any] | None:
    if not is_object(message) or message.get("type") != "message" or not message.get("content"):
        return None
    names = ("role", "content", "id", "model", "stop_reason", "usage")
    return {name: message[name] for name in names if message.get(name) is not None}


class _StreamedReply:
    """A reply put together from the events of a stream, as far as it was read."""

    def __init__(self) -> None:
        self._line = b""
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}
        self._ended = set[int]()
        self._is_complete = False
        self._is_taken = False

    def take(self, part: bytes) -> None:
        """Read the next bytes of the stream, at most to the end of a line."""
        self._line += part
        if not self._line.endswith((b"\n", b"\r")):
            return
        line, self._line = self._line, b""
        try:
            if line.startswith(b"data:"):
                self._event(json.loads(line[5:]))
        except (ValueError, LookupError, TypeError):
            # Events of another form are the caller's business: the reply comes again in its list.
            self._is_taken = True

    def _event(self, event: dict[str, Any]) -> None:
        at: int = event.get("index", 0)
        match event.get("type"):
            case "message_start":
                self._message = event["message"]
            case "content_block_start":
                self._blocks[at] = event["content_block"]
            case "content_block_delta":
                self._add(at, event["delta"])
            case "content_block_stop":
                self._ended.add(at)
                if at in self._inputs:
                    self._blocks[at]["input"] = json.loads(self._inputs[at] or "{}")
            case "message_delta":
                self._message |= event.get("delta") or {}
                self._message["usage"] = {
                    **(self._message.get("usage") or {}),
                    **(event.get("usage") or {}),
                }
            case "message_stop":
                self._is_complete = True
            case _:
                pass

    def _add(self, at: int, delta: Mapping[str, Any]) -> None:
        block = self._blocks[at]
        match delta:
            case {"type": "input_json_delta", "partial_json": str(text)}:
                self._inputs[at] = self._inputs.get(at, "") + text
            case {"type": "citations_delta", "citation": citation}:
                block["citations"] = [*(block.get("citations") or []), citation]
            case _:
                for name, value in delta.items():
                    if name != "type" and isinstance(value, str):
                        block[name] = (block.get(name) or "") + value

    def end(self) -> dict[str, Any] | None:
        """Return the message once; None afterwards, or if nothing of it can be kept.

        Of a stream that was not read to its end, calls and thinking without their end are left out.
        """
        if self._is_taken:
            return None
        self._is_taken = True
        kept = [
            copy.deepcopy(block)
            for at, block in sorted(self._blocks.items())
            if self._is_complete or at in self._ended or block.get("type") == "text"
        ]
        stop = {} if self._is_complete else {"stop_reason": ABORTED}
        kept = [b for b in kept if b.get("type") != "text" or b.get("text")]
        return _kept({**self._message, **stop, "content": kept})

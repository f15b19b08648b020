"""A memory for agents of LangChain, as middleware of ``create_agent``."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, NotRequired, TypedDict, cast

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain_core.messages import (
        AIMessage,
        AnyMessage,
        BaseMessage,
        HumanMessage,
        RemoveMessage,
        SystemMessage,
        ToolMessage,
    )
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
    from langgraph.config import get_config
except ImportError as error:  # pragma: no cover
    raise ImportError(
        "refold.adapters.langchain needs langchain 1.2 or newer: pip install 'refold[langchain]'"
    ) from error

from refold.application.api.async_memory import AsyncMemory
from refold.application.api.following import FollowingMemory
from refold.application.api.memory import Memory
from refold.application.api.results import Context
from refold.application.conversation.models import binds_thinking
from refold.application.conversation.transcripts import RecordedMessage
from refold.application.runtime.opening_process import waiting_at_most
from refold.application.runtime.plain_lines import conversation as named
from refold.application.runtime.plain_lines import plain_logger, raised
from refold.domain.messages import THINKING, Author, Message
from refold.domain.value import is_list, is_object

logger = plain_logger("refold.adapters.langchain")
Json = dict[str, Any]
_OF_A_STREAM = frozenset({"index", "partial_json"})
"""Fields that LangChain adds to the blocks of a streamed reply."""


class Removed(TypedDict):
    """Messages that were taken out of the state, because the log has them."""

    messages: int
    """Number of messages from the beginning."""
    conversation: str
    """Conversation that has them."""


class MemoryState(AgentState[Any]):
    """State of an agent whose beginning may be in the log only."""

    refold_removed: NotRequired[Removed]


class MemoryMiddleware(AgentMiddleware[Any, Any, Any]):
    """Stores what an agent says and hears, and gives its model the compacted messages.

    The conversation is that of ``configurable.thread_id``. If the memory cannot be used, the model gets the agent's
    own messages, with one warning.
    """

    state_schema = MemoryState

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        thread: str | None = None,
        owner: str | None = None,
        keep_in_state: int | None = None,
        recall: bool = False,
        lock_wait: float = 2.0,
    ) -> None:
        """Create the middleware.

        ``thread``: id of the conversation, if it is not the thread id of the agent's configuration. ``owner``: owner of
        the conversations. ``keep_in_state``: number of messages to keep in the agent's state at the end of a turn, in
        whole turns; None keeps all. ``recall``: give the agent the tool ``recall_memory``; it needs ``thread``.
        ``lock_wait``: seconds to wait for a log that another process holds.
        """
        super().__init__()
        self._memory = FollowingMemory(memory, owner)
        self._thread = thread
        self._keep = keep_in_state
        self._lock_wait = lock_wait
        self._failing = set[str]()
        self.tools = [_recall_tool(self._memory, thread)] if recall and thread else []

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with the compacted messages, and store its reply."""
        thread_id = self._thread_id()
        try:
            with waiting_at_most(self._lock_wait):
                name = self._memory.follow(
                    thread_id, _given(request.messages), **_missing(request.state)
                )
                context = self._memory.context(name, **_shown(request))
        except Exception as error:  # The agent must go on as it would without a memory.
            return handler(self._failed(request, thread_id, error))
        response = handler(self._compacted(request, thread_id, context))
        self._store(request, thread_id, response)
        return response

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Call the model with the compacted messages, and store its reply."""
        thread_id = self._thread_id()
        try:
            with waiting_at_most(self._lock_wait):
                name = await asyncio.to_thread(
                    self._memory.follow,
                    thread_id,
                    _given(request.messages),
                    **_missing(request.state),
                )
                context = await self._memory.acontext(name, **_shown(request))
        except Exception as error:  # The agent must go on as it would without a memory.
            return await handler(self._failed(request, thread_id, error))
        response = await handler(self._compacted(request, thread_id, context))
        await asyncio.to_thread(self._store, request, thread_id, response)
        return response

    def after_agent(self, state: Any, runtime: Any) -> Json | None:
        """Take messages out of the state that the log has, at the end of a turn."""
        del runtime
        messages = cast(list[AnyMessage], state["messages"])
        if self._keep is None or len(messages) <= self._keep:
            return None
        begins = (n for n, one in enumerate(messages) if isinstance(one, HumanMessage))
        cut = next((n for n in begins if len(messages) - n <= self._keep), None)
        removed = state.get("refold_removed")
        before = removed["messages"] if removed else 0
        name = self._memory.followed(self._thread_id(), before + len(messages))
        # By its id: not every reducer of a state knows how to remove everything.
        if not cut or name is None or any(one.id is None for one in messages[:cut]):
            return None
        return {
            "messages": [RemoveMessage(id=str(one.id)) for one in messages[:cut]],
            "refold_removed": Removed(messages=before + cut, conversation=name),
        }

    async def aafter_agent(self, state: Any, runtime: Any) -> Json | None:
        """Take messages out of the state that the log has, at the end of a turn."""
        return await asyncio.to_thread(self.after_agent, state, runtime)

    def _thread_id(self) -> str:
        if self._thread is not None:
            return self._thread
        return str(get_config().get("configurable", {}).get("thread_id") or "agent")

    def _compacted(
        self, request: ModelRequest[Any], thread_id: str, context: Context
    ) -> ModelRequest[Any]:
        if thread_id in self._failing:
            self._failing.discard(thread_id)
            logger.info("%s: the memory works again; nothing is missing", named(thread_id))
        return _override(request, context)

    def _failed(
        self, request: ModelRequest[Any], thread_id: str, error: Exception
    ) -> ModelRequest[Any]:
        """Return the agent's own request, without thinking that was signed for another prefix."""
        self._warn(thread_id, error)
        if not binds_thinking(_model_name(request.model)):
            return request
        own = [_without_thinking(message) for message in request.messages]
        return request.override(messages=own)

    def _store(
        self, request: ModelRequest[Any], thread_id: str, response: ModelResponse[Any]
    ) -> None:
        replies = [one for one in getattr(response, "result", []) if isinstance(one, AIMessage)]
        if not replies or not (replies[0].content or replies[0].tool_calls):
            return
        try:
            with waiting_at_most(self._lock_wait):
                (reply,) = _given(replies[:1])
                self._memory.add_reply(
                    thread_id, reply, _given(request.messages), **_missing(request.state)
                )
        except Exception as error:  # It comes again in the agent's messages.
            self._warn(thread_id, error)

    def _warn(self, thread_id: str, error: Exception) -> None:
        if thread_id not in self._failing:
            self._failing.add(thread_id)
            logger.warning(
                "%s: the memory cannot be used, so the model gets the agent's own messages: %s",
                named(thread_id),
                raised(error),
            )


def _recall_tool(memory: FollowingMemory, thread_id: str) -> Any:
    """Return the tool with which an agent searches its conversation."""
    from langchain_core.tools import StructuredTool

    tools = memory.conversation(thread_id).tools()
    (tool,) = [one for one in tools if one.name == "recall_memory"]

    def recall(query: str) -> str:
        return tool.call({"query": query}).text

    return StructuredTool.from_function(
        func=recall,
        name=tool.name,
        description=str(tool.definition["description"]),
        args_schema={
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
    )


def _shown(request: ModelRequest[Any]) -> Json:
    """Return what the compacted request depends on besides the messages."""
    return {
        "system": _system_of(request),
        "tools": _definitions(request.tools),
        "model": _model_name(request.model),
    }


def _missing(state: Any) -> Json:
    """Return which messages at the beginning are in the log only."""
    removed = state.get("refold_removed") if is_object(state) else None
    return {"start": removed["messages"], "name": removed["conversation"]} if removed else {}


def _model_name(model: Any) -> str | None:
    name = getattr(model, "model", None) or getattr(model, "model_name", None)
    return name if isinstance(name, str) else None


def _system_of(request: ModelRequest[Any]) -> Any:
    message = request.system_message
    return None if message is None else _content(message.content)


def _definitions(tools: Sequence[Any]) -> list[Json]:
    """Return the tools as definitions of the Messages API, for their size and their order."""
    return list(map(_definition, tools))


def _definition(tool: Any) -> Json:
    if is_object(tool) and "input_schema" in tool:
        return tool
    function = convert_to_openai_tool(tool)["function"]
    return {
        "name": function["name"],
        "description": function.get("description", ""),
        "input_schema": function.get("parameters") or {"type": "object", "properties": {}},
    }


def _given(messages: Sequence[BaseMessage]) -> list[Json]:
    return [_to_message(message) for message in messages]


def _to_message(message: BaseMessage) -> Json:
    """Return a message in the form of the Messages API."""
    match message:
        case ToolMessage():
            result = {
                "type": "tool_result",
                "tool_use_id": message.tool_call_id,
                "content": _content(message.content),
                "is_error": message.status == "error",
            }
            return {"role": "user", "content": [result]}
        case AIMessage():
            return {"role": "assistant", "content": list(_assistant_blocks(message))}
        case SystemMessage():
            return {"role": "system", "content": _content(message.content)}
        case _:
            return {"role": "user", "content": _content(message.content)}


def _content(content: Any) -> Any:
    return content if isinstance(content, str) else [_block(one) for one in content]


def _block(block: Any) -> Json:
    """Return a block without what LangChain added; a picture in its form becomes one of the API."""
    if isinstance(block, str):
        return {"type": "text", "text": block}
    own = {name: value for name, value in block.items() if name not in _OF_A_STREAM}
    match own:
        case {"type": "image", "base64": str(data)}:
            source = {"type": "base64", "media_type": own.get("mime_type"), "data": data}
            return {"type": "image", "source": source}
        case {"type": "image", "url": str(url)} | {
            "type": "image_url",
            "image_url": {"url": str(url)},
        }:
            head, _, data = url.partition(";base64,")
            if data:
                source = {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}
            else:
                source = {"type": "url", "url": url}
            return {"type": "image", "source": source}
        case _:
            return own


def _assistant_blocks(message: AIMessage) -> Iterator[Json]:
    given: Any = message.content
    content: list[Any] = [given] if isinstance(given, str) else given
    inputs: dict[Any, Any] = {call["id"]: call["args"] for call in message.tool_calls}
    known = set[Any]()
    for block in map(_block, content):
        if block.get("type") == "tool_use":
            known.add(block.get("id"))
            # While a reply is streamed, its block has only parts of the input.
            yield {**block, "input": inputs.get(block.get("id"), block.get("input") or {})}
        elif block.get("type") != "text" or block.get("text"):
            yield block
    for call in message.tool_calls:
        if call["id"] not in known:
            yield {
                "type": "tool_use",
                "id": call["id"],
                "name": call["name"],
                "input": call["args"],
            }


def _override(request: ModelRequest[Any], context: Context) -> ModelRequest[Any]:
    is_anthropic = "anthropic" in str(getattr(request.model, "_llm_type", ""))
    messages = [one for message in context.messages for one in _from_message(message, is_anthropic)]
    system = SystemMessage(content=cast(Any, context.system)) if context.system else None
    return request.override(messages=cast(list[AnyMessage], messages), system_message=system)


def _from_message(message: Mapping[str, Any], is_anthropic: bool) -> Iterator[BaseMessage]:
    """Yield a message of a request as messages of LangChain."""
    content = message["content"]
    blocks: list[Json] = (
        [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    )
    if message["role"] == "assistant":
        yield _ai_message(blocks, is_anthropic)
        return
    for block in blocks:
        if block["type"] == "tool_result":
            yield ToolMessage(
                content=block.get("content") or "",
                tool_call_id=block["tool_use_id"],
                status="error" if block.get("is_error") else "success",
            )
    rest = [block for block in blocks if block["type"] != "tool_result"]
    if rest:
        kind = SystemMessage if message["role"] == "system" else HumanMessage
        is_text = all(block["type"] == "text" for block in rest)
        text = "\n\n".join(str(block.get("text")) for block in rest)
        yield kind(content=text if is_text and not is_anthropic else cast(Any, rest))


def _ai_message(blocks: Sequence[Json], is_anthropic: bool) -> AIMessage:
    calls = [
        {"name": block["name"], "args": block["input"], "id": block["id"], "type": "tool_call"}
        for block in blocks
        if block["type"] == "tool_use"
    ]
    if is_anthropic:
        return AIMessage(content=cast(Any, list(blocks)), tool_calls=calls)
    text = "\n\n".join(str(b["text"]) for b in blocks if b["type"] == "text")
    return AIMessage(content=text, tool_calls=calls)


def _without_thinking(message: AnyMessage) -> AnyMessage:
    content: Any = message.content
    if not isinstance(message, AIMessage) or not is_list(content):
        return message
    kept = [b for b in content if not (is_object(b) and b.get("type") in THINKING)]
    return message.model_copy(update={"content": kept})


class Imported(NamedTuple):
    """The messages of one thread of a checkpointer."""

    thread_id: str
    messages: int
    """Number of messages in the checkpoints."""
    new: int
    """Number of them that were not stored before."""


def import_checkpoints(saver: BaseCheckpointSaver[Any], memory: Memory) -> list[Imported]:
    """Store the messages of every thread of a checkpointer, each once, with its id and its time.

    Messages that later checkpoints removed are read from earlier ones. A summary that LangChain wrote is stored
    as a message of the program. A second run adds nothing. The checkpoints are only read.

    Raises:
        InvalidMessage: a message cannot be represented as JSON.
        LogError: the log cannot be read or written.
    """
    threads: dict[str, list[CheckpointTuple]] = {}
    for one in saver.list(None):
        config = one.config.get("configurable", {})
        if not config.get("checkpoint_ns"):
            threads.setdefault(str(config["thread_id"]), []).append(one)
    return [
        _import_thread(memory, thread_id, sorted(found, key=lambda one: one.checkpoint["id"]))
        for thread_id, found in sorted(threads.items())
    ]


def _import_thread(
    memory: Memory, thread_id: str, checkpoints: Sequence[CheckpointTuple]
) -> Imported:
    """Store the messages of a thread in the order in which checkpoints first have them, oldest first."""
    recorded: dict[str, RecordedMessage] = {}
    for checkpoint in checkpoints:
        values: list[Any] = checkpoint.checkpoint["channel_values"].get("messages") or []
        for message in values:
            if isinstance(message, BaseMessage) and str(message.id) not in recorded:
                at = datetime.fromisoformat(checkpoint.checkpoint["ts"])
                recorded[str(message.id)] = _recorded(message, at)
    stored = memory.conversation(thread_id).append_recorded(list(recorded.values()))
    return Imported(thread_id, len(recorded), sum(one.new for one in stored.messages))


def _recorded(message: BaseMessage, at: datetime) -> RecordedMessage:
    given = _to_message(message)
    is_summary = message.additional_kwargs.get("lc_source") == "summarization"
    author: Author | None = "program" if is_summary else None
    return RecordedMessage(
        message=Message(role=given["role"], content=given["content"], author=author),
        key=f"langchain:{message.id}",
        message_id=message.id,
        at=at,
        model=message.response_metadata.get("model_name") or None,
    )

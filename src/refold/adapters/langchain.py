"""A memory for agents of LangChain, as middleware of ``create_agent``."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, NotRequired, TypedDict, cast

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain_core.messages import (
        AIMessage,
        AnyMessage,
        HumanMessage,
        RemoveMessage,
        SystemMessage,
        ToolMessage,
    )
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.config import get_config

    from .langchain_messages import (
        Json,
        files_of,
        from_context,
        given_messages,
        original_of,
        plain_content,
        stored_messages,
        without_thinking,
    )
    from .langgraph_checkpoints import Imported, import_checkpoints
except ImportError as error:  # pragma: no cover
    raise ImportError(
        "refold.adapters.langchain needs langchain 1.2 or newer: pip install 'refold[langchain]'"
    ) from error

from refold.application.agent_tools.tool_scope import EditMode, Tool
from refold.application.api.async_memory import AsyncMemory
from refold.application.api.blocking import run_to_end
from refold.application.api.following import Failures, FollowingMemory, says_the_same
from refold.application.api.memory import Memory
from refold.application.api.results import Context
from refold.application.conversation.models import binds_thinking
from refold.application.conversation.parsing import read_thread_id
from refold.application.runtime.opening_process import waiting_at_most
from refold.application.runtime.plain_lines import plain_logger, raised
from refold.domain.errors import InvalidSetting
from refold.domain.value import is_object

__all__ = [
    "Imported",
    "MemoryMiddleware",
    "MemoryState",
    "Removed",
    "import_checkpoints",
    "stored_messages",
]
logger = plain_logger("refold.adapters.langchain")
_CHECKPOINTER = "__pregel_checkpointer"
"""Key of the checkpointer in the configuration of a running graph; None if there is no checkpointer."""

_REMEMBERED = 256
"""Number of graphs whose conversations are remembered for their tools."""


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
        edits: EditMode | None = None,
        lock_wait: float = 2.0,
    ) -> None:
        """Create the middleware.

        ``thread``: id of the conversation, if it is not the thread id of the agent's configuration. ``owner``: owner of
        the conversations. ``keep_in_state``: number of messages to keep in the agent's state at the end of a turn, in
        whole turns; None keeps all. ``recall``: give the agent the tools that search
        its conversation. ``edits``: give it ``remember``, ``pin`` and ``forget`` as well; with ``propose`` the program
        decides about each call, with ``allow`` it is carried out at once.
        ``lock_wait``: seconds to wait for a log that another process holds.

        Raises:
            InvalidThreadId: ``thread`` is blank, too long or not printable.
            InvalidSetting: ``keep_in_state`` is no number of messages, or ``memory`` is no memory.
        """
        super().__init__()
        if keep_in_state is not None and (type(keep_in_state) is not int or keep_in_state < 1):
            raise InvalidSetting(
                f"keep_in_state={keep_in_state!r}: must be an integer of 1 or more, or None",
                setting="keep_in_state",
                value=keep_in_state,
            )
        self._memory = FollowingMemory(memory, owner)
        self._thread = None if thread is None else read_thread_id(thread)
        self._keep = keep_in_state
        self._lock_wait = lock_wait
        self._failures = Failures(logger, "the model gets the agent's own messages")
        self._said_passed_on = False
        self._conversations = OrderedDict[tuple[str, str], str]()
        """Conversations of the graphs that called their model last, by thread and graph."""
        wanted = recall or edits is not None
        self.tools = _memory_tools(self._memory, self._own_conversation, edits) if wanted else []

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with the compacted messages."""
        thread_id = self._thread_id()
        own, _ = _split(request)
        try:
            with waiting_at_most(self._lock_wait):
                follow, length = self._following(thread_id, own, request.state)
                context = self._memory.context_of(follow, length, **_shown(request))
                has_all = self._has_all(thread_id, own, context)
        except Exception as error:  # The agent must go on as it would without a memory.
            return handler(self._failed(request, thread_id, error))
        return handler(self._compacted(request, thread_id, context, has_all=has_all))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Call the model with the compacted messages."""
        thread_id = self._thread_id()
        own, _ = _split(request)
        try:
            with waiting_at_most(self._lock_wait):
                follow, length = self._following(thread_id, own, request.state)
                context = await self._memory.acontext_of(follow, length, **_shown(request))
                has_all = await asyncio.to_thread(self._has_all, thread_id, own, context)
        except Exception as error:  # The agent must go on as it would without a memory.
            return await handler(self._failed(request, thread_id, error))
        return await handler(self._compacted(request, thread_id, context, has_all=has_all))

    def after_agent(self, state: Any, runtime: Any) -> Json | None:
        """Store the end of a turn, and take messages out of the state that the log has."""
        del runtime
        messages = cast(list[AnyMessage], state["messages"])
        thread_id = self._thread_id()
        try:
            with waiting_at_most(self._lock_wait):
                name = self._follow(thread_id, messages, state)
                return self._shorten(thread_id, messages, state, name)
        except Exception as error:  # The end comes again in the agent's messages.
            self._failures.report(thread_id, error)
            return None

    def _shorten(
        self, thread_id: str, messages: Sequence[AnyMessage], state: Any, name: str
    ) -> Json | None:
        if self._keep is None or len(messages) <= self._keep or self._is_passed_on():
            return None
        begins = (n for n, one in enumerate(messages) if isinstance(one, HumanMessage))
        cut = next((n for n in begins if len(messages) - n <= self._keep), None)
        removed = state.get("refold_removed")
        before = removed["messages"] if removed else 0
        # Another agent of the same thread may have followed its own list since.
        is_kept = self._memory.followed(thread_id, before + len(messages)) == name
        # By its id: not every reducer of a state knows how to remove everything.
        if not cut or not is_kept or any(one.id is None for one in messages[:cut]):
            return None
        return {
            "messages": [RemoveMessage(id=str(one.id)) for one in messages[:cut]],
            "refold_removed": Removed(messages=before + cut, conversation=name),
        }

    async def aafter_agent(self, state: Any, runtime: Any) -> Json | None:
        """Store the end of a turn, and take messages out of the state that the log has."""
        return await run_to_end(self.after_agent, state, runtime)

    def _is_passed_on(self) -> bool:
        """Return whether the application passes the messages from turn to turn, as no checkpointer keeps the state.

        A graph inside of another one has its checkpointer, but begins without a state, unless it asks for one to last.
        """
        known = get_config().get("configurable", {})
        # The name of a task has its id, which is another one in each turn.
        if known.get(_CHECKPOINTER, self) is not None and ":" not in _graph():
            return False
        if not self._said_passed_on:
            self._said_passed_on = True
            logger.warning(
                "keep_in_state needs a checkpointer that keeps the agent's own state; "
                "without one the state stays whole"
            )
        return True

    def _thread_id(self) -> str:
        if self._thread is not None:
            return self._thread
        return str(get_config().get("configurable", {}).get("thread_id") or "agent")

    def _own_conversation(self) -> str:
        """Return the conversation of the agent whose tool runs: others may use the same thread at the same time."""
        thread_id = self._thread_id()
        known = self._conversations.get((thread_id, _graph()))
        return known or self._memory.current(thread_id).thread_id

    def _follow(self, thread_id: str, messages: Sequence[AnyMessage], state: Any) -> str:
        """Store new messages of the state. A reply is one when other middleware has approved or changed it."""
        return self._memory.follow(
            thread_id,
            given_messages(messages),
            original=partial(_original_at, messages),
            **_missing(state),
        )

    def _following(
        self, thread_id: str, own: Sequence[AnyMessage], state: Any
    ) -> tuple[Callable[[], str], int]:
        """Return a function that stores new messages of the state for a request, and the length of the whole list."""

        def follow() -> str:
            name = self._follow(thread_id, own, state)
            graph = thread_id, _graph()
            self._conversations.pop(graph, None)  # It becomes the last one again.
            self._conversations[graph] = name
            if len(self._conversations) > _REMEMBERED:
                self._conversations.popitem(last=False)
            return name

        return follow, len(own) + _missing(state).get("start", 0)

    def _has_all(self, thread_id: str, own: Sequence[AnyMessage], context: Context) -> bool:
        """Return whether a conversation has these messages alone. The beginning of a state may be in the log only."""
        return self._memory.followed(thread_id, len(own)) == context.thread_id

    def _compacted(
        self, request: ModelRequest[Any], thread_id: str, context: Context, *, has_all: bool
    ) -> ModelRequest[Any]:
        self._failures.is_over(thread_id)
        return _override(request, context, has_all=has_all)

    def _failed(
        self, request: ModelRequest[Any], thread_id: str, error: Exception
    ) -> ModelRequest[Any]:
        """Return the agent's own request, without thinking that was signed for another prefix."""
        self._failures.report(thread_id, error)
        if not binds_thinking(_model_name(request.model)):
            return request
        own = [without_thinking(message) for message in request.messages]
        return request.override(messages=own)


def _graph() -> str:
    """Return which graph runs: empty, or the path of the tasks in which it runs inside of others."""
    known = get_config().get("configurable", {})
    return str(known.get("checkpoint_ns") or "").rpartition("|")[0]


def _memory_tools(
    memory: FollowingMemory, name: Callable[[], str], edits: EditMode | None
) -> list[Any]:
    """Return the tools with which an agent searches its conversation, and edits its memory if that is allowed."""
    known = memory.conversation("agent").tools(edits=edits)
    return [_memory_tool(tool, memory, name, edits) for tool in known]


def _memory_tool(
    tool: Tool, memory: FollowingMemory, name: Callable[[], str], edits: EditMode | None
) -> Any:
    from langchain_core.tools import StructuredTool

    def answer(**given: Any) -> str:
        try:
            tools = memory.conversation(name()).tools(edits=edits)
            return next(one for one in tools if one.name == tool.name).call(given).text
        except Exception as error:  # The agent must go on without its memory.
            return (
                f"{tool.name}: the memory cannot be used now ({raised(error)}); go on without it."
            )

    return StructuredTool.from_function(
        func=answer,
        name=tool.name,
        description=tool.description,
        args_schema=tool.input_schema,
    )


def _split(request: ModelRequest[Any]) -> tuple[Sequence[AnyMessage], Sequence[AnyMessage]]:
    """Return the messages of the state, and those that other middleware added for this request alone.

    Where a request is not the state with such an end, its own messages count.
    """
    own = request.state.get("messages") or []
    given = request.messages
    pairs = zip(own, given, strict=False)
    is_state = all(a is b or (a.id is not None and a.id == b.id) for a, b in pairs)
    if own and len(own) <= len(given) and is_state:
        return own, given[len(own) :]
    return given, []


def _shown(request: ModelRequest[Any]) -> Json:
    """Return what the compacted request depends on besides the messages."""
    return {
        "system": _system_of(request),
        "tools": _definitions(request.tools),
        "model": _model_name(request.model),
    }


def _original_at(messages: Sequence[AnyMessage], index: int) -> Json | None:
    return original_of(messages[index])


def _missing(state: Any) -> Json:
    """Return which messages at the beginning are in the log only."""
    removed = state.get("refold_removed") if is_object(state) else None
    return {"start": removed["messages"], "name": removed["conversation"]} if removed else {}


def _model_name(model: Any) -> str | None:
    name = getattr(model, "model", None) or getattr(model, "model_name", None)
    return name if isinstance(name, str) else None


def _system_of(request: ModelRequest[Any]) -> Any:
    message = request.system_message
    return None if message is None else plain_content(message.content)


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


def _may_be_sent(messages: Sequence[AnyMessage]) -> bool:
    """Return whether any model accepts these messages.

    Each call has its result, each message says something, and system messages stand at the beginning.
    """
    used, unanswered = set[str](), set[str]()
    for before, message in zip([None, *messages], messages, strict=False):
        if isinstance(message, SystemMessage) and not isinstance(before, SystemMessage | None):
            return False
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in unanswered:
                return False
            unanswered.remove(message.tool_call_id)
            continue
        calls = [str(c["id"]) for c in message.tool_calls] if isinstance(message, AIMessage) else []
        is_blank = not calls and (not message.content or not str(message.content).strip())
        if unanswered or is_blank or len(set(calls)) < len(calls) or used.intersection(calls):
            return False
        used.update(calls)
        unanswered = set(calls)
    return not unanswered


def _override(request: ModelRequest[Any], context: Context, *, has_all: bool) -> ModelRequest[Any]:
    """Return the request with the compacted messages; as it is while they say what the agent's own say."""
    own, added = _split(request)
    is_same_system = context.system == (_system_of(request) or "")
    is_own = has_all and context.is_whole and _may_be_sent(own)
    if is_own or (is_same_system and says_the_same(context.messages, given_messages(own))):
        # Middleware before this one may have edited the messages of the request alone.
        is_state = all(a is b for a, b in zip(own, request.messages, strict=False))
        return request if is_state else request.override(messages=[*own, *added])
    is_anthropic = "anthropic" in str(getattr(request.model, "_llm_type", ""))
    messages = from_context(context, is_anthropic, files_of(own))
    system = SystemMessage(content=cast(Any, context.system)) if context.system else None
    return request.override(
        messages=[*cast(Iterator[AnyMessage], messages), *added], system_message=system
    )

"""A memory for agents of Pydantic AI, as a capability."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

try:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import InstructionPart
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import RunContext

    from .pydantic_ai_messages import GivenMessages, from_context, stored_messages
except ImportError as error:  # pragma: no cover
    raise ImportError(
        "refold.adapters.pydantic_ai needs pydantic-ai-slim 2.68 or newer: pip install 'refold[pydantic-ai]'"
    ) from error

from refold.application.api.async_memory import AsyncMemory
from refold.application.api.blocking import run_to_end
from refold.application.api.following import Failures, FollowingMemory, says_the_same
from refold.application.api.memory import Memory
from refold.application.api.results import Context
from refold.application.conversation.parsing import read_thread_id
from refold.application.runtime.opening_process import waiting_at_most
from refold.application.runtime.plain_lines import plain_logger

__all__ = ["MemoryCapability", "stored_messages"]
logger = plain_logger("refold.adapters.pydantic_ai")
ThreadOf = Callable[[RunContext[Any]], str]


class MemoryCapability(AbstractCapability[Any]):
    """Stores the history of an agent, and gives its model the compacted messages.

    The history itself stays as it is. If the memory cannot be used, the model gets the agent's own messages, with one
    warning.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        thread: str | ThreadOf | None = None,
        owner: str | None = None,
        lock_wait: float = 2.0,
    ) -> None:
        """Create the capability.

        ``thread``: id of the conversation, or a function of the run that returns it; by default the
        ``conversation_id`` of the run. ``owner``: owner of the conversations. ``lock_wait``: seconds to wait for a log
        that another process holds.

        Raises:
            InvalidThreadId: ``thread`` is blank, too long or not printable.
            InvalidSetting: ``memory`` is no memory.
        """
        self._memory = FollowingMemory(memory, owner)
        self._thread = thread if thread is None or callable(thread) else read_thread_id(thread)
        self._lock_wait = lock_wait
        self._failures = Failures(logger, "the model gets the agent's own messages")

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Store what is new in the history, and return the request with the compacted messages."""
        given = GivenMessages(request_context.messages)
        thread_id = ""
        try:
            thread_id = self._thread_id(ctx)
            with waiting_at_most(self._lock_wait):
                follow = self._following(thread_id, given)
                shown = _shown(request_context, given)
                context = await self._memory.acontext_of(follow, len(given.messages), **shown)
                # What is shown whole has the whole history: another run may have gone on since.
                is_own = context.is_whole
        except Exception as error:  # The agent must go on as it would without a memory.
            self._failures.report(thread_id, error)
            return request_context
        self._failures.is_over(thread_id)
        return request_context if is_own else _compacted(request_context, given, context)

    async def after_run(
        self, ctx: RunContext[Any], *, result: AgentRunResult[Any]
    ) -> AgentRunResult[Any]:
        """Store the end of a run."""
        thread_id = ""
        try:
            thread_id = self._thread_id(ctx)
            with waiting_at_most(self._lock_wait):
                given = GivenMessages(result.all_messages())
                await run_to_end(self._following(thread_id, given))
        except Exception as error:  # The end comes again in the history of the next run.
            self._failures.report(thread_id, error)
        return result

    def _thread_id(self, ctx: RunContext[Any]) -> str:
        if callable(self._thread):
            return read_thread_id(self._thread(ctx))
        return self._thread or read_thread_id(ctx.conversation_id or ctx.run_id or "agent")

    def _following(self, thread_id: str, given: GivenMessages) -> Callable[[], str]:
        return partial(self._memory.follow, thread_id, given.messages, original=given.original)


def _instructions(request: ModelRequestContext) -> str:
    parts = request.model_request_parameters.instruction_parts or []
    return "\n\n".join(part.content for part in parts)


def _shown(request: ModelRequestContext, given: GivenMessages) -> dict[str, Any]:
    """Return what the compacted request depends on besides the messages."""
    parameters = request.model_request_parameters
    system = [text for text in (_instructions(request), *given.prompts) if text]
    return {
        "system": "\n\n".join(system) or None,
        "tools": [
            {
                "name": tool.name,
                "description": tool.description or "",
                "input_schema": {"type": "object", **tool.parameters_json_schema},
            }
            for tool in (*parameters.function_tools, *parameters.output_tools)
        ],
        "model": request.model.model_name,
    }


def _compacted(
    request: ModelRequestContext, given: GivenMessages, context: Context
) -> ModelRequestContext:
    """Return the request with the compacted messages; as it is while they say what the agent's own say."""
    system, own = _text(context.system), _instructions(request)
    if system == own and says_the_same(context.messages, given.messages):
        return request
    parameters = request.model_request_parameters
    if added := system.removeprefix(own).strip():
        parts = [*(parameters.instruction_parts or []), InstructionPart(content=added)]
        parameters = replace(parameters, instruction_parts=parts)
    messages = from_context(context, given.files)
    return replace(request, messages=messages, model_request_parameters=parameters)


def _text(system: Any) -> str:
    if isinstance(system, str):
        return system
    return "\n\n".join(str(block.get("text")) for block in system)

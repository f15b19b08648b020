"""Use case: the context for the next request, or as it was at an earlier version."""

import asyncio
import logging

from refold.domain.budget import Budget
from refold.domain.errors import ContextWindowExceeded, InvalidSetting

from .context import Context
from .core import Core, Extras
from .errors import TokenCountError
from .loaded import LoadedConversation
from .ports import RequestCounter
from .rendering.blocks import copied
from .rendering.render import render
from .settling import is_due, settle

logger = logging.getLogger(__name__)


def ready_context(core: Core, thread_id: str, extras: Extras) -> Context | None:
    """The context of the newest version; None if a compaction is due before it can be made.

    Raises:
        ContextWindowExceeded: what must be in it does not fit.
    """
    loaded, budget = core.log.load(thread_id), core.budget(extras)
    context = _rendered(core, loaded, budget, extras)
    if is_due(core, loaded, budget, context.tokens):
        return None
    return _fitting(loaded, context)


async def settled_context(core: Core, thread_id: str, extras: Extras) -> Context:
    """Compact what is due, then make the context.

    Raises:
        ContextWindowExceeded: what must be in it does not fit.
    """
    budget = core.budget(extras)
    results = await settle(core, thread_id, budget)
    loaded = await asyncio.to_thread(core.log.load, thread_id)
    context = _fitting(loaded, _rendered(core, loaded, budget, extras))
    exact = await _exact_tokens(core, context)
    if exact > budget.limit:
        # The estimate was too low: settle once more, for a budget that is smaller by as much.
        tighter = budget.tightened(context.tokens / exact)
        results += await settle(core, thread_id, tighter)
        loaded = await asyncio.to_thread(core.log.load, thread_id)
        context = _rendered(core, loaded, budget, extras)
        exact = await _exact_tokens(core, context)
        if exact > budget.limit:
            raise ContextWindowExceeded(exact, budget.limit, _explanation(loaded, budget))
    return context.settled(tuple(results), exact, budget)


async def _exact_tokens(core: Core, context: Context) -> int:
    if not isinstance(core.counter, RequestCounter) or context.model is None:
        return context.tokens
    try:
        return await core.counter.count_request(
            model=context.model,
            system=context.system,
            messages=context.messages,
            tools=context.tools,
        )
    except TokenCountError as error:
        logger.warning("the request was not counted exactly, the estimate stands: %s", error)
        return context.tokens


def _fitting(loaded: LoadedConversation, context: Context) -> Context:
    budget = context.budget
    if context.tokens > budget.limit:
        raise ContextWindowExceeded(context.tokens, budget.limit, _explanation(loaded, budget))
    return context


def context_at(core: Core, thread_id: str, extras: Extras, version: int) -> Context:
    """The context as it was at ``version``: the same bytes as then, whatever happened since.

    Raises:
        InvalidSetting: there is no such version.
    """
    loaded = core.log.load(thread_id, at=version)
    if version < 0 or loaded.state.version < version:
        newest = core.log.load(thread_id).state.version
        raise InvalidSetting(f"at={version}: the conversation has versions 0 to {newest}")
    return _rendered(core, loaded, core.budget(extras), extras)


def _rendered(core: Core, loaded: LoadedConversation, budget: Budget, extras: Extras) -> Context:
    rendered = render(loaded.thread_id, loaded.window, extras.system, core.counter.count_text)
    return Context(
        thread_id=loaded.thread_id,
        version=loaded.state.version,
        model=extras.model or core.settings.model,
        system=rendered.system,
        messages=rendered.messages,
        tools=[copied(dict(tool)) for tool in extras.tools],
        tokens=rendered.tokens + core.extras_tokens(extras),
        budget=budget,
        summary=loaded.window.summary,
    )


def _explanation(loaded: LoadedConversation, budget: Budget) -> str:
    largest = sorted(loaded.window.entries, key=lambda e: e.tokens, reverse=True)[:3]
    parts = ", ".join(
        f"message {e.position} ({e.message.role}) {e.tokens:,} tokens" for e in largest
    )
    fixed = f"system text and tools {budget.fixed:,} tokens; " if budget.fixed else ""
    return (
        f"{fixed}the largest messages that must stay word for word: {parts or 'none'}. "
        "Use a model with a larger window, or send less at once"
    )

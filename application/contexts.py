"""Use case: the context for the next request, or as it was at an earlier version."""

import asyncio

from refold.domain.budget import Budget
from refold.domain.errors import ContextWindowExceeded, InvalidSetting

from .context import Context
from .core import Core, Extras
from .loaded import LoadedConversation
from .rendering.blocks import copied
from .rendering.render import render
from .settling import is_due, settle


def ready_context(core: Core, thread_id: str, extras: Extras) -> Context | None:
    """The context of the newest version; None if a compaction is due before it can be made.

    Raises:
        ContextWindowExceeded: what must be in it does not fit.
    """
    loaded, budget = core.log.load(thread_id), core.budget(extras)
    if is_due(core, loaded, budget):
        return None
    return _fitting(core, loaded, budget, extras)


async def settled_context(core: Core, thread_id: str, extras: Extras) -> Context:
    """Compact what is due, then make the context.

    Raises:
        ContextWindowExceeded: what must be in it does not fit.
    """
    budget = core.budget(extras)
    results = await settle(core, thread_id, budget)
    loaded = await asyncio.to_thread(core.log.load, thread_id)
    return _fitting(core, loaded, budget, extras).after(tuple(results))


def _fitting(core: Core, loaded: LoadedConversation, budget: Budget, extras: Extras) -> Context:
    context = _rendered(core, loaded, budget, extras)
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

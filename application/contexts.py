"""Use case: the context for the next request, or as it was at an earlier version."""

import asyncio
import logging
from typing import NamedTuple

from refold.domain.budget import Budget
from refold.domain.events import Trigger

from .abandoning import load_settled
from .context import Context
from .core import Core, Extras
from .errors import CANNOT_APPEND, TokenCountError
from .ladder.exceeding import window_exceeded
from .ladder.measuring import is_out_of_sight, measured
from .loaded import LoadedConversation
from .memories.choosing import choose_at_first, wants_first_choice
from .models import takes_signed_summaries
from .notes.taking import notes_are_due
from .observing import tell_request
from .ports import RequestCounter
from .rendering.blocks import copied
from .rendering.render import render
from .results import CompactionResult
from .settling import is_due, settle
from .time_travel.moments import At, loaded_at

logger = logging.getLogger(__name__)


class CurrentContext(NamedTuple):
    """The context as the newest version has it, which may be too large."""

    loaded: LoadedConversation
    context: Context
    is_due: bool
    """Whether a compaction is due, or notes are to be taken."""

    @property
    def fits(self) -> bool:
        """Whether the request may be sent as it is."""
        return self.context.tokens <= self.context.budget.limit

    @property
    def beside(self) -> int:
        """What the request has besides the conversation: fixed parts, and what rendering adds."""
        return self.context.tokens - self.loaded.state.tokens

    def fitting(self) -> Context:
        """The context.

        Raises:
            ContextWindowExceeded: what must be in it does not fit.
        """
        return _fitting(self.loaded, self.context)


def current_context(core: Core, thread_id: str, extras: Extras) -> CurrentContext:
    """The context of the newest version, with whether a compaction is due before it is sent."""
    core = core.for_model(extras.model)
    loaded, budget = load_settled(core, thread_id).present(), core.budget(extras)
    if wants_first_choice(core, loaded.state) and choose_at_first(core, thread_id, budget):
        loaded = core.log.load(thread_id).present()
    context = _present(core, loaded, budget, extras)
    due = is_due(core, loaded, budget, context.tokens)
    due = due or notes_are_due(core, loaded.state, budget, context.tokens)
    return CurrentContext(loaded, context, due)


async def settled_context(
    core: Core, thread_id: str, extras: Extras, *, trigger: Trigger = "size"
) -> Context:
    """Compact what is due, then make the context.

    Raises:
        ContextWindowExceeded: what must be in it does not fit.
    """
    core = core.for_model(extras.model)
    budget = core.budget(extras)
    results = await _settled(core, thread_id, budget, trigger)
    loaded = await asyncio.to_thread(core.log.load, thread_id)
    context = _fitting(loaded, _present(core, loaded, budget, extras))
    exact = await _exact_tokens(core, context)
    if exact > budget.limit:
        # The estimate was too low: settle once more, for a budget that is smaller by as much.
        tighter = budget.tightened(context.tokens / exact)
        results += await _settled(core, thread_id, tighter, trigger)
        loaded = await asyncio.to_thread(core.log.load, thread_id)
        context = _rendered(core, loaded, budget, extras)
        exact = await _exact_tokens(core, context)
        if exact > budget.limit:
            raise window_exceeded(loaded, exact, budget)
    context = context.settled(tuple(results), exact, budget)
    if trigger == "size":  # In the background nobody sends it.
        tell_request(core, loaded, context, extras)
    return context


async def _settled(
    core: Core, thread_id: str, budget: Budget, trigger: Trigger
) -> list[CompactionResult]:
    """Settle, or leave a request that fits as it is where nothing can be appended."""
    try:
        return await settle(core, thread_id, budget, trigger=trigger)
    except CANNOT_APPEND as error:
        now = await asyncio.to_thread(measured, core, thread_id, budget)
        if now.size > budget.limit:
            raise
        logger.warning("the context was not made smaller, it fits as it is: %s", error)
        return []


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
        raise window_exceeded(loaded, context.tokens, budget)
    return context


def context_at(core: Core, thread_id: str, extras: Extras, at: At) -> Context:
    """The context as it was at a version or a time: the same bytes as then, whatever happened since.

    Raises:
        InvalidSetting: there is no such version, or the time has no time zone.
        ConversationGone: the conversation was erased.
    """
    return context_of(core, loaded_at(core, thread_id, at), extras)


def context_of(core: Core, loaded: LoadedConversation, extras: Extras) -> Context:
    """The context of a conversation as it was loaded, which may be too large."""
    return _rendered(core, loaded, core.budget(extras), extras)


def _present(core: Core, loaded: LoadedConversation, budget: Budget, extras: Extras) -> Context:
    """The context; without messages where these are not in memory and do not fit: nobody may send it."""
    if not is_out_of_sight(loaded, budget):
        return _rendered(core, loaded, budget, extras)
    return Context(
        thread_id=loaded.thread_id,
        version=loaded.state.version,
        model=extras.model or core.settings.model,
        system="",
        messages=[],
        tools=[],
        tokens=loaded.state.tokens + budget.fixed,
        budget=budget,
        summary=loaded.window.summary,
    )


def _rendered(core: Core, loaded: LoadedConversation, budget: Budget, extras: Extras) -> Context:
    rendered = render(
        loaded.thread_id,
        loaded.window,
        core.system_of(extras),
        core.counter.count_text,
        signed=takes_signed_summaries(extras.model or core.settings.model),
        place=core.settings.summary_place,
    )
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
        memory=rendered.memory,
        opening=rendered.opening,
    )

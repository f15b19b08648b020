"""The context for the next request after a compaction that is due."""

import asyncio

from refold.application.api.results import CompactionResult, Context
from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import TokenCountError
from refold.application.ports.token_counter import RequestCounter
from refold.application.runtime.core import Core, Extras
from refold.application.runtime.foreign_code import Contained
from refold.application.runtime.plain_lines import plain_logger, raised
from refold.domain.compaction.budget import Budget
from refold.domain.events import Trigger

from .fit_to_budget import FitToBudget
from .next_request import check_fits, present_request, recall_lines, record_request
from .overflow import window_exceeded

logger = plain_logger(__name__)

MOST_TRIES = 8
"""Maximum number of attempts to shrink a request that other callers enlarge meanwhile."""


async def make_context(
    core: Core, thread_id: str, extras: Extras, *, trigger: Trigger = "size"
) -> Context:
    """Compact if due, then return the context.

    Raises:
        ContextWindowExceeded: content that must be included does not fit.
    """
    core = core.for_model(extras.model).with_answering_model(extras.model)
    budget = core.budget(extras)
    if trigger == "size":  # A background run does not send the request.
        stored = await asyncio.to_thread(core.log.load, thread_id)
        core.asked.expect(thread_id, core.frame(extras), stored.state)
    results: list[CompactionResult] = []
    loaded, context = await _make(core, thread_id, budget, budget, extras, trigger, results)
    check_fits(loaded, context, core.settings.shorten_texts)
    exact = await _exact_tokens(core, context)
    if exact > budget.limit:
        # The estimate was too low: fit once more to a budget reduced by the same ratio.
        tighter = budget.tightened(context.tokens / exact)
        loaded, context = await _make(core, thread_id, tighter, budget, extras, trigger, results)
        exact = await _exact_tokens(core, context)
        if exact > budget.limit:
            raise window_exceeded(loaded, exact, budget, may_shorten=core.settings.shorten_texts)
    context = context.with_compactions(tuple(results), exact, budget)
    if trigger == "size":
        await asyncio.to_thread(record_request, core, loaded, context, extras)
    return context


async def _make(
    core: Core,
    thread_id: str,
    aim: Budget,
    budget: Budget,
    extras: Extras,
    trigger: Trigger,
    results: list[CompactionResult],
) -> tuple[LoadedConversation, Context]:
    """Fit to ``aim`` and return the context; repeat if messages were appended in between."""
    tries = 0
    while True:
        tries += 1
        fitter = FitToBudget(core, thread_id, aim, trigger)
        await fitter.run()
        results += fitter.results
        stored = await asyncio.to_thread(core.log.load, thread_id)
        loaded = await asyncio.to_thread(core.asked.framed, stored)
        context = await asyncio.to_thread(present_request, core, loaded, budget, extras)
        context = context.with_version(stored.state.version)
        now = loaded.state
        # Messages may have been appended since the last check: fit once more.
        is_newest = (now.version, now.length) == (fitter.version, fitter.length)
        if context.tokens <= budget.limit or is_newest or tries == MOST_TRIES:
            break
    if trigger != "size":
        return loaded, context
    return await asyncio.to_thread(recall_lines, core, loaded, context, budget, extras)


async def _exact_tokens(core: Core, context: Context) -> int:
    if not isinstance(core.counter, RequestCounter) or context.model is None:
        return context.tokens
    try:
        with Contained():
            return await core.counter.count_request(
                model=context.model,
                system=context.system,
                messages=context.messages,
                tools=context.tools,
            )
    except TokenCountError as error:
        logger.warning("the request was not counted exactly, the estimate is used: %s", error)
        return context.tokens
    except Exception as error:  # A user's counter may raise anything.
        logger.warning(
            "the request was not counted exactly, the estimate is used: %s", raised(error)
        )
        return context.tokens

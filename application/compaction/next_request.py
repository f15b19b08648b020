"""The context for the next request, or as it was at an earlier version."""

import asyncio
from typing import NamedTuple

from refold.application.api.results import CompactionResult, Context
from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import TokenCountError
from refold.application.frames.sent_request import load_sent
from refold.application.history.moments import At, load_at
from refold.application.notes.note_taking import notes_are_due
from refold.application.ports.token_counter import RequestCounter
from refold.application.recall.owner_memories import choose_first_memories, wants_first_choice
from refold.application.recall.standing_recall import look_up_lines
from refold.application.rendering.render import render
from refold.application.rendering.request_blocks import copied
from refold.application.runtime.core import Core, Extras
from refold.application.runtime.foreign_code import Contained
from refold.application.runtime.observers import notify_request
from refold.application.runtime.plain_lines import plain_logger, raised
from refold.domain.compaction.budget import Budget
from refold.domain.events import Trigger

from .attempt import load_without_abandoned
from .fit_to_budget import FitToBudget, is_due
from .overflow import too_many_bytes, window_exceeded

logger = plain_logger(__name__)

MOST_TRIES = 8
"""Maximum number of attempts to shrink a request that other callers enlarge meanwhile."""


class CurrentContext(NamedTuple):
    """The context of the newest version, which may be too large."""

    loaded: LoadedConversation
    context: Context
    is_due: bool
    """True if a compaction or notes are due."""
    may_shorten: bool = True
    """True if user content may be shortened."""

    @property
    def fits(self) -> bool:
        """True if the request can be sent as it is."""
        budget = self.context.budget
        return self.context.tokens <= budget.limit and self.context.bytes <= budget.byte_limit

    @property
    def overhead(self) -> int:
        """Tokens of fixed parts and of what rendering adds to the conversation."""
        return self.context.tokens - self.loaded.state.tokens

    def fitting(self) -> Context:
        """Return the context.

        Raises:
            ContextWindowExceeded: content that must be included does not fit.
        """
        return _check_fits(self.loaded, self.context, self.may_shorten)


def current_context(core: Core, thread_id: str, extras: Extras) -> CurrentContext:
    """Return the context of the newest version, and whether a compaction is due before it is sent."""
    core = core.for_model(extras.model)
    stored, budget = load_without_abandoned(core, thread_id).present(), core.budget(extras)
    core.asked.expect(thread_id, core.frame(extras), stored.state)
    if stored.state.owner is not None and wants_first_choice(core, stored.state):
        choose_first_memories(core, thread_id, budget)
        # A simultaneous request may have recorded its choice first: this one shows the same.
        stored = core.log.load(thread_id).present()
    loaded = core.asked.framed(stored)
    context = _present(core, loaded, budget, extras).with_version(stored.state.version)
    due = is_due(core, loaded, budget, context.tokens) or context.bytes > budget.byte_limit
    due = due or notes_are_due(core, loaded.state, budget, context.tokens)
    if not due:
        without = context
        loaded, context = _recall_lines(core, loaded, context, budget, extras)
        # The lines may lift the request above the trigger.
        due = context is not without and is_due(core, loaded, budget, context.tokens)
    return CurrentContext(loaded, context, due, core.settings.shorten_texts)


def _recall_lines(
    core: Core, loaded: LoadedConversation, context: Context, budget: Budget, extras: Extras
) -> tuple[LoadedConversation, Context]:
    """Return the request with lines that match the newest message, recorded with the next event."""
    lines = look_up_lines(core, loaded, context)
    if lines is None:
        return loaded, context
    core.asked.recall(loaded.thread_id, lines)
    loaded = loaded.after((lines,))
    return loaded, _present(core, loaded, budget, extras).with_version(context.version)


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
    _check_fits(loaded, context, core.settings.shorten_texts)
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


def record_request(
    core: Core, loaded: LoadedConversation, context: Context, extras: Extras
) -> None:
    """Record that the caller gets this request and may send it, and notify the observers."""
    core.asked.made(context.thread_id, context.version, loaded.state.length)
    notify_request(core, loaded, context, extras)


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
        context = await asyncio.to_thread(_present, core, loaded, budget, extras)
        context = context.with_version(stored.state.version)
        now = loaded.state
        # Messages may have been appended since the last check: fit once more.
        is_newest = (now.version, now.length) == (fitter.version, fitter.length)
        if context.tokens <= budget.limit or is_newest or tries == MOST_TRIES:
            break
    if trigger != "size":
        return loaded, context
    return await asyncio.to_thread(_recall_lines, core, loaded, context, budget, extras)


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


def _check_fits(loaded: LoadedConversation, context: Context, may_shorten: bool) -> Context:
    budget = context.budget
    if context.tokens > budget.limit:
        raise window_exceeded(loaded, context.tokens, budget, may_shorten=may_shorten)
    if context.bytes > budget.byte_limit:
        raise too_many_bytes(loaded, context.bytes, budget)
    return context


def context_at(core: Core, thread_id: str, extras: Extras, at: At) -> Context:
    """Return the context at a version or time, byte for byte, regardless of later events.

    System text, tools, model and layout default to those of the request at that time.

    Raises:
        InvalidSetting: there is no such version, or the time has no time zone.
        ConversationGone: the conversation was erased.
    """
    return context_of(core, load_at(core, thread_id, at), extras)


def context_of(core: Core, then: LoadedConversation, extras: Extras) -> Context:
    """Return the context of a loaded conversation as it was sent; it may be too large."""
    loaded, extras = load_sent(core, then, extras)
    context = _render(core, loaded, core.budget(extras), extras)
    return context.with_version(then.state.version)


def _present(core: Core, loaded: LoadedConversation, budget: Budget, extras: Extras) -> Context:
    """Return the context, without messages if they are not in memory and do not fit."""
    if not loaded.is_too_long_to_render(budget):
        return _render(core, loaded, budget, extras)
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


def _render(core: Core, loaded: LoadedConversation, budget: Budget, extras: Extras) -> Context:
    layout = core.layout(extras)
    rendered = render(
        loaded.thread_id,
        loaded.window,
        core.system_of(extras),
        core.counter.count_text,
        signed=layout.signed,
        place=layout.place,
        recalled=core.recalled.find(core.log, loaded),
        kept=core.kept_turns,
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
        bytes=rendered.bytes + budget.fixed_bytes,
        originals=rendered.originals,
    )

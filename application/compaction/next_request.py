"""The context for the next request, or as it was at an earlier version."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from refold.application.api.results import Context
from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogError
from refold.application.ports.processes import Owner
from refold.application.rendering.kept_turns import KeptTurns
from refold.application.rendering.render import render
from refold.application.runtime.core import Core, Extras
from refold.application.runtime.observers import notify_request
from refold.application.runtime.opening_process import BRIEFLY, waiting_at_most
from refold.application.runtime.plain_lines import plain_logger
from refold.domain.compaction.budget import Budget, may_archive
from refold.domain.conversation import Conversation
from refold.domain.events import CompactionFailed

from .unwritten import is_live

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refold.application.conversation.entries import Entry
    from refold.application.conversation.loaded import LoadedConversation
    from refold.application.history.moments import At


logger = plain_logger(__name__)


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
        return self.context.tokens <= budget.limit and not _is_heavy(self.context)

    @property
    def overhead(self) -> int:
        """Tokens of fixed parts and of what rendering adds to the conversation."""
        return self.context.tokens - self.loaded.state.tokens

    def fitting(self) -> Context:
        """Return the context.

        Raises:
            ContextWindowExceeded: content that must be included does not fit.
        """
        return check_fits(self.loaded, self.context, self.may_shorten)


def _is_heavy(context: Context) -> bool:
    """Return whether a request has more bytes, or more images and documents, than allowed."""
    budget = context.budget
    return context.bytes > budget.byte_limit or context.images > budget.image_limit


def current_context(core: Core, thread_id: str, extras: Extras) -> CurrentContext:
    """Return the context of the newest version, and whether a compaction is due before it is sent."""
    core = core.for_model(extras.model)
    stored, budget = load_without_abandoned(core, thread_id).present(), core.budget(extras)
    core.asked.expect(thread_id, core.frame(extras), stored.state)
    if core.settings.memories.most and stored.state.owner is not None:
        stored = _with_first_memories(core, stored, budget)
    loaded = core.asked.framed(stored)
    # If lines may be recalled, the request is made twice, and the first one is only measured.
    is_measured = _question_of(loaded) is not None and core.kept_turns.has(thread_id)
    version = stored.state.version
    context = present_request(core, loaded, budget, extras, version, is_measured=is_measured)
    due = is_due(core, loaded, budget, context.tokens) or _is_heavy(context)
    due = due or notes_are_due(core, loaded.state, budget, context.tokens)
    if not due:
        without = context
        loaded, context = recall_lines(core, loaded, context, budget, extras)
        # The lines may lift the request above the trigger.
        due = context is not without and is_due(core, loaded, budget, context.tokens)
        is_measured = is_measured and context is without
    if is_measured:
        context = present_request(core, loaded, budget, extras, version)
    return CurrentContext(loaded, context, due, core.settings.shorten_texts)


def _with_first_memories(
    core: Core, stored: LoadedConversation, budget: Budget
) -> LoadedConversation:
    from refold.application.recall.owner_memories import choose_first_memories, wants_first_choice

    if not wants_first_choice(core, stored.state):
        return stored
    choose_first_memories(core, stored.thread_id, budget)
    # A simultaneous request may have recorded its choice first: this one shows the same.
    return core.log.load(stored.thread_id).present()


def recall_lines(
    core: Core, loaded: LoadedConversation, context: Context, budget: Budget, extras: Extras
) -> tuple[LoadedConversation, Context]:
    """Return the request with lines that match the newest message, recorded with the next event."""
    entry = _question_of(loaded)
    if entry is None:
        return loaded, context
    from refold.application.recall.standing_recall import look_up_lines

    lines = look_up_lines(core, loaded, entry, context)
    if lines is None:
        return loaded, context
    core.asked.recall(loaded.thread_id, lines)
    loaded = loaded.after((lines,))
    return loaded, present_request(core, loaded, budget, extras, context.version)


def _question_of(loaded: LoadedConversation) -> Entry | None:
    """Return the newest message, if lines of messages out of sight may be recalled for it.

    A person may have written it, it has no lines yet, and something of the conversation is not shown in full.
    """
    window = loaded.window
    hides = window.summary is not None or bool(window.previews)
    entry = window.entries[-1] if hides and window.entries else None
    if entry is None or entry.message.role != "user" or entry.position in window.recalled:
        return None
    return None if entry.message.author in ("program", "tool") else entry


def record_request(
    core: Core, loaded: LoadedConversation, context: Context, extras: Extras
) -> None:
    """Record that the caller gets this request and may send it, and notify the observers."""
    core.asked.made(context.thread_id, context.version, loaded.state.length)
    notify_request(core, loaded, context, extras)


def check_fits(loaded: LoadedConversation, context: Context, may_shorten: bool) -> Context:
    """Return a context that fits.

    Raises:
        ContextWindowExceeded: content that must be included does not fit.
    """
    budget = context.budget
    if context.tokens <= budget.limit and context.bytes <= budget.byte_limit:
        return context
    from .overflow import too_many_bytes, window_exceeded

    if context.tokens > budget.limit:
        raise window_exceeded(loaded, context.tokens, budget, may_shorten=may_shorten)
    raise too_many_bytes(loaded, context.bytes, budget)


def context_at(core: Core, thread_id: str, extras: Extras, at: At) -> Context:
    """Return the context at a version or time, byte for byte, regardless of later events.

    System text, tools, model and layout default to those of the request at that time.

    Raises:
        InvalidSetting: there is no such version, or the time has no time zone.
        ConversationGone: the conversation was erased.
    """
    from refold.application.history.moments import load_at

    return context_of(core, load_at(core, thread_id, at), extras)


def context_of(core: Core, then: LoadedConversation, extras: Extras) -> Context:
    """Return the context of a loaded conversation as it was sent; it may be too large."""
    from refold.application.frames.sent_request import load_sent

    loaded, extras = load_sent(core, then, extras)
    version, budget = loaded.state.version, core.budget(extras)
    context = _render(core, loaded, budget, extras, version, core.kept_turns)
    return context.with_version(then.state.version)


def present_request(
    core: Core,
    loaded: LoadedConversation,
    budget: Budget,
    extras: Extras,
    version: int,
    *,
    is_measured: bool = False,
) -> Context:
    """Return the context of a version, without messages if they are not in memory and do not fit.

    With ``is_measured``, its messages must not be given away.
    """
    if not loaded.is_too_long_to_render(budget):
        kept = core.kept_turns.measuring() if is_measured else core.kept_turns
        return _render(core, loaded, budget, extras, version, kept)
    return Context(
        thread_id=loaded.thread_id,
        version=version,
        model=extras.model or core.settings.model,
        system="",
        messages=[],
        tools=[],
        tokens=loaded.state.tokens + budget.fixed,
        budget=budget,
        summary=loaded.window.summary,
    )


def _render(
    core: Core,
    loaded: LoadedConversation,
    budget: Budget,
    extras: Extras,
    version: int,
    kept: KeptTurns,
) -> Context:
    layout = core.layout(extras)
    rendered = render(
        loaded.thread_id,
        loaded.window,
        core.system_of(extras),
        core.counter.count_text,
        signed=layout.signed,
        place=layout.place,
        recalled=core.recalled.find(core.log, loaded),
        kept=kept,
    )
    return Context(
        thread_id=loaded.thread_id,
        version=version,
        model=extras.model or core.settings.model,
        system=rendered.system,
        messages=rendered.messages,
        tools=_copies_of(extras.tools) if extras.tools else [],
        tokens=rendered.tokens + core.extras_tokens(extras),
        budget=budget,
        summary=loaded.window.summary,
        memory=rendered.memory,
        opening=rendered.opening,
        bytes=rendered.bytes + budget.fixed_bytes,
        images=rendered.images,
        originals=rendered.originals,
        is_whole=rendered.is_whole,
    )


def _copies_of(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    # Only agents with tools need this module.
    from refold.application.rendering.kept_tools import keep_tools

    return keep_tools(tools).copies()


def is_due(core: Core, loaded: LoadedConversation, budget: Budget, size: int) -> bool:
    """Return whether a conversation whose request has ``size`` tokens must be made smaller first."""
    return is_large(core, loaded, budget, size) or is_long(core, loaded, budget)


def is_large(core: Core, loaded: LoadedConversation, budget: Budget, size: int) -> bool:
    """Return whether a request of ``size`` tokens reaches the trigger, and a compaction may begin."""
    if size < budget.trigger:
        return False
    from refold.domain.compaction.compacting import may_compact

    return size > budget.limit or may_compact(loaded.state, budget.window, core.settings.policy)


def is_long(core: Core, loaded: LoadedConversation, budget: Budget) -> bool:
    """Return whether there are too many live messages, and some can be archived."""
    policy = core.settings.policy
    if not may_archive(loaded.state, policy):
        return False
    from refold.domain.cuts.planner import CompactionPlan, plan_compaction

    return isinstance(plan_compaction(loaded.state, budget, policy, "size"), CompactionPlan)


def notes_from(core: Core, state: Conversation, budget: Budget) -> int | None:
    """Return the request size that triggers notes before any compaction.

    Return None if notes were already taken since the last compaction, or if that size is not above the target
    of a compaction.
    """
    settings = core.settings.notes
    least = budget.window - settings.reserve_tokens - settings.soft_tokens
    is_done = settings.by == "off" or state.has_notes or state.notes_to >= state.length
    return None if is_done or least <= budget.target else least


def notes_are_due(core: Core, state: Conversation, budget: Budget, size: int) -> bool:
    """Return whether a request of ``size`` tokens triggers notes."""
    least = notes_from(core, state, budget)
    return least is not None and size >= least


def is_abandoned(owner: Owner, state: Conversation) -> bool:
    """Return whether the running compaction will never end because its process no longer works on it.

    The process is certainly dead, or is this one, which finished the attempt but could not record its end.
    """
    if state.attempt is None:
        return False
    name = state.attempt.owner or ""
    is_ours = bool(name) and name == owner.name
    return owner.is_gone(name) or (is_ours and not is_live(state.attempt.attempt_id))


def end_abandoned(core: Core, loaded: LoadedConversation) -> tuple[CompactionFailed, ...]:
    """Return the events that end an abandoned compaction; empty if a process still works on it."""
    from refold.domain.compaction.compacting import abandon_compaction

    if not is_abandoned(core.owner, loaded.state):
        return ()
    return abandon_compaction(loaded.state, "the process that worked on it ended before it did")


def load_without_abandoned(core: Core, thread_id: str) -> LoadedConversation:
    """Return the conversation after ending an abandoned compaction."""
    loaded = core.log.load(thread_id)
    if not is_abandoned(core.owner, loaded.state):
        return loaded
    with (
        suppress(LogError),
        waiting_at_most(BRIEFLY),
    ):  # Without it, the conversation is still readable.
        loaded, _ = core.log.transact(
            thread_id, lambda now: end_abandoned(core, now), at=core.clock()
        )
    return loaded

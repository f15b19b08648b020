"""Decide before a request whether notes or a compaction are due, or an abandoned compaction must be ended."""

from contextlib import suppress

from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogError
from refold.application.ports.processes import Owner
from refold.application.runtime.core import Core
from refold.application.runtime.opening_process import BRIEFLY, waiting_at_most
from refold.domain.compaction.budget import Budget, may_archive
from refold.domain.conversation import Conversation
from refold.domain.events import CompactionFailed

from .unwritten import is_live


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
    """Return the request size that triggers notes before any compaction, or None.

    It is None if notes were already taken since the last compaction, or if the size is not above the target
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

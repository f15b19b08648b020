"""Use case: undo the newest compaction."""

from collections.abc import Sequence

from refold.domain.events import Event
from refold.domain.reverting import revert_compaction

from .core import Core, Extras
from .frames.as_sent import as_carried
from .loaded import LoadedConversation
from .memories.choosing import choose_anew
from .observing import tell_compaction
from .outcomes import outcome_of, sized
from .results import CompactionResult


def revert(core: Core, thread_id: str, reason: str, extras: Extras) -> CompactionResult:
    """Bring back what the active summary covers; nothing to undo is success.

    A request that no longer fits then is made smaller again by the next context. Memories are chosen
    anew: what is in view again needs no quotation.
    """
    was: LoadedConversation = LoadedConversation(thread_id)

    def decide(loaded: LoadedConversation) -> Sequence[Event]:
        nonlocal was
        was = loaded.present()
        if loaded.state.summary is None or _is_final(loaded):
            return ()
        before = core.log.load(thread_id, at=loaded.state.summary.version - 1)
        return revert_compaction(loaded.state, before.state, reason.strip())

    now, events = core.log.transact(thread_id, decide, at=core.clock())
    extras = as_carried(core, thread_id, extras)
    core = core.for_model(extras.model)
    budget = core.budget(extras)
    if not events and _is_final(now):
        why = (
            "the active summary was made because messages were erased: the one before is withdrawn"
        )
        return outcome_of(core, budget, was, now, "nothing_to_do", "erased", why)
    if not events:
        return outcome_of(
            core, budget, was, now, "nothing_to_do", "no_summary", "no summary is active"
        )
    result = outcome_of(core, budget, was, now, "reverted")
    if choose_anew(core, thread_id, budget):
        now = core.log.load(thread_id)
    result = sized(core, budget, was, now, result)
    tell_compaction(core, result)
    return result


def _is_final(loaded: LoadedConversation) -> bool:
    summary = loaded.window.summary
    return summary is not None and summary.trigger == "erasure"

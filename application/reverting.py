"""Use case: undo the newest compaction."""

from collections.abc import Sequence

from refold.domain.events import CompactionReverted, Event
from refold.domain.reverting import revert_compaction

from .core import Core, Extras
from .loaded import LoadedConversation
from .observing import tell_compaction
from .results import CompactionResult


def revert(core: Core, thread_id: str, reason: str, extras: Extras) -> CompactionResult:
    """Bring back what the active summary covers; nothing to undo is success.

    A request that no longer fits then is made smaller again by the next context.
    """
    was: LoadedConversation = LoadedConversation(thread_id)

    def decide(loaded: LoadedConversation) -> Sequence[Event]:
        nonlocal was
        was = loaded
        if loaded.state.summary is None:
            return ()
        before = core.log.load(thread_id, at=loaded.state.summary.version - 1)
        return revert_compaction(loaded.state, before.state, reason.strip())

    now, events = core.log.transact(thread_id, decide, at=core.clock())
    fixed = core.budget(extras).fixed
    summary = now.state.summary
    result = CompactionResult(
        outcome="reverted" if events else "nothing_to_do",
        reason="" if events else "no_summary",
        detail="" if events else "no summary is active",
        tokens_before=was.state.tokens + fixed,
        tokens_after=now.state.tokens + fixed,
        summary_id=summary.summary_id if summary else None,
        messages_covered=summary.coverage.count if summary else 0,
        messages_kept=len(now.window.entries),
        thread_id=thread_id,
    )
    if any(isinstance(event, CompactionReverted) for event in events):
        tell_compaction(core, result)
    return result

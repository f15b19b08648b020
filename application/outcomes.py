"""How a compaction went, told as a result."""

from refold.domain.budget import Budget
from refold.domain.compacting import is_breaker_open
from refold.domain.cuts.planner import NothingToCompact
from refold.domain.events import Trigger

from .addresses import address_of
from .core import Core
from .ladder.measuring import Measured, measured_as
from .ladder.rungs import Shortened
from .loaded import LoadedConversation
from .results import CompactionResult, Outcome


def outcome_of(
    core: Core,
    budget: Budget,
    before: LoadedConversation,
    after: LoadedConversation,
    outcome: Outcome,
    reason: str = "",
    detail: str = "",
) -> CompactionResult:
    """What every result says, whatever the outcome."""
    state = after.state
    left = {position for position, _, _ in after.window.previews}
    gone = [key for key in before.window.previews if key not in after.window.previews]
    released = gone if outcome == "performed" else []
    positions = sorted({position for position, _, _ in released} - left)
    return CompactionResult(
        outcome=outcome,
        tokens_before=before.state.tokens + budget.fixed,
        tokens_after=state.tokens + budget.fixed,
        reason=reason,
        detail=detail,
        summary_id=state.summary.summary_id if state.summary else None,
        messages_covered=state.summary.coverage.count if state.summary else 0,
        messages_kept=len(after.window.entries),
        offloads_released=len(released),
        released=tuple(address_of(after.thread_id, position) for position in positions),
        thread_id=after.thread_id,
        breaker_open=is_breaker_open(state, budget.window, core.settings.policy),
    )


def sized(
    core: Core,
    budget: Budget,
    before: LoadedConversation,
    after: LoadedConversation,
    result: CompactionResult,
) -> CompactionResult:
    """The result with the sizes of the requests themselves, as a context has them: what rendering adds is in
    them, a note where the conversation does not begin or end with its user, say.
    """
    sizes = [measured_as(core, core.asked.framed(then), budget).size for then in (before, after)]
    return result.replaced(tokens_before=sizes[0], tokens_after=sizes[1])


def idle_outcome(
    core: Core, budget: Budget, loaded: LoadedConversation, idle: NothingToCompact
) -> CompactionResult:
    """Nothing to do, and which message stands in the way since when, if one does."""
    result = outcome_of(core, budget, loaded, loaded, "nothing_to_do", idle.rule, idle.because)
    versions = [m.version for m in loaded.state.live if m.position == idle.since]
    if not versions:
        return result.replaced(blocked_since=idle.since)
    [logged] = core.log.read(loaded.thread_id, versions[0], versions[0])
    return result.replaced(blocked_since=idle.since, blocked_at=logged.at or None)


def told_results(
    core: Core,
    before: Measured,
    now: Measured,
    done: Shortened,
    results: list[CompactionResult],
    trigger: Trigger,
) -> list[CompactionResult]:
    """The results, with what was shown shorter on the way; one of its own where that was all."""
    told = results
    if done.decisions:
        told = [result for result in results if result.outcome != "nothing_to_do"]
        enough = outcome_of(core, before.plain, before.loaded, now.loaded, "shortened")
        told = told or [enough.replaced(trigger=trigger)]
    if not told:
        return []  # What others did was enough.
    told[0] = told[0].replaced(tokens_before=before.size)
    told[-1] = told[-1].replaced(
        tokens_after=now.size,
        results_offloaded=done.offloaded,
        results_condensed=done.condensed,
    )
    return told

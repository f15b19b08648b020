"""Plan a new summary of the same messages with another focus."""

from typing import NamedTuple

from refold.application.conversation.loaded import LoadedConversation
from refold.application.erasure.rebuilt_summary import read_again
from refold.application.ports.summariser import SourceMessage
from refold.application.runtime.core import Core
from refold.domain.compaction.budget import (
    SHORTEST_SUMMARY,
    Budget,
    reserve_room,
    summary_target,
)
from refold.domain.compaction.compacting import breaker_closes_at
from refold.domain.cuts.planner import CompactionPlan
from refold.domain.events import CompactionPerformed
from refold.domain.value import build_in_order

from .summary import Source


class Refocus(NamedTuple):
    """Plan and source of a summary with another focus."""

    plan: CompactionPlan
    source: Source


def plan_refocus(
    core: Core,
    loaded: LoadedConversation,
    budget: Budget,
    focus: str | None,
    *,
    force: bool = False,
) -> Refocus | None:
    """Plan to make the active summary again with this focus, or return None.

    The new summary is made from the messages that the active one covered first, and from the
    summary before it. None is returned if the focus is the same, if a summary would not keep the
    request below the trigger, or, without ``force``, if attempts failed repeatedly.
    """
    if (
        not force
        and breaker_closes_at(loaded.state, budget.window, core.settings.policy) is not None
    ):
        return None
    made, active = loaded.window.summary, loaded.state.summary
    if focus is None or made is None or active is None or made.focus == focus:
        return None
    if not active.leaves or active.leaves[-1] != active.version or made.trigger == "erasure":
        return None
    before = _compaction_at(core, loaded, active.leaves[-2]) if len(active.leaves) > 1 else None
    covered = range(made.coverage.start, made.coverage.stop)
    known = before.coverage if before else None
    new = [p for p in covered if made.coverage.covers(p) and not (known and known.covers(p))]
    events = list(read_again(core, loaded, new))
    if len(events) < len(new):
        return None  # Some of the messages were erased.
    source = Source(
        messages=tuple(
            build_in_order(SourceMessage, position=e.position, message=e.message) for e in events
        ),
        before=before,
        earlier=made.earlier,
        focus=focus,
    )
    tokens = sum(e.tokens for e in events) + (before.tokens if before else 0)
    plan = _plan(loaded, made, tokens, budget, core)
    return Refocus(plan, source) if plan.accepted_tokens >= SHORTEST_SUMMARY else None


def _compaction_at(
    core: Core, loaded: LoadedConversation, version: int
) -> CompactionPerformed | None:
    [logged] = core.log.read(loaded.thread_id, version, version)
    return logged.event if isinstance(logged.event, CompactionPerformed) else None


def _plan(
    loaded: LoadedConversation,
    made: CompactionPerformed,
    covered_tokens: int,
    budget: Budget,
    core: Core,
) -> CompactionPlan:
    policy = core.settings.policy
    kept, beside = loaded.state.tokens - made.tokens, reserve_room(budget, policy).beside
    room = budget.room - kept - budget.summary_overhead - beside
    limit = min(int(summary_target(budget, policy) * policy.summary_slack), room)
    return build_in_order(
        CompactionPlan,
        coverage=made.coverage,
        covered_tokens=covered_tokens,
        kept_tokens=kept,
        target_tokens=int(limit / policy.summary_slack),
        limit_tokens=limit,
        accepted_tokens=room,
        split_at=made.split_at if made.is_split_turn else None,
        beside_tokens=beside,
        goal_tokens=max(0, budget.target - budget.fixed),
    )

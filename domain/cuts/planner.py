"""The planner: intersects the legal cuts of all rules, then chooses the one that meets the budget."""

from collections.abc import Sequence

from refold.domain.budget import SHORTEST_SUMMARY, Budget, summary_target
from refold.domain.conversation import Conversation
from refold.domain.coverage import Coverage
from refold.domain.events import Trigger
from refold.domain.facts import LiveMessage
from refold.domain.policy import CompactionPolicy
from refold.domain.requests import protected_requests
from refold.domain.value import Value

from . import RULES
from .rule import CutRule, Cuts, all_cuts


class CompactionPlan(Value, frozen=True):
    """What a compaction would cover, and what it would leave."""

    coverage: Coverage
    covered_tokens: int
    """The size of what the summary replaces, the old summary included."""
    kept_tokens: int
    target_tokens: int
    """The length that the summary aims at."""
    limit_tokens: int
    split_at: int | None = None
    """Where the turn begins that the cut divides, if it divides one (requirement A5)."""
    ledger_tokens: int = 0
    """The room for the ledger beside the summary."""
    goal_tokens: int = 0
    """The size of the conversation that is aimed at, summary and all; for ``effective``."""


class NothingToCompact(Value, frozen=True):
    """Why there is nothing to do: ``rule`` names what blocks."""

    rule: str
    because: str
    since: int | None = None
    """The position of the message that blocks, where one does."""


def plan_compaction(
    state: Conversation,
    budget: Budget,
    policy: CompactionPolicy,
    trigger: Trigger,
    rules: Sequence[CutRule] = RULES,
) -> CompactionPlan | NothingToCompact:
    """Choose what to cover so that the conversation meets the target, if any cut is legal.

    By size, the most that fits the target is kept; on demand, the newest messages (policy).
    """
    idle = _idle(state, budget, policy, trigger)
    if idle is not None:
        return idle
    cuts: Cuts = all_cuts(state)
    for rule in rules:
        left = cuts & rule.legal(state)
        if not left:
            return NothingToCompact(rule=rule.name, because=rule.because)
        cuts = left
    if trigger == "manual":
        cuts = frozenset(p for p in cuts if state.length - p >= policy.keep_last)
        cuts = frozenset({max(cuts)}) if cuts else cuts
    return _choose(state, cuts, budget, policy)


def _idle(
    state: Conversation, budget: Budget, policy: CompactionPolicy, trigger: Trigger
) -> NothingToCompact | None:
    if state.tokens >= budget.room:
        return None
    if state.length - state.covered_to <= policy.keep_last:
        return NothingToCompact(
            rule="keep_last", because=f"the newest {policy.keep_last} messages are kept"
        )
    if trigger == "manual" and state.summary and state.summary.at_length == state.length:
        return NothingToCompact(
            rule="nothing_new", because="no message was appended since the last compaction"
        )
    return None


def _choose(
    state: Conversation, cuts: Cuts, budget: Budget, policy: CompactionPolicy
) -> CompactionPlan | NothingToCompact:
    aim = summary_target(budget, policy)
    goal = max(0, budget.target - budget.fixed - aim - budget.summary_overhead)
    best: CompactionPlan | None = None
    for cut in sorted(cuts):
        plan = _plan(state, cut, goal, aim, policy)
        if plan is not None and (best is None or plan.kept_tokens < best.kept_tokens):
            best = plan
            if plan.kept_tokens <= goal:
                break
    if best is not None and best.covered_tokens <= budget.summary_overhead:
        return NothingToCompact(
            rule="too_little", because="what could be covered is no larger than a summary of it"
        )
    if best is not None:
        return _fitted(best, budget, policy)
    return NothingToCompact(
        rule="keep_last" if not cuts else "open_requests",
        because=f"the newest {policy.keep_last} messages are kept"
        if not cuts
        else "all that could be covered are requests that are still being worked on",
    )


def _plan(
    state: Conversation, cut: int, goal: int, aim: int, policy: CompactionPolicy
) -> CompactionPlan | None:
    protected = protected_requests(state, cut, int(goal * policy.request_share))
    covered = [
        m for m in state.live if state.preamble <= m.position < cut and m.position not in protected
    ]
    if not covered:
        return None
    before = state.summary.coverage if state.summary else None
    tokens = state.older_tokens + sum(m.tokens for m in covered)
    coverage = Coverage(
        start=state.preamble,
        stop=max(cut, state.covered_to),
        exclusions=tuple(sorted(protected)),
        count=state.older_live + len(covered) + (before.count if before else 0),
        first_message_id=state.first_message_id,
        last_message_id=max(covered, key=_position).message_id,
    )
    return CompactionPlan(
        coverage=coverage,
        covered_tokens=tokens + (state.summary.tokens if state.summary else 0),
        kept_tokens=state.live_tokens - tokens,
        target_tokens=aim,
        limit_tokens=int(aim * policy.summary_slack),
    )


def _fitted(plan: CompactionPlan, budget: Budget, policy: CompactionPolicy) -> CompactionPlan:
    # Where what is kept leaves little room, a shorter summary is better than a request too large.
    left = budget.limit - budget.fixed - budget.summary_overhead - plan.kept_tokens
    limit = max(SHORTEST_SUMMARY, min(plan.limit_tokens, left))
    target = min(plan.target_tokens, max(SHORTEST_SUMMARY, int(limit / policy.summary_slack)))
    return plan.replaced(target_tokens=target, limit_tokens=limit)


def _position(message: LiveMessage) -> int:
    return message.position

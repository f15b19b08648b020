"""The planner: intersects the legal cuts of all rules, then chooses the one that meets the budget."""

from collections.abc import Sequence
from typing import NamedTuple

from refold.domain.compaction.budget import (
    SHORTEST_SUMMARY,
    Budget,
    ReservedRoom,
    kept_target,
    request_allowance,
    reserve_room,
    summary_target,
)
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.compaction.summary_rules import ExpectedLength
from refold.domain.conversation import Conversation, Coverage
from refold.domain.events import Trigger
from refold.domain.value import Value, build_in_order, replace

from .choice import Candidate, Choice, Turns, candidates
from .rules import KEPT, RULES, CutRule, Cuts, all_cuts, uncovered


class CompactionPlan(Value, frozen=True):
    """The content that a compaction would cover, and the sizes that result."""

    coverage: Coverage
    covered_tokens: int
    """Tokens that the summary replaces, including the previous summary."""
    kept_tokens: int
    """Tokens of everything else after the compaction, including pinned texts and without dropped thinking."""
    target_tokens: int
    """Target length of the summary."""
    limit_tokens: int
    """Maximum length that the summariser is asked for."""
    accepted_tokens: int = 0
    """Maximum length of an accepted complete text, if larger than ``limit_tokens``.

    With such a text the request still stays under the trigger.
    """
    split_at: int | None = None
    """Position where the split turn begins, or None if no turn is split.

    Newly covered messages from here on are the prefix of the turn, and earlier ones are history. It is
    never before the end of the current coverage, so the history may consist of the previous summary only.
    """
    beside_tokens: int = 0
    """Maximum tokens of the ledger and the index, without pinned texts."""
    goal_tokens: int = 0
    """Target size of the conversation, including the summary. ``effective`` compares with it."""


class NothingToCompact(Value, frozen=True):
    """The reason why nothing can be compacted. ``rule`` is the name of the blocking rule."""

    rule: str
    because: str
    since: int | None = None
    """Position of the blocking message, or None."""


class CompactionWish(NamedTuple):
    """Options of a compaction on demand that override settings."""

    everything: bool = False
    """Whether to cover everything that the keep rules allow, regardless of the target."""
    target: bool = False
    """Whether the caller gave a target. Nothing is done if it is already met."""
    keep_last: bool = False
    """Whether the caller gave the number of messages to keep. Without a target, no others are kept."""

    @property
    def covers_most(self) -> bool:
        """Whether to keep only what must stay."""
        return self.everything or (self.keep_last and not self.target)


NO_WISH = CompactionWish()


def plan_compaction(
    state: Conversation,
    budget: Budget,
    policy: CompactionPolicy,
    trigger: Trigger,
    rules: Sequence[CutRule] = RULES,
    *,
    wish: CompactionWish = NO_WISH,
    expected: ExpectedLength | None = None,
) -> CompactionPlan | NothingToCompact:
    """Choose a cut that meets the target, if any cut is legal.

    The plan keeps as much as fits the target. A compaction on demand always keeps ``keep_last`` messages.
    It covers as much as the keep rules allow if the target is already met or if ``wish`` asks for it.
    Otherwise the keep rules apply as far as the target allows, and take precedence over whole turns.

    ``expected`` is the expected length of the summary, or None if unknown.
    """
    idle = _reason_to_skip(state, budget, policy, trigger, wish)
    if idle is not None:
        return idle
    cuts = _legal_cuts(state, all_cuts(state), rules)
    if isinstance(cuts, CutRule):
        return _nothing_because_of(state, cuts)
    allowance = request_allowance(budget, policy)
    kept = frozenset(p for rule in KEPT for p in rule.kept(state, allowance))
    found = candidates(state, cuts, kept)
    if not found:
        return _why_all_kept(state, rules, max(cuts), allowance)
    if trigger == "manual":
        found = [c for c in found if state.length - c.cut >= policy.keep_last]
        if not found:
            return _too_few(state, policy)
    is_small = state.tokens + budget.fixed <= budget.target
    cover_most = trigger == "manual" and (wish.covers_most or is_small)
    if wish.keep_last and cover_most:
        policy = replace(
            policy, whole_turn_share=1
        )  # Keep no more messages, even to keep a turn whole.
    return _plan_cut(state, found, kept, budget, policy, expected, cover_most=cover_most)


def _plan_cut(
    state: Conversation,
    found: Sequence[Candidate],
    kept: frozenset[int],
    budget: Budget,
    policy: CompactionPolicy,
    expected: ExpectedLength | None,
    *,
    cover_most: bool,
) -> CompactionPlan | NothingToCompact:
    turns = Turns(state, kept)
    goal = kept_target(budget, policy, expected)
    choice = Choice(state, turns, goal, budget.window, policy)
    chosen = choice.cover_most(found) if cover_most else choice.keep_most(found)
    covered = chosen.covered + (state.summary.tokens if state.summary else 0)
    if covered <= budget.summary_overhead:
        return NothingToCompact(
            rule="too_little",
            because="the messages that could be covered are no larger than their summary",
        )
    target = _target_length(state, chosen, budget, policy)
    plan = build_in_order(
        CompactionPlan,
        coverage=_coverage(state, chosen, kept),
        covered_tokens=covered,
        kept_tokens=chosen.kept,
        target_tokens=target,
        limit_tokens=int(target * policy.summary_slack),
        split_at=turns.split_at(chosen.cut, budget.window, policy),
        beside_tokens=reserve_room(budget, policy).beside,
        goal_tokens=max(0, budget.target - budget.fixed),
    )
    plan = _fit_lengths(plan, budget, policy, reserve_room(budget, policy, expected))
    return _set_accepted_length(plan, budget)


def _set_accepted_length(plan: CompactionPlan, budget: Budget) -> CompactionPlan:
    """Return the plan with the maximum accepted length, which may be above the requested one."""
    extra = plan.kept_tokens + budget.summary_overhead + plan.beside_tokens
    return replace(plan, accepted_tokens=max(plan.limit_tokens, budget.room - extra))


def _target_length(
    state: Conversation, chosen: Candidate, budget: Budget, policy: CompactionPolicy
) -> int:
    """Return the target length of the summary.

    With archiving by number of messages it is at most a third of the newly covered tokens, plus the
    previous text.
    """
    target = summary_target(budget, policy)
    if policy.archive_over is None:
        return target
    before = state.summary.text_tokens if state.summary else 0
    return min(target, max(SHORTEST_SUMMARY, before + chosen.covered // 3))


def _coverage(state: Conversation, chosen: Candidate, kept: frozenset[int]) -> Coverage:
    exclusions = (p for p in kept if state.preamble <= p < chosen.cut)
    before, last = state.summary.coverage if state.summary else None, chosen.last
    # The last message may be covered already: messages that were kept before may be covered now.
    old = before is not None and any(map(before.covers, range(last.position, before.stop)))
    return build_in_order(
        Coverage,
        start=state.preamble,
        stop=chosen.cut,
        exclusions=tuple(sorted(exclusions)),
        count=chosen.messages + (before.count if before else 0),
        first_message_id=state.first_message_id,
        last_message_id=before.last_message_id if before and old else last.message_id,
    )


LEAST_SHARE = 0.6
"""Share of the expected summary, ledger and index that large new messages do not displace.

On recorded sessions 0.5 lost a tenth of the facts that were used again, and 0.75 left requests at half of their
budget right after a compaction.
"""


def _fit_lengths(
    plan: CompactionPlan, budget: Budget, policy: CompactionPolicy, aside: ReservedRoom
) -> CompactionPlan:
    """Return the plan with less room for summary, ledger and index if the kept content leaves too little.

    Ledger and index shrink first, down to their expected size. If large new messages leave less than ``LEAST_SHARE`` of
    the expected sizes, the summary may go beyond the target by half of the room up to the trigger: what binds the
    agent must not disappear because of one large result. Any length is better than a request that is too large.
    """
    extra = plan.kept_tokens + budget.summary_overhead
    left = min(plan.goal_tokens, budget.limit - budget.fixed) - extra
    if left >= plan.limit_tokens + plan.beside_tokens:
        return plan
    needed = int((aside.text + aside.beside) * LEAST_SHARE)
    if left < needed:
        spare = max(0, budget.room - extra - max(0, left))
        left = max(left, min(needed, max(0, left) + spare // 2))
    beside = min(plan.beside_tokens, max(aside.beside, left - plan.limit_tokens))
    least = max(SHORTEST_SUMMARY, plan.target_tokens // 2)
    if left - beside < least:
        beside = max(0, left - least) if left >= least else left // 3
    if left - beside >= SHORTEST_SUMMARY:
        plan = replace(plan, beside_tokens=beside)
        return _limit_length(plan, min(plan.limit_tokens, left - beside), policy)
    left, wanted = budget.limit - budget.fixed - extra, plan.limit_tokens + plan.beside_tokens
    if left >= wanted:
        return plan
    beside = max(0, min(plan.beside_tokens * left // wanted, left - SHORTEST_SUMMARY))
    plan = replace(plan, beside_tokens=beside)
    return _limit_length(plan, max(SHORTEST_SUMMARY, left - beside), policy)


def _limit_length(plan: CompactionPlan, limit: int, policy: CompactionPolicy) -> CompactionPlan:
    target = min(plan.target_tokens, max(SHORTEST_SUMMARY, int(limit / policy.summary_slack)))
    return replace(plan, target_tokens=target, limit_tokens=limit)


def _reason_to_skip(
    state: Conversation,
    budget: Budget,
    policy: CompactionPolicy,
    trigger: Trigger,
    wish: CompactionWish,
) -> NothingToCompact | None:
    if wish.target and not wish.everything and state.tokens + budget.fixed <= budget.target:
        return NothingToCompact(
            rule="within_target", because="the request already meets the target"
        )
    if trigger != "manual" and _must_wait(state, budget, policy):
        return NothingToCompact(
            rule="first_summary_after",
            because=f"no summary is made until there are more than {policy.first_summary_after} messages",
        )
    if state.tokens >= budget.room:
        return None
    if state.length - state.covered_to <= policy.keep_last:
        return _too_few(state, policy)
    if trigger != "manual" or wish != NO_WISH:
        return None
    if state.summary and state.summary.at_length == state.length:
        return NothingToCompact(
            rule="nothing_new",
            because="no message was appended since the last compaction",
            since=state.length - 1,
        )
    return None


def _must_wait(state: Conversation, budget: Budget, policy: CompactionPolicy) -> bool:
    """Return whether a first summary must wait for more messages, and the request fits without one."""
    least = policy.first_summary_after
    if least is None or state.summary is not None or state.length > least:
        return False
    return state.tokens + budget.fixed <= budget.limit


def _too_few(state: Conversation, policy: CompactionPolicy) -> NothingToCompact:
    first = max(state.covered_to, state.length - policy.keep_last)
    return NothingToCompact(
        rule="keep_last",
        because=f"the newest {policy.keep_last} messages are kept",
        since=first if first < state.length else None,
    )


def _legal_cuts(state: Conversation, cuts: Cuts, rules: Sequence[CutRule]) -> Cuts | CutRule:
    """Return the cuts that all rules allow, or the first rule that leaves none."""
    for rule in rules:
        cuts &= rule.legal(state)
        if not cuts:
            return rule
    return cuts


def _nothing_because_of(state: Conversation, rule: CutRule) -> NothingToCompact:
    return NothingToCompact(rule=rule.name, because=rule.because, since=rule.since(state))


def _why_all_kept(
    state: Conversation, rules: Sequence[CutRule], stop: int, allowance: int
) -> NothingToCompact:
    """Return the reason why no message before the last legal cut can be covered.

    If no cut is beyond the current coverage, the blocking rule is the reason. Otherwise it is the rule
    that keeps the first of the messages.
    """
    start = min((m.position for m in uncovered(state)), default=state.length)
    beyond = _legal_cuts(state, frozenset(p for p in all_cuts(state) if p > start), rules)
    if isinstance(beyond, CutRule):
        return _nothing_because_of(state, beyond)
    before = next(m.position for m in state.live if state.preamble <= m.position < stop)
    rule = next(rule for rule in KEPT if before in rule.kept(state, allowance))
    return NothingToCompact(rule=rule.name, because=rule.because, since=before)

"""Plans on states drawn by chance, compared with what trying every cut finds."""

from hypothesis import assume, event, given
from hypothesis import strategies as st

from refold.domain.compaction.budget import (
    Budget,
    kept_target,
    ledger_target,
    request_allowance,
    reserve_room,
)
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.cuts.choice import least_prefix
from refold.domain.cuts.planner import CompactionPlan, NothingToCompact, plan_compaction
from refold.domain.events import Trigger
from refold.domain.evolve import evolve
from refold.domain.turns import protected_requests
from tests.support.brute_force import Everything, everything
from tests.support.builders import performed
from tests.support.planned_histories import POLICIES, TRIGGERS, Story, budgets, stories

BY_ITSELF: st.SearchStrategy[Trigger] = st.sampled_from(("size", "background"))
IDLE = frozenset({"keep_last", "nothing_new", "too_little"})


class Case:
    """A state, a budget, a policy; the plan, and what trying every cut says."""

    def __init__(self, story: Story, budget: Budget, policy: CompactionPolicy, trigger: Trigger):
        self.state, self.budget, self.policy = story.state, budget, policy
        self.goal = kept_target(budget, policy)
        requests = protected_requests(self.state, request_allowance(budget, policy))
        self.tried: Everything = everything(story.events, self.state, requests)
        self.found = plan_compaction(self.state, budget, policy, trigger)

    @property
    def plan(self) -> CompactionPlan:
        assume(isinstance(self.found, CompactionPlan))
        assert isinstance(self.found, CompactionPlan)
        return self.found

    @property
    def cut(self) -> int:
        return self.plan.coverage.stop

    @property
    def fitting(self) -> list[int]:
        """The legal cuts that meet the goal; those that leave too much of a window aside."""
        fits = [c for c in self.tried.legal if self.tried.kept(c) <= self.goal]
        most = self.budget.window * self.policy.split_share * self.policy.split_slack
        return [c for c in fits if self.tried.newest(c) <= int(most)] or fits

    def is_enough(self, cut: int) -> bool:
        """Whether enough of the turn that ``cut`` divides would be summarised (A15)."""
        begin = self.tried.divided(cut)
        if begin is None:
            return True
        end = min((b for b in self.tried.beginnings if b > cut), default=self.state.length)
        own = {p: size for p, (size, _) in self.tried.tokens.items() if begin <= p < end}
        sizes = [size for p, size in own.items() if p not in self.tried.kept_anyway]
        prefix = sum(own[p] for p in self.tried.newly_covered(cut) if p >= begin)
        share = least_prefix(sum(sizes) / len(sizes), self.budget.window, self.policy)
        return prefix >= share * sum(sizes)


@st.composite
def cases(draw: st.DrawFn, triggers: st.SearchStrategy[Trigger] = TRIGGERS) -> Case:
    policy = draw(POLICIES)
    return Case(draw(stories()), draw(budgets(policy)), policy, draw(triggers))


def positions(plan: CompactionPlan) -> set[int]:
    return {p for p in range(plan.coverage.stop) if plan.coverage.covers(p)}


@given(cases())
def test_nothing_that_must_stay_is_covered(case: Case) -> None:
    """Invariants 1, 4 and 6: open business, pins, and all that belongs to them."""
    new = positions(case.plan) - case.tried.covered
    assert not new & case.tried.untouchable
    assert not new & case.tried.protected
    for bond in case.tried.bonds:
        if not set(bond) & case.tried.covered:
            assert len(new & set(bond)) in (0, 2), f"{bond} are parted"


@given(cases())
def test_coverage_only_grows_and_is_told_right(case: Case) -> None:
    """Invariants 2 and 3."""
    covered = positions(case.plan)
    assert case.tried.covered < covered
    assert covered == case.tried.covered | case.tried.newly_covered(case.cut)
    coverage = case.plan.coverage
    assert coverage.count == len(covered)
    assert coverage.last_message_id == case.tried.messages[max(covered)].message_id
    assert coverage.first_message_id == case.tried.messages[case.tried.preamble].message_id
    assert coverage.start == case.tried.preamble
    live = {m.position for m in case.tried.live}
    assert set(coverage.exclusions) <= {p for p in live if coverage.start <= p < coverage.stop}


@given(cases())
def test_what_is_kept_and_what_is_covered_are_all_there_is(case: Case) -> None:
    covered = positions(case.plan) - case.tried.covered
    summary = case.state.summary.tokens if case.state.summary else 0
    assert case.plan.kept_tokens == case.tried.kept(case.cut)
    assert case.plan.covered_tokens == summary + sum(case.tried.tokens[p][0] for p in covered)
    dropped = sum(m.thinking for m in case.state.live if m.position not in covered)
    assert case.plan.kept_tokens + case.plan.covered_tokens + dropped == case.state.tokens


@given(cases())
def test_a_cut_is_found_if_one_is_legal(case: Case) -> None:
    """Invariant 5: else the rule that blocks is named, and a message that nobody has covered."""
    if isinstance(case.found, CompactionPlan):
        assert case.cut in case.tried.legal
        return
    event(case.found.rule)
    if case.found.rule not in IDLE:
        assert not case.tried.legal, f"{case.tried.legal} are legal: {case.found}"
        nobody = {None} if not case.tried.live[case.tried.preamble :] else set[None]()
        assert case.found.since in {m.position for m in case.tried.live} | nobody
    match case.found:
        case NothingToCompact(rule="pending_calls", since=since):
            assert since == case.tried.pending
        case NothingToCompact(rule="unanswered_messages", since=since):
            assert since == case.tried.unanswered[0]
        case NothingToCompact(rule="pinned_messages", since=since):
            assert since in case.tried.with_bonds(case.tried.pinned)
        case NothingToCompact(rule="open_requests", since=since):
            assert since in case.tried.protected
        case _:
            pass


@given(cases(st.just("manual")))
def test_on_demand_the_newest_messages_stay_and_nothing_else_blocks(case: Case) -> None:
    """Requirements D3 and D8."""
    able = [c for c in case.tried.legal if case.state.length - c >= case.policy.keep_last]
    if isinstance(case.found, NothingToCompact):
        assert case.found.rule in IDLE or not able
        if case.found.rule == "keep_last" and case.state.tokens >= case.budget.room:
            assert not able
        return
    assert case.state.length - case.cut >= case.policy.keep_last
    if all(case.tried.kept(c) > case.goal for c in able):
        assert case.tried.kept(case.cut) == case.tried.kept(max(able))


@given(cases(BY_ITSELF))
def test_the_goal_is_met_if_a_cut_meets_it(case: Case) -> None:
    """Invariant 7: then the longest summary and the ledger fit the target beside what is kept."""
    plan, best = case.plan, min(map(case.tried.kept, case.tried.legal))
    if best > case.goal:
        event("no cut meets the goal")
        assert plan.kept_tokens == best
        return
    assert plan.kept_tokens <= case.goal
    beside = plan.limit_tokens + plan.beside_tokens + case.budget.summary_overhead
    assert plan.kept_tokens + beside <= plan.goal_tokens
    longest = reserve_room(case.budget, case.policy)
    assert plan.beside_tokens == longest.beside >= ledger_target(case.budget, case.policy)
    assert plan.limit_tokens <= longest.text


@given(cases(BY_ITSELF))
def test_no_more_is_covered_than_the_goal_the_turns_and_the_split_ask_for(case: Case) -> None:
    plan, fitting, tried = case.plan, case.fitting, case.tried
    assume(fitting)
    nearest = fitting[0]
    whole = case.policy.whole_turn_share * tried.newest(nearest)
    good = [c for c in fitting if c in tried.beginnings and tried.newest(c) >= whole]
    if case.cut == nearest:
        event("as much as the goal allows")
    elif case.cut in good:
        event("whole turns")
        assert case.cut == good[0]
    else:
        event("moved on for a larger prefix")
        between = [c for c in fitting if c < case.cut]
        assert not any(case.is_enough(c) for c in between)
        assert case.is_enough(case.cut)
    assert plan.coverage.stop >= nearest


@given(cases(BY_ITSELF))
def test_a_turn_is_divided_only_where_a_whole_one_would_cost_much(case: Case) -> None:
    """Where a cut between turns is good enough and breaks no keep rule, it is taken."""
    assume(case.fitting)
    nearest = case.fitting[0]
    if case.cut in case.tried.beginnings:
        return
    whole = case.policy.whole_turn_share * case.tried.newest(nearest)
    for c in case.fitting:
        if c in case.tried.beginnings and case.tried.newest(c) >= whole:
            last = max(case.policy.keep_last, case.policy.whole_last)
            assert not _keeps(case, c, last), f"{c} would do"


def _keeps(case: Case, cut: int, last: int) -> bool:
    """Whether ``cut`` keeps the ``last`` messages, and what else the keep rules ask for, as the goal allows."""
    tried, policy, nearest = case.tried, case.policy, case.fitting[0]
    length = case.state.length
    messages = min(last, length - nearest)
    # Sizes with thinking, for it is there when the rule is looked at.
    sizes = {p: size for p, (size, _) in tried.tokens.items()}
    tokens = min(policy.keep_tokens, sum(size for p, size in sizes.items() if p >= nearest))
    turns = min(policy.keep_turns, tried.whole_turns(nearest))
    return (
        length - cut >= messages
        and sum(size for p, size in sizes.items() if p >= cut) >= tokens
        and tried.whole_turns(cut) >= turns
    )


@given(cases())
def test_the_keep_rules_hold_as_far_as_the_target_allows(case: Case) -> None:
    """Requirements D3 and E2, for every trigger."""
    assert case.plan
    fits = [c for c in case.tried.legal if case.tried.kept(c) <= case.goal]
    assume(fits and case.cut in fits)
    assert _keeps(case, case.cut, case.policy.keep_last)


@given(cases())
def test_a_division_is_told_with_the_beginning_of_its_turn(case: Case) -> None:
    """Requirement A5: it is told apart from the history before it where the turn is too large."""
    event("divided" if case.plan.split_at is not None else "whole")
    most = case.budget.window * case.policy.split_share * case.policy.split_slack
    assert case.plan.split_at == case.tried.told_apart(case.cut, int(most))
    if case.tried.coverage and case.plan.split_at is not None:
        assert case.plan.split_at >= case.tried.coverage.stop


@given(cases(st.just("manual")))
def test_with_nothing_new_there_is_nothing_to_do(case: Case) -> None:
    """Invariant 13."""
    done = performed(1, coverage=case.plan.coverage, tokens=50)
    after = evolve(case.state, done)
    assume(after.tokens < case.budget.room)
    again = plan_compaction(after, case.budget, case.policy, "manual")
    assert isinstance(again, NothingToCompact)
    assert again.rule in ("nothing_new", "keep_last")

"""Whatever is said, archiving by number covers nothing that must stay, reaches its limit, and comes to an end."""

from hypothesis import assume, event, given
from hypothesis import strategies as st

from refold.domain.compaction.budget import (
    archiving_leaves,
    budget_for,
    kept_target,
    live_messages,
    may_archive,
    request_allowance,
)
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.cuts.planner import CompactionPlan, plan_compaction
from refold.domain.events import CompactionFailed, Trigger
from refold.domain.turns import protected_requests
from tests.support.brute_force import Everything, everything
from tests.support.builders import performed, requested
from tests.support.planned_histories import TRIGGERS, Story, stories

POLICIES = st.builds(
    CompactionPolicy,
    archive_over=st.sampled_from((10, 12, 20)),
    archive_buffer=st.sampled_from((0, 1, 4)),
    keep_last=st.sampled_from((1, 5)),
    keep_turns=st.sampled_from((0, 2)),
    whole_turn_share=st.sampled_from((0.0, 0.5, 1.0)),
)
WINDOWS = st.sampled_from((3_000, 100_000))


class Case:
    """A long conversation, what was planned for it, and what trying every cut says."""

    def __init__(self, story: Story, policy: CompactionPolicy, window: int, trigger: Trigger):
        self.state, self.policy = story.state, policy
        self.budget = budget_for(window, 0, policy)
        goal = kept_target(self.budget, policy)
        requests = protected_requests(self.state, request_allowance(self.budget, policy))
        self.tried: Everything = everything(story.events, self.state, requests)
        keeps = policy.keep_last if trigger == "manual" else 0
        able = [c for c in self.tried.legal if self.state.length - c >= keeps]
        self.fitting = [c for c in able if self.tried.kept(c) <= goal]
        self.found = plan_compaction(self.state, self.budget, policy, trigger)

    @property
    def plan(self) -> CompactionPlan:
        assume(isinstance(self.found, CompactionPlan))
        assert isinstance(self.found, CompactionPlan)
        return self.found

    @property
    def few(self) -> list[int]:
        """The legal cuts that leave neither too much nor too many."""
        most = archiving_leaves(self.policy)
        return [c for c in self.fitting if most is None or self.left(c) <= most]

    def left(self, cut: int) -> int:
        """How many messages no summary would cover."""
        return len(self.tried.live) - len(self.tried.newly_covered(cut))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    return Case(draw(stories(most=40)), draw(POLICIES), draw(WINDOWS), draw(TRIGGERS))


@given(cases())
def test_nothing_that_must_stay_is_covered_for_the_number(case: Case) -> None:
    covered = case.tried.newly_covered(case.plan.coverage.stop)
    assert not covered & case.tried.untouchable
    assert not covered & case.tried.protected
    for bond in case.tried.bonds:
        if not set(bond) & case.tried.covered:
            assert len(covered & set(bond)) in (0, 2), f"{bond} are parted"


@given(cases())
def test_no_more_messages_are_left_than_the_limit_if_a_legal_cut_leaves_so_few(case: Case) -> None:
    cut = case.plan.coverage.stop
    event("by number" if case.few else "no cut leaves so few")
    if case.few:
        assert case.left(cut) <= (archiving_leaves(case.policy) or 0)
        assert case.tried.kept(cut) <= kept_target(case.budget, case.policy)


@given(cases())
def test_as_many_of_the_newest_messages_are_kept_as_size_and_number_allow(case: Case) -> None:
    cut, few = case.plan.coverage.stop, case.few
    assume(case.fitting)
    nearest = (few or case.fitting)[0]
    assert case.state.length - cut >= min(case.policy.keep_last, case.state.length - nearest)


@given(stories(most=40), POLICIES, st.booleans())
def test_archiving_again_and_again_comes_to_an_end(
    story: Story, policy: CompactionPolicy, succeeds: bool
) -> None:
    """Invariant 7 by number: without a new message at most one attempt is made, whatever comes of it."""
    budget = budget_for(100_000, 0, policy)
    attempts = 0
    while may_archive(story.state, policy):
        plan = plan_compaction(story.state, budget, policy, "size")
        if not isinstance(plan, CompactionPlan):
            event("nothing legal")
            break
        attempts += 1
        assert attempts <= 1
        before = live_messages(story.state)
        name = f"a{len(story.events)}"
        story.add(requested(1, name, coverage=plan.coverage))
        if succeeds:
            done = performed(1, name, coverage=plan.coverage, summary_id=name, tokens=20)
            story.add(done)
            assert live_messages(story.state) < before
        else:
            story.add(
                CompactionFailed(attempt_id=name, reason="empty", live_tokens=story.state.tokens)
            )

"""A compaction is requested, then performed or given up; each is refused when it is not due."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from refold.domain.compaction.budget import Budget
from refold.domain.compaction.compacting import (
    CompactionInFlight,
    breaker_closes_at,
    compacts_again_at,
    fail_compaction,
    is_breaker_open,
    may_compact,
    perform_compaction,
    request_compaction,
)
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.compaction.summary_rules import Summary, SummaryRefused
from refold.domain.conversation import Conversation
from refold.domain.cuts.planner import CompactionPlan, plan_compaction
from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    Event,
    MessagePinned,
    SaidPart,
    SummarySuperseded,
    UserContentShortened,
)
from refold.domain.evolve import evolve, fold
from refold.domain.value import replace
from refold.testing.given_when_then import given
from tests.support.builders import (
    NOON,
    assistant,
    coverage,
    history,
    performed,
    requested,
    summary,
    talk,
    user,
)

POLICY = CompactionPolicy()
PLAN = CompactionPlan(
    coverage=coverage(8),
    covered_tokens=800,
    kept_tokens=400,
    target_tokens=150,
    limit_tokens=180,
)
TALK = history(*talk(6))
RUNNING = [*TALK, requested(8)]


def request(state: Conversation, at: datetime = NOON, **more: Any) -> tuple[Event, ...]:
    fields: dict[str, Any] = {
        "attempt_id": "a2",
        "trigger": "size",
        "policy": POLICY,
        "summariser": "good",
        "source_digest": "d" * 64,
        "tokens_before": 1_000,
    }
    return request_compaction(state, PLAN, at=at, **{**fields, **more})


def perform(state: Conversation, given_summary: Summary | None = None) -> tuple[Event, ...]:
    return perform_compaction(state, requested(8), PLAN, given_summary or summary())


def failed(attempt_id: str, reason: str, detail: str = "", live_tokens: int = 1_200) -> Event:
    return CompactionFailed(
        attempt_id=attempt_id, reason=reason, detail=detail, live_tokens=live_tokens
    )


def test_a_request_says_what_is_covered_and_why() -> None:
    given(TALK).when(lambda c: request(c, focus="the parser", trigger="manual")).then(
        requested(8, "a2", focus="the parser", trigger="manual")
    )


def test_a_second_request_is_refused_while_the_first_is_running() -> None:
    late = NOON + timedelta(seconds=POLICY.lease_seconds - 1)
    error = given(RUNNING).when(lambda c: request(c, late)).then_raises(CompactionInFlight)
    assert "a1" in str(error)
    assert "599 s" in str(error)


def test_an_attempt_that_never_ended_is_abandoned_after_its_lease() -> None:
    late = NOON + timedelta(seconds=POLICY.lease_seconds)
    given(RUNNING).when(lambda c: request(c, late)).then(
        failed("a1", "abandoned", "it never ended"), requested(8, "a2", requested_at=late)
    )


def test_a_clock_that_was_set_back_a_little_does_not_end_a_running_attempt() -> None:
    early = NOON - timedelta(seconds=POLICY.lease_seconds - 1)
    error = given(RUNNING).when(lambda c: request(c, early)).then_raises(CompactionInFlight)
    assert "running for 0 s" in str(error)


def test_an_attempt_of_an_earlier_version_may_have_a_time_without_a_zone() -> None:
    running = [*TALK, requested(8, requested_at=NOON.replace(tzinfo=None))]
    late = NOON + timedelta(seconds=60)
    error = given(running).when(lambda c: request(c, late)).then_raises(CompactionInFlight)
    assert "running for 60 s" in str(error)


def test_a_clock_that_was_set_back_does_not_block_for_ever() -> None:
    early = NOON - timedelta(days=1)
    outcome = given(RUNNING).when(lambda c: request(c, early))
    assert len(outcome.events) == 2


def test_a_request_names_the_summary_that_it_will_replace() -> None:
    given([*TALK, performed(4)]).when(request).then(requested(8, "a2", supersedes="s1"))


def test_an_accepted_summary_is_recorded_with_its_sizes() -> None:
    given(RUNNING).when(perform).then(
        performed(8, tokens_before=1_000, tokens_after=250, text_tokens=50, message_count=12)
    )


def test_appends_since_the_request_are_fine() -> None:
    more = history(user("one more"), assistant("yes"), start=12)
    given([*RUNNING, *more]).when(perform).then(
        performed(8, tokens_after=250, text_tokens=50, message_count=14)
    )


def test_a_new_summary_supersedes_the_old_one() -> None:
    replaces = requested(8, supersedes="s0")
    before = [*TALK, performed(4, summary_id="s0"), replaces]
    given(before).when(lambda c: perform_compaction(c, replaces, PLAN, summary())).then(
        performed(8, tokens_after=250, text_tokens=50, generation=1, message_count=12),
        SummarySuperseded(summary_id="s0", by="s1"),
    )


@pytest.mark.parametrize(
    "since",
    [
        [failed("a1", "abandoned")],
        [failed("a1", "abandoned"), requested(8, "a9")],
        [performed(8, "a9", summary_id="s9")],
    ],
    ids=["given up", "another attempt", "another summary"],
)
def test_an_overtaken_summary_is_refused(since: list[Event]) -> None:
    error = given([*RUNNING, *since]).when(perform).then_raises(SummaryRefused)
    assert error.reason == "overtaken"


def test_a_summary_made_from_another_predecessor_is_refused() -> None:
    # The attempt is the running one, but the active summary is not the one that it was made from.
    before = [*TALK, performed(4, "a0", summary_id="s0"), requested(8)]
    error = given(before).when(perform).then_raises(SummaryRefused)
    assert error.reason == "overtaken"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (summary(text=""), "empty"),
        (summary(text=" \n\t"), "empty"),
        (summary(complete=False), "incomplete"),
        (summary(tokens=800), "not_smaller"),
        (summary(text_tokens=181, tokens=200), "too_long"),
    ],
)
def test_a_summary_that_is_not_fit_is_refused_with_its_reason(bad: Summary, reason: str) -> None:
    error = given(RUNNING).when(lambda c: perform(c, bad)).then_raises(SummaryRefused)
    assert error.reason == reason


def test_a_summary_of_what_is_shown_shorter_meanwhile_is_refused_where_it_gains_nothing() -> None:
    parts = tuple(SaidPart(position=p, block=0, tokens_freed=95) for p in range(0, 8, 2))
    some = UserContentShortened(parts=parts[:2], head=0, tail=0)
    answers = tuple(SaidPart(position=p, block=0, tokens_freed=95) for p in range(1, 8, 2))
    most = UserContentShortened(parts=parts + answers, head=0, tail=0)
    outcome = given([*RUNNING, some]).when(lambda c: perform(c, summary(tokens=100)))
    assert [type(event) for event in outcome.events] == [CompactionPerformed]
    error = (
        given([*RUNNING, most])
        .when(lambda c: perform(c, summary(tokens=100)))
        .then_raises(SummaryRefused)
    )
    assert error.reason == "overtaken"


@pytest.mark.parametrize("tokens", [1, 180])
def test_a_summary_of_the_allowed_length_is_accepted(tokens: int) -> None:
    fits = summary(text_tokens=tokens, tokens=tokens + 100)
    outcome = given(RUNNING).when(lambda c: perform(c, fits))
    assert len(outcome.events) == 1


def test_a_failure_ends_the_attempt_and_remembers_the_size() -> None:
    given(RUNNING).when(lambda c: fail_compaction(c, "a1", "timeout", "30 s")).then(
        failed("a1", "timeout", "30 s")
    )


@pytest.mark.parametrize("attempt_id", ["a0", ""])
def test_a_failure_of_another_attempt_is_nothing(attempt_id: str) -> None:
    given(RUNNING).when(lambda c: fail_compaction(c, attempt_id, "timeout")).then()
    given(TALK).when(lambda c: fail_compaction(c, attempt_id, "timeout")).then()


def grown(setbacks: int, tokens: int) -> Conversation:
    """1,200 tokens at the last of so many failures, then more."""
    events = [*TALK, *[e for _ in range(setbacks) for e in (requested(8), failed("a1", "x"))]]
    return fold([*events, *history(user("more"), tokens=tokens, start=12)])


@pytest.mark.parametrize(("setbacks", "growth"), [(1, 200), (2, 200), (3, 1_000), (4, 1_000)])
def test_after_failures_the_conversation_must_have_grown(setbacks: int, growth: int) -> None:
    assert not may_compact(grown(setbacks, growth - 1), 10_000, POLICY)
    assert may_compact(grown(setbacks, growth), 10_000, POLICY)


def test_a_new_conversation_may_be_compacted() -> None:
    assert may_compact(fold(TALK), 10_000, POLICY)


def test_after_a_compaction_the_conversation_must_have_grown_by_a_tenth_of_the_window() -> None:
    compacted = [*TALK, requested(8), performed(8)]
    almost = fold([*compacted, *history(user("more"), tokens=999, start=12)])
    assert not may_compact(almost, 10_000, POLICY)
    assert may_compact(
        fold([*compacted, *history(user("x"), tokens=1_000, start=12)]), 10_000, POLICY
    )


def test_the_breaker_opens_after_three_failures_and_closes_when_the_conversation_has_grown() -> (
    None
):
    assert not is_breaker_open(grown(2, 0), 10_000, POLICY)
    assert is_breaker_open(grown(3, 999), 10_000, POLICY)
    assert breaker_closes_at(grown(3, 999), 10_000, POLICY) == 1_200 + 1_000
    assert not is_breaker_open(grown(3, 1_000), 10_000, POLICY)


def test_the_number_of_failures_that_open_the_breaker_is_a_setting() -> None:
    patient = CompactionPolicy(breaker_after=5)
    assert not is_breaker_open(grown(4, 0), 10_000, patient)
    assert may_compact(grown(4, 200), 10_000, patient)
    assert is_breaker_open(grown(5, 200), 10_000, patient)


def test_the_guard_is_a_fold_that_decides_the_same_after_a_restart() -> None:
    events = [e for n in range(4) for e in (requested(8, f"a{n}"), failed(f"a{n}", "empty"))]
    state = fold(TALK)
    for event in events:
        state = evolve(state, event)
    again = Conversation.model_validate_json(state.model_dump_json())
    assert is_breaker_open(again, 10_000, POLICY)
    assert is_breaker_open(fold([*TALK, *events]), 10_000, POLICY)
    assert breaker_closes_at(again, 10_000, POLICY) == breaker_closes_at(state, 10_000, POLICY)


@pytest.mark.parametrize("effective", [True, False])
def test_after_any_compaction_the_conversation_must_grow_by_the_same(effective: bool) -> None:
    events = [*TALK, requested(8), performed(8, effective=effective)]
    assert compacts_again_at(fold(events), 10_000, POLICY) == 450 + 1_000


@pytest.mark.parametrize(("goal", "effective"), [(450, True), (449, False), (0, True)])
def test_a_compaction_that_misses_its_goal_is_recorded_as_ineffective(
    goal: int, effective: bool
) -> None:
    plan = replace(PLAN, goal_tokens=goal)
    [event] = (
        given(RUNNING).when(lambda c: perform_compaction(c, requested(8), plan, summary())).events
    )
    assert isinstance(event, CompactionPerformed)
    assert (event.effective, event.target_tokens) == (effective, goal or None)


@pytest.mark.parametrize(("rebuilds", "generation"), [(False, 4), (True, 0)])
def test_a_rebuilt_summary_begins_a_new_generation(rebuilds: bool, generation: int) -> None:
    asked = requested(8, supersedes="s0", rebuilds=rebuilds)
    before = [*TALK, performed(4, summary_id="s0", generation=3), asked]
    outcome = given(before).when(lambda c: perform_compaction(c, asked, PLAN, summary()))
    assert isinstance(outcome.events[0], CompactionPerformed)
    assert outcome.events[0].generation == generation


def test_what_was_really_sent_counts_for_the_digest() -> None:
    given(RUNNING).when(lambda c: perform(c, summary(source_digest="e" * 64))).then(
        performed(8, tokens_after=250, text_tokens=50, source_digest="e" * 64, message_count=12)
    )


def test_a_success_forgets_the_failures() -> None:
    state = fold([*RUNNING, failed("a1", "x"), requested(8, "a2"), performed(8, "a2")])
    assert state.setbacks.count == 0


BUDGET = Budget(
    window=1_500,
    margin=0,
    reserve=0,
    fixed=0,
    limit=1_400,
    trigger=1_000,
    target=500,
    summary_overhead=0,
)


def compacted_again(state: Conversation, number: int) -> tuple[Conversation, CompactionPlan]:
    """Six more turns, and then a compaction from plan to summary."""
    state = fold(history(*talk(6), start=state.length), state)
    plan = plan_compaction(state, BUDGET, POLICY, "size")
    assert isinstance(plan, CompactionPlan)
    events = request_compaction(
        state,
        plan,
        attempt_id=f"a{number}",
        at=NOON,
        trigger="size",
        policy=POLICY,
        summariser="good",
        source_digest="d" * 64,
        tokens_before=state.tokens,
    )
    state = fold(events, state)
    last = events[-1]
    assert isinstance(last, CompactionRequested)
    accepted = perform_compaction(state, last, plan, summary(f"s{number}"))
    return fold(accepted, state), plan


def test_ten_compactions_in_a_row_cover_more_each_time_and_count_right() -> None:
    state, stop = Conversation(), 0
    for number in range(10):
        state, plan = compacted_again(state, number)
        assert plan.coverage.start == 0
        assert plan.coverage.stop > stop
        assert plan.coverage.count == plan.coverage.stop
        assert plan.coverage.first_message_id == "m0"
        assert plan.coverage.last_message_id == f"m{plan.coverage.stop - 1}"
        stop = plan.coverage.stop
        assert state.summary is not None
        assert state.summary.summary_id == f"s{number}"
        assert [m.position for m in state.live] == list(range(stop, state.length))
        assert state.tokens == 100 * len(state.live) + 50
    assert state.compactions == 10


def test_a_summary_of_a_message_that_was_pinned_meanwhile_is_refused() -> None:
    def pin(position: int) -> MessagePinned:
        return MessagePinned(pin_id="p", position=position, text="", tokens=0)

    error = given([*RUNNING, pin(3)]).when(perform).then_raises(SummaryRefused)
    assert error.reason == "overtaken"
    perform(fold([*RUNNING, pin(9)]))

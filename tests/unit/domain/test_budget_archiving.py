"""A conversation with many messages is archived by their number, and never again and again in vain."""

import pytest

from refold.domain.compaction.budget import budget_for, live_messages, may_archive
from refold.domain.compaction.compacting import is_breaker_open
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.conversation import Conversation
from refold.domain.cuts.planner import CompactionPlan, NothingToCompact, plan_compaction
from refold.domain.events import CompactionFailed, CompactionReverted, Event, MessagePinned, Trigger
from refold.domain.evolve import REMEMBERED, fold
from tests.support.builders import (
    appended,
    calls,
    conversation,
    coverage,
    history,
    performed,
    requested,
    results,
    system,
    talk,
    user,
)

POLICY = CompactionPolicy(archive_over=24, archive_buffer=4)
BUDGET = budget_for(200_000, 0, POLICY, summary_overhead=60)


def stop(state: Conversation, trigger: Trigger = "size", policy: CompactionPolicy = POLICY) -> int:
    plan = plan_compaction(state, BUDGET, policy, trigger)
    assert isinstance(plan, CompactionPlan), plan
    return plan.coverage.stop


def failed(tokens: int = 0) -> CompactionFailed:
    return CompactionFailed(attempt_id="a1", reason="empty", live_tokens=tokens)


def test_without_the_setting_nothing_is_archived_however_long_it_is() -> None:
    assert not may_archive(conversation(*talk(500)), CompactionPolicy())


def test_it_is_due_with_more_messages_than_the_limit() -> None:
    assert not may_archive(conversation(*talk(12)), POLICY)
    assert may_archive(conversation(*talk(12), user("one more")), POLICY)


def test_the_numbers_of_the_requirement_are_200_and_20() -> None:
    policy = CompactionPolicy(archive_over=200)
    assert not may_archive(conversation(*talk(100)), policy)
    state = conversation(*talk(100), user("and"))
    assert may_archive(state, policy)
    assert state.length - stop(state, policy=policy) == 179  # No turn is divided for one more.


def test_messages_that_are_only_counted_count() -> None:
    state = conversation(*talk(REMEMBERED // 2 + 10))
    assert state.older_live
    assert live_messages(state) == REMEMBERED + 20
    policy = CompactionPolicy(archive_over=REMEMBERED + 15, archive_buffer=5)
    assert may_archive(state, policy)
    assert state.length - stop(state, policy=policy) <= REMEMBERED + 10


@pytest.mark.parametrize("trigger", ["size", "background", "manual"])
def test_the_plan_keeps_no_more_messages_than_the_limit(trigger: Trigger) -> None:
    state = conversation(*talk(15))
    assert state.length - stop(state, trigger) <= 20


def test_a_plan_between_turns_is_preferred_and_the_newest_messages_stay() -> None:
    state = conversation(*talk(13))
    assert stop(state) == 6


def test_a_tool_round_is_not_parted_for_the_number() -> None:
    rounds = [m for i in range(3) for m in (calls(f"c{i}"), results(f"c{i}"))]
    state = conversation(user("go"), *rounds, *talk(9))
    found = stop(state)
    assert state.length - found <= 20
    assert found not in (2, 4, 6)


def test_the_system_messages_of_the_beginning_are_never_archived() -> None:
    state = conversation(system("be good"), *talk(15))
    plan = plan_compaction(state, BUDGET, POLICY, "size")
    assert isinstance(plan, CompactionPlan)
    assert plan.coverage.start == 1
    assert state.length - plan.coverage.count <= 20


def pins(*positions: int) -> list[Event]:
    return [MessagePinned(pin_id=f"p{n}", position=n, text="", tokens=0) for n in positions]


def test_where_pins_leave_more_the_plan_covers_what_the_keep_rules_let_it() -> None:
    state = fold([*history(*talk(15)), *pins(*range(20))])
    found = stop(state)
    assert 25 <= found <= state.length - POLICY.keep_last + 1


def test_where_nothing_legal_can_be_covered_the_rule_is_named() -> None:
    state = conversation(*[user("and?")] * 30)
    found = plan_compaction(state, BUDGET, POLICY, "size")
    assert isinstance(found, NothingToCompact)
    assert found.rule == "unanswered_messages"


def test_after_a_compaction_that_left_too_many_the_buffer_must_fill_again() -> None:
    """Invariant 7 by number."""
    covered = performed(24, coverage=coverage(24, start=22))
    events = [*history(*talk(15)), *pins(*range(22)), covered]
    state = fold(events)
    assert live_messages(state) == 28
    assert not may_archive(state, POLICY)
    more = [appended(30 + n, user("x")) for n in range(4)]
    assert not may_archive(fold([*events, *more[:3]]), POLICY)
    assert may_archive(fold([*events, *more]), POLICY)


def test_after_a_failure_the_buffer_must_fill_and_five_times_when_the_breaker_is_open() -> None:
    events: list[Event] = [*history(*talk(15)), requested(8), failed()]

    def due(events: list[Event], more: int) -> bool:
        tail = [appended(30 + n, user("x")) for n in range(more)]
        return may_archive(fold([*events, *tail]), POLICY)

    assert [due(events, more) for more in (0, 3, 4)] == [False, False, True]
    events += [requested(8), failed(), requested(8), failed()]
    assert [due(events, more) for more in (4, 19, 20)] == [False, False, True]


def test_the_breaker_closes_where_enough_messages_came_whatever_their_size() -> None:
    """A background attempt asks it; both guards must give one answer."""
    events: list[Event] = [*history(*talk(15))]
    events += [requested(8), failed(10**6)] * 3
    assert is_breaker_open(fold(events), BUDGET.window, POLICY)
    more = [appended(30 + n, user("x")) for n in range(20)]
    assert not is_breaker_open(fold([*events, *more]), BUDGET.window, POLICY)


def test_what_was_undone_is_not_archived_again_at_once() -> None:
    events: list[Event] = [*history(*talk(15)), performed(10)]
    before = fold(events[:-1])
    undone = CompactionReverted(
        summary_id="s1",
        restored=None,
        messages=before.live[:10],
        live_from=before.live_from,
        older_live=0,
        older_tokens=0,
        reason="",
    )
    state = fold([*events, undone])
    assert live_messages(state) == 30
    assert not may_archive(state, POLICY)


def test_without_a_buffer_one_new_message_is_enough() -> None:
    policy = CompactionPolicy(archive_over=20, archive_buffer=0)
    assert may_archive(conversation(*talk(10), user("x")), policy)
    covered = performed(24, coverage=coverage(24, start=22))
    stuck = [*history(*talk(15)), *pins(*range(22)), covered]
    assert not may_archive(fold(stuck), policy)
    assert may_archive(fold([*stuck, appended(30, user("x"))]), policy)


def test_the_summary_of_little_aims_at_a_third_of_it_and_never_forgets_for_that() -> None:
    def target(*events: Event) -> int:
        plan = plan_compaction(fold(events), BUDGET, POLICY, "size")
        assert isinstance(plan, CompactionPlan)
        assert plan.limit_tokens == int(plan.target_tokens * POLICY.summary_slack)
        return plan.target_tokens

    said = history(*talk(15))
    assert target(*said) == 1_000 // 3
    before = performed(10, text_tokens=400, tokens=500)
    assert target(*said, before, *history(*talk(5), start=30)) == 400 + 1_000 // 3
    assert target(*history(*talk(15), tokens=10)) == 150

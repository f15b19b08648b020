"""Which of the legal cuts is taken: whole turns first, a divided turn when needed, keep rules."""

from collections.abc import Iterable
from typing import Any

import pytest

from refold.domain.compaction.budget import Budget
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.conversation import Conversation
from refold.domain.cuts.planner import CompactionPlan, CompactionWish, plan_compaction
from refold.domain.events import Event, Trigger
from refold.domain.evolve import fold
from refold.domain.messages import Message
from refold.domain.value import replace
from tests.support.builders import (
    appended,
    assistant,
    calls,
    conversation,
    coverage,
    history,
    performed,
    results,
    talk,
    user,
)

BUDGET = Budget(
    window=2_000,
    margin=0,
    reserve=0,
    fixed=0,
    limit=1_400,
    trigger=1_200,
    target=1_000,
    summary_overhead=0,
)
"""Summary and ledger take at most 180 and 70 tokens: 750 of messages may stay."""


def plan(
    state: Conversation, trigger: Trigger = "size", budget: Budget = BUDGET, **settings: Any
) -> CompactionPlan:
    usual = {"summary_tier": 0.1, "ledger_share": 0.05, "index_share": 0, "whole_last": 1}
    given: dict[str, Any] = {**usual, **settings}
    wish = CompactionWish(everything=trigger == "manual")
    found = plan_compaction(
        state,
        budget,
        CompactionPolicy(**given),
        trigger,
        wish=wish,
    )
    assert isinstance(found, CompactionPlan), found
    return found


def cut(
    state: Conversation, trigger: Trigger = "size", budget: Budget = BUDGET, **settings: Any
) -> tuple[int, int | None]:
    """Where the cut lies, and the turn that it divides."""
    found = plan(state, trigger, budget, **settings)
    return found.coverage.stop, found.split_at


def turn(rounds: int, name: str = "c") -> list[Message]:
    """A request, tool rounds, an answer."""
    pairs = [(calls(f"{name}{i}"), results(f"{name}{i}")) for i in range(rounds)]
    return [user("do it"), *(m for pair in pairs for m in pair), assistant("done")]


def sized(sizes: Iterable[int]) -> list[Event]:
    """Questions and answers in turn, of these sizes."""
    said = [user("question"), assistant("answer")]
    return [appended(i, said[i % 2], size) for i, size in enumerate(sizes)]


def test_a_cut_between_turns_is_preferred_to_one_that_keeps_a_little_more() -> None:
    assert cut(conversation(*talk(8))) == (10, None)
    assert plan(conversation(*talk(8))).kept_tokens == 600


def test_the_newest_ten_stay_whole_where_they_fit_before_turns_do() -> None:
    state = fold(sized([400, 100, 400, 100, 400, 100, 50, 50, 50, 50, 50, 50, 50, 50]))
    assert cut(state, whole_last=1) == (6, None)
    assert cut(state, whole_last=9) == (5, None)
    assert cut(state, whole_last=10) == (5, None)
    assert cut(state, "manual", whole_last=10, keep_last=2) == (12, None)


def test_a_turn_is_divided_where_the_cut_between_turns_would_keep_much_less() -> None:
    state = conversation(*talk(3), *turn(4), *talk(1))
    assert cut(state) == (11, None)
    assert cut(state, whole_turn_share=0.2, keep_last=2) == (16, None)
    assert plan(state).kept_tokens == 700


def test_a_turn_too_big_for_the_goal_is_divided() -> None:
    state = conversation(*talk(3), *turn(9), user("and?"))
    assert cut(state, whole_turn_share=1) == (21, 6)


def test_what_would_leave_over_sixty_percent_of_the_window_is_divided() -> None:
    wide = replace(BUDGET, limit=1_900, trigger=1_800, target=1_750)
    state = conversation(*talk(4), *turn(6))
    assert cut(state, budget=wide) == (13, 8)
    assert cut(state, budget=wide, split_slack=1.3) == (13, 8)
    assert cut(state, budget=wide, split_slack=1.4) == (8, None)


def test_of_a_divided_turn_of_small_messages_two_fifths_are_summarised() -> None:
    """Fourteen messages of 1 % of the window: 38 % of 1,400 are 525 tokens."""
    state = conversation(*talk(1), *turn(6), tokens=100)
    wide = replace(BUDGET, window=10_000, limit=1_900, trigger=1_800, target=1_350)
    assert cut(state, budget=wide) == (9, None)
    assert cut(state, budget=wide, split_prefix_share=0.2) == (7, None)


def test_of_a_divided_turn_of_large_messages_less_is_enough() -> None:
    state = conversation(*talk(1), *turn(6))
    narrow = replace(BUDGET, window=1_000, limit=1_900, trigger=1_800, target=1_350)
    assert cut(state, budget=narrow, split_slack=2) == (7, 2)


def test_the_rest_of_a_turn_that_was_divided_before_is_told_as_history() -> None:
    rounds = history(*turn(20)[:-1])
    again = fold(
        [*rounds[:21], performed(13, coverage=coverage(13, exclusions=(0,))), *rounds[21:]]
    )
    found = plan(again)
    assert found.split_at is None
    assert found.coverage.exclusions == (0,)
    assert found.coverage.stop > 13


def test_a_new_turn_behind_the_rest_of_a_divided_one_is_divided_at_its_own_beginning() -> None:
    first, second = turn(6), turn(9, "d")
    covered = performed(7, coverage=coverage(7, exclusions=(0,)))
    state = fold([*history(*first), covered, *history(*second, start=len(first))])
    found = plan(state)
    assert found.split_at == 14
    assert found.coverage.exclusions == ()


def test_the_best_cut_is_taken_where_none_meets_the_goal() -> None:
    huge = [*sized([100] * 7), appended(7, assistant("on it")), appended(8, user("read"), 5_000)]
    found = plan(fold(huge))
    assert found.coverage.stop == 8
    assert found.kept_tokens > 750


@pytest.mark.parametrize("trigger", ["size", "background"])
def test_the_last_messages_are_kept_where_the_target_allows(trigger: Trigger) -> None:
    """A cut at 6 keeps whole turns, but four messages only; one at 5 keeps five."""
    state = fold(sized([400, 100, 400, 100, 400, 100, 100, 100, 150, 100]))
    assert cut(state, trigger, keep_last=4) == (6, None)
    assert cut(state, trigger, keep_last=5) == (5, None)
    assert cut(state, trigger, keep_last=6) == (5, None)


def test_the_last_tokens_are_kept_where_the_target_allows() -> None:
    state = fold(sized([400, 100, 400, 100, 400, 100, 100, 100, 150, 100]))
    assert cut(state, keep_last=1, keep_tokens=450) == (6, None)
    assert cut(state, keep_last=1, keep_tokens=451) == (5, None)
    assert cut(state, keep_last=1, keep_tokens=600) == (5, None)


def test_whole_turns_are_kept_where_the_target_allows() -> None:
    state = fold([*sized([400, 100, 400, 100, 400, 100, 100, 100, 150, 100])])
    assert cut(state, keep_last=1, keep_turns=2) == (6, None)
    assert cut(state, "manual", keep_last=1, keep_turns=2) == (6, None)
    assert cut(state, "manual", keep_last=1, keep_turns=1) == (8, None)


def test_on_demand_the_keep_rules_yield_to_the_target() -> None:
    state = fold(sized([100] * 16))
    assert cut(state, "manual", keep_last=1) == (14, None)
    assert cut(state, "manual", keep_last=1, keep_turns=3) == (10, None)
    assert cut(state, "manual", keep_last=1, keep_turns=4) == (10, None)
    assert cut(state, "manual", keep_last=1, keep_turns=4, keep_tokens=650) == (9, None)


def test_on_demand_the_last_messages_are_kept_whatever_the_target() -> None:
    state = fold(sized([100] * 8 + [300] * 8))
    assert plan(state, "manual").kept_tokens == 1_500
    assert cut(state, "manual") == (11, 10)


def test_on_demand_a_turn_is_divided_where_little_else_could_be_covered() -> None:
    state = conversation(*talk(1), *turn(20)[:-1], tokens=20)
    assert cut(state, "manual") == (37, None)

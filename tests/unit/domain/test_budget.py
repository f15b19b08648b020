"""The budget of a window: margin, reserve, limit, trigger and target, in figures."""

import pytest

from refold.domain.compaction.budget import budget_for, kept_target, ledger_target, summary_target
from refold.domain.compaction.policy import CompactionPolicy

DEFAULT = CompactionPolicy(ledger_share=0.1, index_share=0)


@pytest.mark.parametrize(
    ("window", "margin", "reserve", "limit", "trigger"),
    [
        (8_000, 800, 1_000, 6_200, 5_600),
        (32_000, 3_200, 4_000, 24_800, 22_400),
        (128_000, 12_800, 16_000, 99_200, 89_600),
        (200_000, 20_000, 16_000, 164_000, 140_000),
        (1_000_000, 100_000, 16_000, 884_000, 700_000),
    ],
)
def test_a_tenth_is_margin_and_the_reserve_is_16_000_or_an_eighth(
    window: int, margin: int, reserve: int, limit: int, trigger: int
) -> None:
    budget = budget_for(window, 0, DEFAULT)
    found = (budget.margin, budget.reserve, budget.limit, budget.trigger)
    assert found == (margin, reserve, limit, trigger)


def test_the_target_is_half_of_what_fixed_parts_leave_of_the_trigger() -> None:
    assert budget_for(200_000, 0, DEFAULT).target == 70_000
    assert budget_for(200_000, 40_000, DEFAULT).target == 90_000


def test_the_trigger_is_never_over_the_limit() -> None:
    eager = CompactionPolicy(trigger_share=1, reserve_share=0.5, reserve_tokens=100_000)
    budget = budget_for(10_000, 0, eager)
    assert budget.limit == 4_000
    assert budget.trigger == budget.limit


def test_fixed_parts_over_the_trigger_leave_no_room() -> None:
    budget = budget_for(8_000, 7_000, DEFAULT)
    assert budget.room == 0
    assert budget.target == budget.fixed


@pytest.mark.parametrize(
    ("window", "fixed", "aim"),
    [(200_000, 0, 8_000), (32_000, 400, 2_440), (8_000, 0, 620), (1_000, 500, 150)],
)
def test_a_summary_aims_at_its_setting_or_a_tenth_of_the_budget(
    window: int, fixed: int, aim: int
) -> None:
    assert summary_target(budget_for(window, fixed, DEFAULT), DEFAULT) == aim


def test_the_ledger_takes_its_share_of_the_budget_or_its_setting() -> None:
    policy = CompactionPolicy(ledger_share=0.05, ledger_tokens=4_000, index_share=0)
    assert ledger_target(budget_for(8_000, 200, policy), policy) == 300
    assert ledger_target(budget_for(200_000, 0, policy), policy) == 4_000


def test_what_may_stay_leaves_the_target_room_for_the_longest_summary_and_the_ledger() -> None:
    policy = CompactionPolicy(ledger_share=0.05, index_share=0)
    budget = budget_for(32_000, 400, policy, summary_overhead=100)
    assert budget.target == 400 + 11_000
    assert kept_target(budget, policy) == 11_000 - int(2_440 * 1.2) - 100 - 1_220


def test_what_may_stay_fits_the_tiers_of_condensed_and_whole_messages() -> None:
    small = CompactionPolicy(condensed_tier=0.1, whole_tier=0.1, ledger_share=0.1, index_share=0)
    assert kept_target(budget_for(32_000, 0, small), small) == 4_960


def test_nothing_may_stay_where_fixed_parts_take_it_all() -> None:
    assert kept_target(budget_for(8_000, 7_000, DEFAULT), DEFAULT) == 0

"""How a turn is divided, and how much of it is at least summarised."""

from typing import Any

import pytest

from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.cuts.choice import (
    Division,
    Turns,
    is_worthwhile,
    largest_kept,
    least_prefix,
)
from tests.support.builders import calls, conversation, results, talk, user

POLICY = CompactionPolicy()
STATE = conversation(*talk(2), user("go"), calls("a"), results("a"), calls("b"), results("b"))


@pytest.mark.parametrize(
    ("average", "share"), [(0, 0.4), (10, 0.375), (50, 0.275), (100, 0.15), (5_000, 0.15)]
)
def test_the_larger_the_messages_the_less_is_at_least_summarised(
    average: float, share: float
) -> None:
    assert least_prefix(average, 1_000, POLICY) == pytest.approx(share)


def test_the_least_share_is_never_over_the_one_for_small_messages() -> None:
    odd = CompactionPolicy(split_prefix_share=0.1, split_prefix_least=0.9)
    assert least_prefix(5, 1_000, odd) == least_prefix(5_000, 1_000, odd) == pytest.approx(0.1)


def test_a_cut_between_turns_divides_none() -> None:
    assert Turns(STATE, frozenset()).division(4) is None
    assert Turns(STATE, frozenset()).begins_at(4)


def test_a_cut_inside_a_turn_divides_it_from_its_beginning() -> None:
    assert Turns(STATE, frozenset()).division(7) == Division(4, 300, 500, 100)
    assert Turns(STATE, frozenset()).division(3) == Division(2, 100, 200, 100)


def test_what_stays_wherever_the_turn_is_cut_counts_for_nothing() -> None:
    assert Turns(STATE, frozenset({4})).division(7) == Division(4, 200, 400, 100)


def test_a_turn_of_which_only_the_request_lies_before_the_cut_is_not_divided() -> None:
    assert Turns(STATE, frozenset({4})).division(5) is None


def test_enough_of_a_divided_turn_must_be_summarised() -> None:
    assert is_worthwhile(Division(0, 400, 1_000, 0), 1_000, POLICY)
    assert not is_worthwhile(Division(0, 399, 1_000, 0), 1_000, POLICY)
    assert is_worthwhile(None, 1_000, POLICY)


def test_the_most_that_may_stay_behind_a_cut_is_sixty_percent_of_the_window() -> None:
    assert largest_kept(200_000, POLICY) == 120_000


LONG = conversation(
    *talk(2), user("go"), *(m for n in range(9) for m in (calls(f"c{n}"), results(f"c{n}")))
)
"""Four messages of 100 tokens, then a turn of 1,900."""


def at(cut: int, window: int, **settings: Any) -> int | None:
    return Turns(LONG, frozenset({4})).split_at(cut, window, CompactionPolicy(**settings))


def test_the_beginning_of_a_turn_is_told_apart_where_the_turn_is_too_large_to_stay() -> None:
    assert at(9, 3_166) == 4
    assert at(9, 3_167) is None
    assert at(9, 3_167, split_share=0.25) == 4
    assert at(9, 3_000, split_share=1) is None
    assert at(3, 1_000) == 2


def test_without_history_before_it_a_turn_is_told_as_history() -> None:
    alone = conversation(
        user("go"), *(m for n in range(9) for m in (calls(f"c{n}"), results(f"c{n}")))
    )
    assert Turns(alone, frozenset({0})).split_at(7, 1_000, POLICY) is None

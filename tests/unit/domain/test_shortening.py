"""What may be shown shorter, from where on messages stay whole, and when enough was freed."""

import pytest

from refold.domain.compaction.budget import Budget, budget_for
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.events import Event, MessagePinned
from refold.domain.evolve import fold
from refold.domain.shortening import (
    condensed_part_fits,
    is_enough,
    is_worth_it,
    shortenable,
    thinking_tokens,
    whole_start,
)
from refold.domain.value import replace
from tests.support.builders import (
    appended,
    calls,
    conversation,
    history,
    performed,
    results,
    talk,
    user,
)

POLICY = CompactionPolicy(whole_last=4, whole_tier=0.5, condensed_tier=0.25)
BUDGET: Budget = budget_for(8_000, 200, POLICY)
"""Limit 6,200, so that 6,000 are for the conversation; trigger 5,600; target 2,900."""


def pinned(position: int, tokens: int = 0) -> Event:
    return MessagePinned(pin_id="p", position=position, text="", tokens=tokens)


def test_live_messages_may_be_shortened_and_covered_ones_may_not() -> None:
    allowed = shortenable(fold([*history(*talk(4)), performed(4)]))
    assert [p for p in range(9) if allowed.allows(p, "c", "result")] == [4, 5, 6, 7]


def test_a_message_that_is_pinned_in_its_place_stays_as_it_is() -> None:
    before = history(user("go"), calls("a"), results("a"))
    assert not shortenable(fold([*before, pinned(2)])).allows(2, "a", "result")
    assert shortenable(fold([*before, pinned(2, tokens=9)])).allows(2, "a", "result")


def test_a_call_that_waits_for_its_result_stays_as_it_is() -> None:
    allowed = shortenable(conversation(user("go"), calls("a", "b"), results("a")))
    assert allowed.allows(1, "a", "call")
    assert not allowed.allows(1, "b", "call")


def test_the_newest_messages_stay_whole() -> None:
    assert whole_start(conversation(*talk(6)), BUDGET, POLICY) == 8
    assert whole_start(conversation(*talk(1)), BUDGET, POLICY) == 0


def test_only_what_fits_its_tier_stays_whole_and_thinking_does_not_count() -> None:
    assert whole_start(conversation(*talk(6), tokens=1_000), BUDGET, POLICY) == 9
    thinking = [
        appended(p, message, 1_000, thinking_tokens=400) for p, message in enumerate(talk(6))
    ]
    assert whole_start(fold(thinking), BUDGET, POLICY) == 8


def test_what_nobody_has_read_yet_stays_whole_however_large_it_is() -> None:
    read = [user("go"), calls("z"), results("z")]
    unread = [calls("a", "b"), results("a"), results("b")]
    assert whole_start(conversation(*read, *unread, tokens=3_000), BUDGET, POLICY) == 3


def test_the_condensed_part_is_what_lies_before_with_what_is_only_counted() -> None:
    state = conversation(*talk(9))
    assert condensed_part_fits(state, BUDGET, POLICY)
    assert not condensed_part_fits(conversation(*talk(10)), BUDGET, POLICY)
    assert not condensed_part_fits(replace(state, older_tokens=101), BUDGET, POLICY)


def test_all_thinking_that_is_shown_is_saved_by_any_decision() -> None:
    events: list[Event] = [appended(0, user("go")), appended(1, calls("a"), 90, thinking_tokens=30)]
    assert thinking_tokens(fold(events)) == 30


@pytest.mark.parametrize(
    ("before", "after", "enough"),
    [
        (5_600, 2_900, True),  # It meets the target.
        (3_100, 2_900, True),  # However little was freed.
        (7_000, 5_599, True),  # Under the trigger, and more than a tenth of the window was freed.
        (7_000, 5_600, False),  # It would be due again at once.
        (5_000, 4_200, True),  # A tenth of the window exactly.
        (4_999, 4_200, False),
        (6_200, 5_599, False),
    ],
)
def test_much_must_be_freed_and_the_rest_be_under_the_trigger(
    before: int, after: int, enough: bool
) -> None:
    assert is_enough(before, after, BUDGET, POLICY) is enough


def test_in_a_large_window_fifteen_thousand_tokens_are_much() -> None:
    budget = budget_for(1_000_000, 0, POLICY)
    assert is_enough(500_000, 485_000, budget, POLICY)
    assert not is_enough(500_000, 485_001, budget, POLICY)


def test_a_quarter_of_that_is_worth_a_decision() -> None:
    assert is_worth_it(200, BUDGET, POLICY)
    assert not is_worth_it(199, BUDGET, POLICY)

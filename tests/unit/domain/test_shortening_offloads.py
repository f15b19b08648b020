"""Large parts of tool calls become previews: which of them, and all at once."""

import pytest

from refold.domain.compaction.budget import budget_for
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.events import ShortenedPart, ToolContentOffloaded
from refold.domain.evolve import fold
from refold.domain.shortening import (
    ToolPart,
    choose_fewest,
    choose_offloads,
    offload_parts,
    select_much_smaller,
)
from tests.support.builders import appended, calls, conversation, history, results, talk

POLICY = CompactionPolicy(whole_last=4)
BUDGET = budget_for(8_000, 0, POLICY)
"""Trigger at 5,600, so that parts over 1,400 are giants; 800 are a tenth of the window."""
STATE = conversation(*talk(6))
"""Twelve messages of which those from position 8 on stay whole."""


def part(position: int, tokens: int = 1_000, preview: int = 100) -> ToolPart:
    return ToolPart(position, f"c{position}", "result", tokens, preview)


def chosen(*parts: ToolPart, size: int = 5_600) -> list[int]:
    return [p.position for p in choose_offloads(parts, STATE, size, BUDGET, POLICY)]


def test_a_part_stays_unless_its_preview_costs_less_than_half() -> None:
    small, half, large = part(1, 500, 300), part(2, 500, 250), part(3, 500, 249)
    assert select_much_smaller([large, half, small]) == (large,)


def test_all_large_parts_before_the_whole_messages_go_at_once() -> None:
    assert chosen(part(1, 1_001), part(3, 1_200), part(5, 1_000), part(9, 1_300)) == [1, 3]


def test_a_giant_goes_wherever_it_stands() -> None:
    assert chosen(part(1, 1_001), part(9, 1_401), part(10, 1_400)) == [9]
    assert chosen(part(1, 1_001), part(9, 1_401), part(10, 1_400), size=6_950) == [9, 1]


def test_no_more_giants_go_than_are_needed_the_oldest_first() -> None:
    assert chosen(part(9, 1_500), part(2, 1_500), part(4, 1_500)) == [2]
    assert chosen(part(9, 1_500), part(2, 1_500), part(4, 1_500), size=7_500) == [2, 4]


def test_what_the_model_has_not_seen_yet_goes_last_and_an_image_never() -> None:
    state = conversation(*talk(5), calls("a", "b"), results("a"), results("b"))
    image = ToolPart(11, "a", "result", 4_784, 60, blind=True)
    older, newer = part(3, 1_500), part(12, 1_500)
    given = [image, newer, older]
    for size, positions in ((5_600, [3]), (7_500, [3, 12]), (20_000, [3, 12])):
        found = choose_offloads(given, state, size, BUDGET, POLICY)
        assert [p.position for p in found] == positions


def test_where_giants_are_enough_nothing_else_is_offloaded() -> None:
    assert chosen(part(1, 1_300), part(9, 4_000)) == [9]


LARGE = budget_for(200_000, 0, POLICY)
"""15,000 tokens are much here, and a quarter of that is worth a decision."""


def test_too_little_is_left_for_a_larger_batch() -> None:
    assert choose_offloads([part(1, 3_849)], STATE, 140_000, LARGE, POLICY) == ()
    assert choose_offloads([part(1, 3_850)], STATE, 140_000, LARGE, POLICY) == (part(1, 3_850),)


def test_thinking_that_goes_with_it_counts() -> None:
    thinks = appended(12, calls("a"), 300, thinking_tokens=1)
    state = fold([*history(*talk(6)), thinks])
    assert choose_offloads([part(1, 3_849)], state, 140_000, LARGE, POLICY) == (part(1, 3_849),)


@pytest.mark.parametrize(
    ("excess", "positions"),
    [(0, []), (-5, []), (1, [1]), (900, [1]), (901, [1, 2]), (9_999, [1, 2, 3])],
)
def test_where_it_must_fit_the_oldest_go_first_and_no_more_than_needed(
    excess: int, positions: list[int]
) -> None:
    parts = choose_fewest([part(3), part(1), part(2)], excess)
    assert [p.position for p in parts] == positions


def test_a_part_that_gets_no_smaller_helps_nobody() -> None:
    assert choose_fewest([part(1, 2_000, 2_000)], 100) == ()


def test_one_event_holds_all_parts() -> None:
    parts = [
        ShortenedPart(position=p, call_id="a", side="result", tokens_freed=700) for p in (1, 2)
    ]
    assert offload_parts(parts, head=40, tail=10) == (
        ToolContentOffloaded(parts=tuple(parts), head=40, tail=10),
    )
    assert offload_parts([], head=40, tail=10) == ()

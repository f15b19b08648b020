"""Large parts of tool calls become previews: which, and that only live ones do."""

import pytest

from refold.domain.events import ShortenedPart, ToolContentOffloaded
from refold.domain.offloading import LargePart, enough, offload_parts, over
from tests.support.builders import calls, history, performed, results, talk, user
from tests.support.given import given


def part(position: int, tokens: int = 1_000, preview: int = 100) -> LargePart:
    return LargePart(position, f"c{position}", "result", tokens, preview)


def test_parts_over_the_limit_never_stay_whole() -> None:
    parts = [part(1, 1_001), part(2, 1_000), part(3, 5_000)]
    assert over(parts, 1_000) == (parts[0], parts[2])


def test_a_part_that_a_preview_makes_no_smaller_stays() -> None:
    assert over([part(1, 2_000, 2_000)], 1_000) == ()
    assert enough([part(1, 2_000, 2_000)], 100) == ()


@pytest.mark.parametrize(
    ("excess", "positions"),
    [(0, []), (-5, []), (1, [1]), (900, [1]), (901, [1, 2]), (9_999, [1, 2, 3])],
)
def test_the_oldest_parts_go_first_and_no_more_than_needed(
    excess: int, positions: list[int]
) -> None:
    assert [p.position for p in enough([part(3), part(1), part(2)], excess)] == positions


def test_what_is_freed_is_recorded_for_each_part() -> None:
    given(history(user("go"), calls("c1"), results("c1"))).when(
        lambda c: offload_parts(c, [part(2, 1_000, 300)], head=40, tail=10)
    ).then(
        ToolContentOffloaded(
            parts=(ShortenedPart(position=2, call_id="c2", side="result", tokens_freed=700),),
            head=40,
            tail=10,
        )
    )


def test_parts_that_are_covered_meanwhile_are_passed_over() -> None:
    before = [*history(*talk(4)), performed(4)]
    outcome = given(before).when(lambda c: offload_parts(c, [part(1), part(5)], head=40, tail=10))
    [event] = outcome.events
    assert isinstance(event, ToolContentOffloaded)
    assert [p.position for p in event.parts] == [5]


def test_nothing_left_to_offload_is_no_event() -> None:
    before = [*history(*talk(4)), performed(4)]
    given(before).when(lambda c: offload_parts(c, [part(1)], head=40, tail=10)).then()
    given(before).when(lambda c: offload_parts(c, [], head=40, tail=10)).then()

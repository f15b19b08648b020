"""A bit that turned over in any file of a store is never served silently."""

import pytest

from tests.support.bit_flips import BAD, RIGHT, Outcome, run


@pytest.mark.parametrize(
    ("seed", "flips"), [(2, 6), *(pytest.param(n, 60, marks=pytest.mark.slow) for n in range(2))]
)
def test_what_is_read_after_a_flip_is_right_or_refused(seed: int, flips: int) -> None:
    outcomes: list[Outcome] = []
    run(flips, seed, outcomes.append)
    assert [outcome for outcome in outcomes if outcome.kind in BAD] == []
    assert any(outcome.kind != RIGHT for outcome in outcomes)

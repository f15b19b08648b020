"""Passages by the sum of the weights of their tokens, also of a text with so many that each has its own sum."""

import random
from collections.abc import Set

import pytest

from refold.infrastructure.recall import posted_runs
from refold.infrastructure.recall.posted_runs import MOST_WEIGHTS, WeighedPassages, passage_at

PLACES = 1_000


class CountedSet(set[float]):
    """A set that counts with how many others it is compared."""

    comparisons = 0

    def __rand__(self, other: Set[float]) -> set[float]:
        self.comparisons += 1
        return set(self).intersection(other)


def tokens(count: int, share: float, seed: int) -> list[tuple[CountedSet, float]]:
    """The places of each token and its weight."""
    drawn = random.Random(seed)
    return [
        (
            CountedSet(float(at) for at in range(PLACES) if drawn.random() < share),
            1 + drawn.random(),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("finds_more", [True, False])
def test_a_token_of_a_long_text_is_not_compared_with_every_sum_so_far(finds_more: bool) -> None:
    found = WeighedPassages(50, is_whole=True)
    found.weigh_whole({float(at) for at in range(PLACES)}, 1.0, finds_more=True)
    compared = 0
    for having, weight in tokens(60, 0.5, seed=1):
        found.weigh_whole(having, weight, finds_more=finds_more)
        compared = max(compared, having.comparisons)
    assert 0 < compared <= MOST_WEIGHTS
    assert len(list(found.best_first())) == PLACES


@pytest.mark.parametrize("most_weights", [0, 3, MOST_WEIGHTS])
def test_the_order_is_that_of_plain_sums(
    most_weights: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posted_runs, "MOST_WEIGHTS", most_weights)
    found, sums = WeighedPassages(20, is_whole=True), dict[float, float]()
    for at, (having, weight) in enumerate(tokens(12, 0.2, seed=2)):
        finds_more = at < 8
        found.weigh_whole(having, weight, finds_more=finds_more)
        for place in having if finds_more else having & sums.keys():
            sums[place] = sums.get(place, 0.0) + weight
        if at == 9:
            found.part()
    ordered = sorted(sums, key=lambda place: (-sums[place], -place))
    assert found.count == len(ordered)
    assert list(found.best_first()) == [passage_at(0, place) for place in ordered]


@pytest.mark.parametrize("most_weights", [0, 3, MOST_WEIGHTS])
def test_only_those_that_can_be_among_the_best_are_kept(
    most_weights: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posted_runs, "MOST_WEIGHTS", most_weights)
    found, each = WeighedPassages(20, is_whole=True), tokens(12, 0.2, seed=3)
    for having, weight in each:
        found.weigh_whole(having, weight, finds_more=True)
    before = list(found.best_first())
    found.drop_hopeless(0.5)
    assert 20 <= found.count < len(before)
    assert list(found.best_first()) == before[: found.count]

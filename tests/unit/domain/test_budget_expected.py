"""The length of the next summary is expected by the last ones of the same model."""

import pytest

from refold.domain.compaction.budget import budget_for, kept_target, reserve_room
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.compaction.summary_rules import REMEMBERED, ExpectedLength, expect_length
from refold.domain.conversation import Conversation, SummaryLength
from refold.domain.evolve import fold
from tests.support.builders import history, performed, talk

POLICY = CompactionPolicy(ledger_share=0.1, index_share=0)
BUDGET = budget_for(32_000, 0, POLICY, summary_overhead=100)


def state_of(*lengths: SummaryLength) -> Conversation:
    return Conversation(lengths=lengths)


def length(text: int, model: str = "m", summariser: str = "s") -> SummaryLength:
    return SummaryLength(summariser, model, text, text // 10)


def test_nothing_is_expected_of_a_summariser_that_wrote_nothing_yet() -> None:
    assert expect_length(Conversation(), "s") is None
    assert expect_length(state_of(length(900, summariser="other")), "s") is None
    assert kept_target(BUDGET, POLICY, None) == kept_target(BUDGET, POLICY)


def test_the_longest_of_the_last_three_of_the_newest_model_is_expected() -> None:
    lengths = [length(n) for n in (2_000, 300, 700, 500)]
    assert expect_length(state_of(*lengths), "s") == ExpectedLength(700, 70)
    assert expect_length(state_of(*lengths, length(90, model="new")), "s") == ExpectedLength(90, 9)
    assert expect_length(state_of(*lengths, length(90, summariser="x")), "s") == ExpectedLength(
        700, 70
    )


def test_lengths_are_a_fold_of_the_summaries_and_few() -> None:
    made = [
        performed(1, text_tokens=100 + n, tokens=300, summariser="s", model="m")
        for n in range(REMEMBERED + 2)
    ]
    state = fold([*history(*talk(2)), *made])
    assert [one.text for one in state.lengths] == [100 + n for n in range(2, REMEMBERED + 2)]
    assert state.lengths[-1].beside == 300 - state.lengths[-1].text
    assert expect_length(state, "s") == ExpectedLength(100 + REMEMBERED + 1, 195)


def test_a_summary_that_did_not_say_its_length_tells_nothing() -> None:
    assert fold([*history(*talk(2)), performed(1, text_tokens=0, tokens=9)]).lengths == ()


@pytest.mark.parametrize(
    ("text", "beside", "aside"),
    [
        (0, 0, (1_240, 0)),  # Half of the aim, so that one short text does not make all short.
        (1_500, 400, (1_800, 450)),
        (9_000, 9_000, (2_976, 2_480)),  # No more than without any expectation.
    ],
)
def test_room_is_set_aside_for_what_is_expected(
    text: int, beside: int, aside: tuple[int, int]
) -> None:
    assert reserve_room(BUDGET, POLICY, ExpectedLength(text, beside)) == aside
    assert kept_target(BUDGET, POLICY, ExpectedLength(text, beside)) >= kept_target(BUDGET, POLICY)

"""What a model wrote is paid for: it is carried into every later summary, and never lost to code's extract."""

import pytest

import refold
from refold.domain.compaction.policy import CompactionPolicy
from tests.support.fact_summarisers import FactSummariser, facts_in


def play(
    summariser: FactSummariser, turns: int = 400, window: int = 60_000, **policy: int
) -> list[refold.CompactionResult]:
    """A long conversation, compacted by size whenever that is due."""
    done: list[refold.CompactionResult] = []
    settings = CompactionPolicy(**policy)
    with refold.open(":memory:", window=window, summariser=summariser, policy=settings) as memory:
        conversation = memory.conversation("t")
        for n in range(turns):
            conversation.append(
                {"role": "user", "content": f"Question {n}: " + f"word{n} says more. " * 60}
            )
            done += conversation.context().compactions
            conversation.append(
                {"role": "assistant", "content": f"Answer {n}: " + f"so it{n} is. " * 60}
            )
    return [result for result in done if result.outcome == "performed"]


@pytest.mark.slow
def test_each_request_carries_on_the_text_that_the_model_wrote_before() -> None:
    summariser = FactSummariser()
    done = play(summariser)
    assert len(done) >= 4
    assert all(result.model_calls == 1 for result in done)
    for number, request in enumerate(summariser.requests[1:], 1):
        assert set(facts_in(request.previous)) == set(range(1, number + 1))
        if not done[number].rebuilt:
            assert not (request.previous or "").startswith("Extracted by code")


@pytest.mark.slow
def test_a_rebuilt_summary_is_made_of_every_text_that_the_model_wrote() -> None:
    summariser = FactSummariser(300, forgets=True)
    done = play(summariser, turns=250)
    assert [result.rebuilt for result in done] == [False] * 5 + [True]
    assert facts_in(summariser.requests[5].previous) == [1, 2, 3, 4, 5]
    assert str(summariser.requests[5].previous).startswith("Written by fake-model-1 about messages")


@pytest.mark.slow
def test_a_text_far_over_its_length_is_built_anew_from_the_models_texts() -> None:
    summariser = FactSummariser(900, forgets=True)
    done = play(summariser, summary_tokens=1_000)
    assert [result.rebuilt for result in done][:3] == [False, True, True]
    assert facts_in(summariser.requests[2].previous) == [1, 2]
    assert all(result.model_calls == 1 for result in done), "what is longer than asked is accepted"


@pytest.mark.slow
@pytest.mark.parametrize("over", [400, None])
def test_the_length_that_is_built_anew_is_a_setting(over: int | None) -> None:
    settings = {} if over is None else {"rebuild_over_tokens": over}
    done = play(FactSummariser(900), **settings)
    assert done[1].rebuilt is (over is not None)


class FailingOnce(FactSummariser):
    """A model that is away for a while."""

    def __init__(self, away: range) -> None:
        super().__init__(300)
        self.away = away
        self.asked = 0

    async def summarise(self, request: refold.SummaryRequest) -> refold.SummaryDraft:
        self.asked += 1
        if self.asked in self.away:
            raise refold.SummariserError("authentication", "the key was taken back")
        return await super().summarise(request)


@pytest.mark.slow
def test_what_a_model_wrote_comes_back_after_code_stepped_in() -> None:
    summariser = FailingOnce(range(3, 12))
    done = play(summariser, 300, 24_000)
    by = [result.summariser for result in done]
    assert by[:2] == ["facts", "facts"]
    back = by.index("facts", by.index("extractive"))
    assert done[back].rebuilt
    assert set(facts_in(summariser.requests[2].previous)) == {1, 2}

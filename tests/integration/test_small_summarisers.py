"""A summariser with a small window beside a large conversation: what is asked of it fits."""

from pathlib import Path

import pytest

import refold
from refold.infrastructure.summarisers.anthropic import AnthropicSummariser
from tests.support import anthropic_server as api
from tests.support.anthropic_server import AnthropicServer
from tests.support.bounded_summarisers import Bounded
from tests.support.fact_summarisers import FactSummariser, facts_in
from tests.support.summarising import KEY


def talk(conversation: refold.ConversationMemory, first: int, last: int) -> None:
    for n in range(first, last):
        conversation.append(
            {"role": "user", "content": f"Question {n}: " + f"word{n} says more. " * 60}
        )
        conversation.append(
            {"role": "assistant", "content": f"Answer {n}: " + f"so it{n} is. " * 60}
        )


@pytest.mark.slow(but="10000")
@pytest.mark.parametrize("window", [10_000, 30_000])
def test_the_length_that_is_asked_for_fits_the_window_of_the_summariser(window: int) -> None:
    bounded = Bounded(window, FactSummariser(200))
    with refold.open(":memory:", window=100_000, summariser=bounded) as memory:
        conversation = memory.conversation("t")
        talk(conversation, 0, 60)
        done = conversation.compact(all=True)
        assert (done.outcome, done.summariser) == ("performed", bounded.name), done
        talk(conversation, 60, 90)
        assert conversation.compact(all=True).outcome == "performed"
    assert all(bounded.measure(request) <= window for request in bounded.requests)
    assert all(request.target_tokens >= 150 for request in bounded.requests)
    facts = [set(facts_in(request.previous)) for request in bounded.requests]
    assert facts == [set(range(1, n + 1)) for n in range(len(facts))], "each is carried on"


@pytest.mark.slow(but="30000")
@pytest.mark.parametrize("window", [12_000, 30_000])
def test_a_small_model_of_the_api_writes_the_summary_of_a_large_conversation(
    window: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with AnthropicServer([api.ok()] * 30) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
        small = AnthropicSummariser(window=window)
        with refold.open(
            tmp_path / "a.db", window=200_000, summariser=small, notes="off"
        ) as memory:
            conversation = memory.conversation("t")
            talk(conversation, 0, 50)
            done = conversation.compact()
            assert (done.outcome, done.summariser) == ("performed", "anthropic"), done
        assert 1 < done.model_calls <= 24
        assert all(request.body["max_tokens"] < window // 2 for request in server.requests)


@pytest.mark.slow
def test_a_text_that_a_larger_model_wrote_is_shortened_for_a_small_one(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with refold.open(path, window=100_000, summariser=FactSummariser(2_000)) as memory:
        talk(memory.conversation("t"), 0, 60)
        assert memory.conversation("t").compact(all=True).outcome == "performed"
    bounded = Bounded(6_000, FactSummariser(100))
    with refold.open(path, window=100_000, summariser=bounded) as memory:
        talk(memory.conversation("t"), 60, 70)
        done = memory.conversation("t").compact(all=True)
        assert (done.outcome, done.summariser) == ("performed", bounded.name), done
    assert facts_in(bounded.requests[0].previous) == [1]

"""After a compaction the request meets its target, and room that nothing needs is not left empty."""

from collections.abc import Iterator
from typing import Any

import pytest

import refold
from refold.application.api.results import Context

WORDS = "word " * 900


def contexts(memory: refold.Memory, turns: int) -> Iterator[Context]:
    conversation = memory.conversation("t")
    for n in range(turns):
        conversation.append({"role": "user", "content": f"q{n} {WORDS}"})
        yield conversation.context()
        conversation.append({"role": "assistant", "content": f"a{n} {WORDS}"})


class Brief:
    """A model that writes far less than it may."""

    name = "brief"

    def __init__(self, words: int) -> None:
        self.words = words
        self.aims: list[int] = []

    async def summarise(self, request: refold.SummaryRequest) -> refold.SummaryDraft:
        self.aims.append(request.target_tokens)
        text = " ".join(f"fact{n}" for n in range(self.words))
        return refold.SummaryDraft(text=text, complete=True, model="m", prompt_fingerprint="1")


@pytest.mark.slow
def test_the_newest_messages_stay_whole_where_they_fit_the_target() -> None:
    with refold.open(":memory:", window=16_000) as memory:
        made = [context for context in contexts(memory, 30) if context.compactions]
    assert len(made) > 3
    for context in made:
        assert context.compactions[0].messages_kept >= 5
        assert 0.8 * context.budget.target < context.tokens <= context.budget.target


@pytest.mark.slow
def test_a_cut_is_planned_by_the_length_of_the_last_summaries() -> None:
    model = Brief(60)
    with refold.open(":memory:", window=16_000, summariser=model) as memory:
        made = [context for context in contexts(memory, 40) if context.compactions]
    assert [context.compactions[0].messages_kept for context in made][:2] == [4, 5]
    assert all(context.tokens <= context.budget.target for context in made)
    # What is aimed at does not shrink with what is written.
    assert min(model.aims) >= 500


@pytest.mark.slow(but="settings1")
@pytest.mark.parametrize("settings", [{"ledger_share": 0.0}, {"summary_tier": 0.02}, {}])
def test_no_result_is_above_its_target(settings: dict[str, Any]) -> None:
    policy = refold.CompactionPolicy(**settings)
    for window in (8_000, 12_000, 24_000):
        with refold.open(":memory:", window=window, policy=policy) as memory:
            for context in contexts(memory, 20):
                if context.compactions:
                    assert context.tokens <= context.budget.target
                    assert context.compactions[-1].effective

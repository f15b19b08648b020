"""Summaries that are switched off, or wait for so many messages: the context fits, and notes are honest."""

from typing import Any

import pytest

import refold
from refold.domain.compaction.policy import CompactionPolicy
from refold.testing.request_judge import violations
from tests.support.bounded_summarisers import Bounded
from tests.support.fake_summarisers import RecordingSummariser


def talk(
    conversation: refold.ConversationMemory, first: int, last: int, words: int = 60
) -> list[refold.CompactionResult]:
    done: list[refold.CompactionResult] = []
    for n in range(first, last):
        conversation.append(
            {"role": "user", "content": f"Question {n}: " + f"word{n} says more. " * words}
        )
        context = conversation.context()
        assert context.tokens <= context.budget.limit
        assert violations({"model": "claude-opus-5-5", **context.for_anthropic()}) == []
        done += context.compactions
        conversation.append(
            {"role": "assistant", "content": f"Answer {n}: " + f"so it{n} is. " * words}
        )
    return done


@pytest.mark.slow
def test_with_summaries_off_the_context_fits_and_one_note_says_what_is_not_shown() -> None:
    with refold.open(":memory:", window=16_000, summariser="off") as memory:
        conversation = memory.conversation("t")
        done = talk(conversation, 0, 120)
        assert len(done) > 6, "more often than a summary is built anew"
        assert {(result.outcome, result.summariser, result.model_calls) for result in done} == {
            ("performed", "off", 0)
        }
        summary = conversation.context().summary
        assert summary is not None
        last = summary.coverage.stop - 1
        assert summary.text == (
            f"[Messages 0 to {last} are no longer shown: there is no summary of them. They are kept: "
            f"each can be read back by its address, refold://t/0 to refold://t/{last}.]"
        )
        assert conversation.read("refold://t/3").text.startswith("Answer 1:")
        assert memory.verify().ok


@pytest.mark.slow
def test_what_was_summarised_before_stays_with_a_note_behind_it(tmp_path: Any) -> None:
    path = tmp_path / "a.db"
    with refold.open(path, window=16_000, summariser=RecordingSummariser()) as memory:
        talk(memory.conversation("t"), 0, 30)
        before = memory.conversation("t").context().summary
    assert before is not None
    with refold.open(path, window=16_000, summariser="off") as memory:
        talk(memory.conversation("t"), 30, 60)
        after = memory.conversation("t").context().summary
    assert after is not None
    assert after.text.startswith(f"{before.text}\n\n[Messages {before.coverage.stop} to ")
    assert after.text.count("[Messages") == 1


def test_off_is_a_setting_of_the_environment_and_of_the_command_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REFOLD_SUMMARISER", "off")
    with refold.open(":memory:", window=16_000) as memory:
        conversation = memory.conversation("t")
        for n in range(12):
            conversation.append({"role": "user", "content": f"Question {n} " + "word " * 50})
            conversation.append({"role": "assistant", "content": f"Answer {n} " + "word " * 50})
        assert conversation.compact().summariser == "off"


@pytest.mark.slow
def test_no_first_summary_is_made_before_there_are_so_many_messages() -> None:
    policy = CompactionPolicy(first_summary_after=30)
    summariser = RecordingSummariser()
    with refold.open(":memory:", window=20_000, summariser=summariser, policy=policy) as memory:
        conversation = memory.conversation("t")
        done = talk(conversation, 0, 14, words=100)
        assert not [result for result in done if result.outcome == "performed"]
        context = conversation.context()
        assert context.budget.trigger <= context.tokens <= context.budget.limit
        talk(conversation, 14, 18, words=100)
        assert conversation.context().summary is not None
        assert len(summariser.requests[0].messages) > 10


@pytest.mark.slow
def test_a_request_that_would_not_fit_is_summarised_all_the_same() -> None:
    policy = CompactionPolicy(first_summary_after=1_000)
    with refold.open(":memory:", window=8_000, policy=policy) as memory:
        conversation = memory.conversation("t")
        talk(conversation, 0, 60)
        assert conversation.context().summary is not None


class Progress:
    def __init__(self) -> None:
        self.told: list[tuple[str, int, int]] = []

    def compaction_ended(self, result: refold.CompactionResult) -> None:
        pass

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        pass

    def chunk_summarised(self, thread_id: str, done: int, chunks: int) -> None:
        self.told.append((thread_id, done, chunks))


@pytest.mark.slow
def test_observers_and_the_log_are_told_of_each_chunk(caplog: pytest.LogCaptureFixture) -> None:
    progress, bounded = Progress(), Bounded(12_000)
    options: dict[str, Any] = {"summariser": bounded, "observers": (progress,)}
    caplog.set_level("INFO", logger="refold")
    with refold.open(":memory:", window=100_000, **options) as memory:
        conversation = memory.conversation("t")
        talk(conversation, 0, 30)
        assert conversation.compact(all=True).outcome == "performed"
    chunks = len(bounded.requests)
    assert chunks > 2
    assert progress.told == [("t", n, chunks) for n in range(1, chunks + 1)]
    lines = [
        r.getMessage() for r in caplog.records if r.getMessage().startswith("compaction.chunk")
    ]
    assert lines == [
        f"compaction.chunk thread_id=t done={n} chunks={chunks}" for n in range(1, chunks + 1)
    ]

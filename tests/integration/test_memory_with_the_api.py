"""The whole memory with the real client of the Messages API against a local server."""

import json
from pathlib import Path

import anthropic
import pytest

import refold
from refold.infrastructure.summarisers.anthropic import AnthropicSummariser
from refold.infrastructure.summarisers.named_summarisers import retrying
from refold.infrastructure.tokens.anthropic import AnthropicTokenCounter
from tests.support.anthropic_server import AnthropicServer, ok, overloaded, truncated

MODEL = "claude-opus-5-5"
WINDOW = 8_000


def client_of(server: AnthropicServer) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(api_key="test", base_url=server.base_url, max_retries=0)


async def no_wait(seconds: float) -> None:
    del seconds


def opened(path: Path, server: AnthropicServer, **options: object) -> refold.Memory:
    summariser = retrying(AnthropicSummariser(client=client_of(server)), sleep=no_wait)
    options.setdefault("notes", "off")
    return refold.open(path, window=WINDOW, model=MODEL, summariser=summariser, **options)  # type: ignore[arg-type]


def talk(conversation: refold.ConversationMemory, start: int, turns: int) -> list[refold.Context]:
    contexts: list[refold.Context] = []
    for n in range(start, start + turns):
        conversation.append(
            {"role": "user", "content": f"Question {n}. " + "What about the cache? " * 20}
        )
        contexts.append(conversation.context())
        conversation.append({"role": "assistant", "content": f"Answer {n}. " + "It is warm. " * 20})
    return contexts


def test_a_model_writes_the_summary_when_one_is_due(tmp_path: Path) -> None:
    with AnthropicServer([ok()]) as server:
        with opened(tmp_path / "a.db", server) as memory:
            conversation = memory.conversation("t")
            contexts = talk(conversation, 0, 60)
            performed = [r for c in contexts for r in c.compactions]
            assert performed
            assert {r.outcome for r in performed} == {"performed"}
            assert {r.summariser for r in performed} == {"anthropic"}
            assert all(c.tokens <= c.budget.limit for c in contexts)
        asked = [json.dumps(request.body) for request in server.requests]
        assert len(asked) == len(performed)
        assert "Question 0." in asked[0]
        assert "What about the cache?" in contexts[-1].messages[-1]["content"]


def test_an_overloaded_model_leaves_the_context_whole_until_it_would_not_fit(
    tmp_path: Path,
) -> None:
    with AnthropicServer([overloaded()]) as server, opened(tmp_path / "a.db", server) as memory:
        conversation = memory.conversation("t")
        contexts = talk(conversation, 0, 60)
        results = [r for c in contexts for r in c.compactions]
        first_failure = next(c for c in contexts if c.compactions)
        assert first_failure.compactions[0].reason == "overloaded"
        assert first_failure.summary is None
        assert {r.summariser for r in results if r.outcome == "performed"} == {"extractive"}
        assert all(c.tokens <= c.budget.limit for c in contexts)
        assert {row.outcome for row in conversation.compactions()} == {"failed", "performed"}
        assert memory.verify().ok


def test_a_truncated_answer_is_never_committed(tmp_path: Path) -> None:
    with AnthropicServer([truncated()]) as server, opened(tmp_path / "a.db", server) as memory:
        conversation = memory.conversation("t")
        talk(conversation, 0, 12)
        before = conversation.context()
        result = conversation.compact()
        assert (result.outcome, result.reason) == ("failed", "truncated")
        assert conversation.summaries() == []
        assert conversation.context().messages == before.messages


def test_a_focus_reaches_the_model(tmp_path: Path) -> None:
    with AnthropicServer([ok()]) as server:
        with opened(tmp_path / "a.db", server) as memory:
            conversation = memory.conversation("t")
            talk(conversation, 0, 12)
            assert conversation.compact(focus="the cache settings").outcome == "performed"
        assert "the cache settings" in json.dumps(server.requests[0].body)


def test_after_a_restart_the_summary_is_there_and_no_model_is_asked(tmp_path: Path) -> None:
    with AnthropicServer([ok()]) as server:
        with opened(tmp_path / "a.db", server) as memory:
            conversation = memory.conversation("t")
            talk(conversation, 0, 12)
            conversation.compact()
            before = conversation.context()
        with opened(tmp_path / "a.db", server) as memory:
            after = memory.conversation("t").context()
            assert after.messages == before.messages
            memory.replay()
            assert memory.verify().ok
        assert len(server.requests) == 1


def test_the_counting_endpoint_corrects_the_estimate_after_a_compaction(tmp_path: Path) -> None:
    with AnthropicServer([ok(), ok()], input_tokens=3_210) as server:
        counter = AnthropicTokenCounter(client=client_of(server))
        with opened(tmp_path / "a.db", server, counter=counter) as memory:
            contexts = talk(memory.conversation("t"), 0, 30)
        counted = [c for c in contexts if c.compactions]
        assert counted
        assert all(c.tokens == 3_210 for c in counted)
        assert len(server.counts) == len(counted)


def test_a_request_that_the_endpoint_finds_too_large_is_settled_again(tmp_path: Path) -> None:
    with AnthropicServer([ok()], input_tokens=50_000) as server:
        counter = AnthropicTokenCounter(client=client_of(server))
        with opened(tmp_path / "a.db", server, counter=counter) as memory:
            conversation = memory.conversation("t")
            with pytest.raises(refold.ContextWindowExceeded, match="50,000"):
                talk(conversation, 0, 60)
            assert memory.verify().ok

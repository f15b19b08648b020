"""The whole memory with compaction by the Messages API, against a local server that checks signatures."""

import json
from pathlib import Path
from typing import Any

import anthropic
import pytest

import refold
from refold.application.conversation.models import COMPACTION_BETA
from refold.infrastructure.summarisers.named_summarisers import retrying
from refold.infrastructure.summarisers.server_compaction import ServerCompactionSummariser
from refold.infrastructure.tokens.anthropic import AnthropicTokenCounter
from refold.testing.request_judge import violations
from tests.support import anthropic_server as api
from tests.support.anthropic_server import AnthropicServer

MODEL = "claude-opus-5-5"
WINDOW = 8_000


async def no_wait(seconds: float) -> None:
    del seconds


def async_client(server: AnthropicServer) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(api_key="test", base_url=server.base_url, max_retries=0)


def opened(path: Path, server: AnthropicServer, **options: Any) -> refold.Memory:
    summariser = ServerCompactionSummariser(client=async_client(server))
    options.setdefault("notes", "off")
    return refold.open(
        path,
        window=WINDOW,
        model=MODEL,
        summariser=retrying(summariser, sleep=no_wait),
        **options,
    )


def talk(
    conversation: refold.ConversationMemory, turns: int, answering: AnthropicServer
) -> list[refold.Context]:
    """Turns whose answers come from the API: what it refuses raises."""
    contexts: list[refold.Context] = []
    with anthropic.Anthropic(api_key="test", base_url=answering.base_url, max_retries=0) as client:
        for n in range(turns):
            conversation.append(
                {"role": "user", "content": f"Question {n}. " + "What of it? " * 30}
            )
            contexts.append(conversation.context())
            request: Any = contexts[-1].for_anthropic()
            answer = client.messages.create(model=MODEL, max_tokens=500, stream=False, **request)
            conversation.append(answer)
    return contexts


def answering() -> AnthropicServer:
    return AnthropicServer([api.ok("It is warm. " * 30)])


def first_block(request: Any) -> dict[str, Any]:
    content = request["messages"][0]["content"]
    return {} if isinstance(content, str) else content[0]


@pytest.mark.slow
def test_the_block_opens_every_request_until_the_next_one_takes_its_place(tmp_path: Path) -> None:
    answers = [api.compacted(f"{api.GOOD_SUMMARY}\nNumber {n}.") for n in range(9)]
    given = [json.loads(answer.body)["content"][0] for answer in answers]
    with AnthropicServer(answers) as server, answering() as agent:
        with opened(tmp_path / "a.db", server) as memory:
            conversation = memory.conversation("t")
            contexts = talk(conversation, 60, agent)
            assert memory.verify().ok
        performed = [r for c in contexts for r in c.compactions if r.outcome == "performed"]
        assert {r.summariser for r in performed} == {"anthropic-server"}
        assert 1 < len(performed) == len(server.requests)
        asked = [first_block(request.body) for request in server.requests]
        assert [block for block in asked if block.get("type") == "compaction"] == given[
            : len(asked) - 1
        ]
        for sent in agent.requests:
            assert violations(sent.body, model=MODEL) == []
        signed = [r for r in agent.requests if first_block(r.body).get("type") == "compaction"]
        assert {r.headers.get("anthropic-beta") for r in signed} == {COMPACTION_BETA}
        assert [r.headers.get("anthropic-beta") for r in agent.requests if r not in signed]
        assert first_block(signed[-1].body) == given[len(performed) - 1]


def test_restart_replay_and_time_travel_give_the_block_again(tmp_path: Path) -> None:
    with AnthropicServer([api.compacted()]) as server, answering() as agent:
        with opened(tmp_path / "a.db", server) as memory:
            conversation = memory.conversation("t")
            talk(conversation, 12, agent)
            assert conversation.compact().outcome == "performed"
            before = conversation.context()
        with opened(tmp_path / "a.db", server) as memory:
            conversation = memory.conversation("t")
            memory.replay()
            assert memory.verify().ok
            assert json.dumps(conversation.context().messages) == json.dumps(before.messages)
            assert conversation.context(at=before.version).messages == before.messages
            (row,) = conversation.summaries()
            assert row.summary_text == api.GOOD_SUMMARY
        assert len(server.requests) == 1


def test_another_model_reads_the_text_and_back_again_the_block(tmp_path: Path) -> None:
    with (
        AnthropicServer([api.compacted()]) as server,
        answering() as agent,
        opened(tmp_path / "a.db", server) as memory,
    ):
        conversation = memory.conversation("t")
        talk(conversation, 12, agent)
        conversation.compact()
        conversation.append({"role": "user", "content": "And now?"})
        for model in ("gpt-5", MODEL, "claude-haiku-5-5", MODEL):
            context = conversation.context(model=model)
            shown = first_block(context.for_anthropic())
            if model == MODEL:
                assert shown["type"] == "compaction"
            else:
                assert shown["text"] == f"[Conversation Summary]\n{api.GOOD_SUMMARY}"
                assert context.betas == ()


FAILURES = {
    "overloaded": api.compaction_unavailable(),
    "truncated": api.not_compacted("max_tokens"),
    "refused": api.not_compacted("refusal"),
    "empty": api.compacted(None),
    "bad_answer": api.not_compacted("tool_use"),
    "unsupported": api.bad_request("compaction: Extra inputs are not permitted"),
}


@pytest.mark.slow(but=["refused", "empty"])
@pytest.mark.parametrize("reason", FAILURES)
def test_what_fails_leaves_all_as_it_was_until_the_built_in_one_steps_in(
    reason: str, tmp_path: Path
) -> None:
    with (
        AnthropicServer([FAILURES[reason]]) as server,
        answering() as agent,
        opened(tmp_path / "a.db", server) as memory,
    ):
        conversation = memory.conversation("t")
        contexts = talk(conversation, 60, agent)
        results = [r for c in contexts for r in c.compactions]
        assert reason in {r.reason for r in results if r.outcome == "failed"}
        assert {r.summariser for r in results if r.outcome == "performed"} == {"extractive"}
        assert all(c.tokens <= c.budget.limit and c.betas == () for c in contexts)
        failed = [r for r in results if r.outcome == "failed"]
        assert sum(r.model_calls for r in failed) == len(server.requests)


def test_a_focus_reaches_the_api(tmp_path: Path) -> None:
    with AnthropicServer([api.compacted()]) as server, answering() as agent:
        with opened(tmp_path / "a.db", server) as memory:
            conversation = memory.conversation("t")
            talk(conversation, 12, agent)
            assert conversation.compact(focus="the cache settings").outcome == "performed"
        assert "the cache settings" in server.requests[0].body["compaction"]["instructions"]


def test_after_an_undo_nothing_is_left_of_the_block(tmp_path: Path) -> None:
    with (
        AnthropicServer([api.compacted()]) as server,
        answering() as agent,
        opened(tmp_path / "a.db", server) as memory,
    ):
        conversation = memory.conversation("t")
        talk(conversation, 12, agent)
        before = conversation.context().messages
        conversation.compact()
        assert conversation.context().betas == (COMPACTION_BETA,)
        conversation.revert_compaction()
        assert conversation.context().messages == before


def test_the_counting_endpoint_is_asked_with_the_beta(tmp_path: Path) -> None:
    with AnthropicServer([api.compacted()], input_tokens=3_210) as server, answering() as agent:
        counter = AnthropicTokenCounter(client=async_client(server))
        with opened(tmp_path / "a.db", server, counter=counter) as memory:
            contexts = talk(memory.conversation("t"), 30, agent)
        assert [c.tokens for c in contexts if c.compactions][:1] == [3_210]
        assert {r.headers.get("anthropic-beta") for r in server.counts} == {COMPACTION_BETA}

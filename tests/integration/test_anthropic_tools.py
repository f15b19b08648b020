"""The tool runner of the anthropic SDK calls the tools by itself, against a server of ours."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest

import refold
from refold.application.agent_tools.tool_names import QUERY_HISTORY, RECALL_MEMORY
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.errors import LogDamaged
from refold.domain.errors import RefoldError
from tests.support.anthropic_server import AnthropicServer, message, ok
from tests.support.fake_ports import MemoryLog, core_of
from tests.support.log_files import with_chat
from tests.support.tool_talks import filled

MODEL = "claude-test-1"
QUESTION: Any = {"role": "user", "content": "Which port does service s3 have?"}


def calls(name: str, given: object) -> Any:
    used = {"type": "tool_use", "id": "toolu_1", "name": name, "input": given}
    return message(used, stop_reason="tool_use")


@pytest.fixture
def conversation() -> Iterator[ConversationMemory]:
    with refold.open(":memory:", window=8_000) as memory:
        yield filled(memory)


def results(server: AnthropicServer) -> list[dict[str, Any]]:
    """The blocks that answer the calls, as the last request has them."""
    content: list[dict[str, Any]] = server.requests[-1].body["messages"][-1]["content"]
    return content


def run(conversation: ConversationMemory, server: AnthropicServer) -> Any:
    with anthropic.Anthropic(api_key="k", base_url=server.base_url, max_retries=0) as client:
        runner = client.beta.messages.tool_runner(
            model=MODEL,
            max_tokens=100,
            messages=[QUESTION],
            tools=conversation.tools().for_anthropic(),
        )
        return runner.until_done()


def test_the_runner_sends_the_definitions_and_what_a_call_found(
    conversation: ConversationMemory,
) -> None:
    answers = [calls(RECALL_MEMORY, {"query": "port of service s3"}), ok("It is 5403.")]
    with AnthropicServer(answers) as server:
        assert run(conversation, server).content[0].text == "It is 5403."
        assert server.requests[0].body["tools"] == conversation.tools().definitions
        (result,) = results(server)
    assert result["tool_use_id"] == "toolu_1"
    assert "The port of service s3 is 5403." in result["content"]
    assert not result.get("is_error")


@pytest.mark.parametrize("given", [{}, {"query": 5}, {"query": "a", "evil": "x"}])
def test_a_wrong_call_reaches_the_model_as_an_error(
    conversation: ConversationMemory, given: object, caplog: pytest.LogCaptureFixture
) -> None:
    with AnthropicServer([calls(RECALL_MEMORY, given), ok("Sorry.")]) as server:
        run(conversation, server)
        (result,) = results(server)
    assert result["is_error"] is True
    assert "its arguments are wrong" in result["content"]
    assert "Traceback" not in caplog.text


def test_asyncio_has_a_runner_as_well(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db", window=8_000) as memory:
        filled(memory, turns=20)

    async def ask(server: AnthropicServer) -> Any:
        async with refold.aopen(tmp_path / "a.db", window=8_000) as memory:
            conversation = memory.conversation("t")
            async with anthropic.AsyncAnthropic(
                api_key="k", base_url=server.base_url, max_retries=0
            ) as client:
                runner = client.beta.messages.tool_runner(
                    model=MODEL,
                    max_tokens=100,
                    messages=[QUESTION],
                    tools=conversation.tools().for_anthropic(),
                )
                return await runner.until_done()

    for name, given, failed in (
        (QUERY_HISTORY, {"text": "service s3 is"}, False),
        (RECALL_MEMORY, {"limit": 5}, True),
    ):
        with AnthropicServer([calls(name, given), ok("It is 5403.")]) as server:
            assert asyncio.run(ask(server)).content[0].text == "It is 5403."
            (result,) = results(server)
        assert bool(result.get("is_error")) is failed


def test_a_memory_put_together_by_hand_says_that_it_has_no_sdk() -> None:
    def ask(conversation: ConversationMemory) -> None:
        with pytest.raises(RefoldError, match="result_for"):
            conversation.tools().for_anthropic()

    with_chat(core_of(MemoryLog()), ask)


def test_a_log_that_cannot_be_read_reaches_the_model_as_an_error(
    conversation: ConversationMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*_: object, **__: object) -> object:
        raise LogDamaged("t", 3, "its bytes were changed")

    monkeypatch.setattr("refold.application.agent_tools.query_history.history_page", damaged)
    with AnthropicServer([calls(QUERY_HISTORY, {}), ok("I cannot look.")]) as server:
        run(conversation, server)
        (result,) = results(server)
    assert result["is_error"] is True
    assert "refold verify" in result["content"]

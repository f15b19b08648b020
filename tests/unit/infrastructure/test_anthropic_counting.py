"""The counting adapter speaks to a real client and a local server; only the server is a fake."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest
from pytest_httpserver import HTTPServer

import refold
from refold.application.errors import TokenCountError
from refold.application.ports.token_counter import TokenCounter
from refold.domain.errors import RefoldError
from refold.domain.messages import Message
from refold.infrastructure.tokens.anthropic import AnthropicTokenCounter
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter

PATH = "/v1/messages/count_tokens"
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "one more line of the report\n" * 200}
]
ESTIMATE = EstimatingTokenCounter().count_message(Message.model_validate(MESSAGES[0])).total
TEXT = "any text at all, long enough to round" * 10


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with HTTPServer(host="127.0.0.1") as running:
        yield running


def counter_of(server: HTTPServer) -> AnthropicTokenCounter:
    url = server.url_for("").rstrip("/")
    return AnthropicTokenCounter(
        anthropic.AsyncAnthropic(api_key="test", base_url=url, max_retries=0, timeout=5)
    )


def ask(counter: AnthropicTokenCounter, **changes: Any) -> int:
    request: dict[str, Any] = {"system": "", "messages": MESSAGES, "tools": [], **changes}
    return asyncio.run(counter.count_request(model="claude-test", **request))


def answering(server: HTTPServer, tokens: int) -> AnthropicTokenCounter:
    server.expect_request(PATH, method="POST").respond_with_json({"input_tokens": tokens})
    return counter_of(server)


def test_it_is_a_token_counter_that_starts_with_the_plain_estimate() -> None:
    counter: TokenCounter = AnthropicTokenCounter()
    plain = EstimatingTokenCounter()
    message = Message(
        role="assistant", content=({"type": "thinking", "thinking": TEXT, "signature": "s"},)
    )
    tools: tuple[dict[str, object], ...] = ({"name": "read", "input_schema": {}},)
    assert counter.count_text(TEXT) == plain.count_text(TEXT)
    assert counter.count_message(message) == plain.count_message(message)
    assert counter.count_tools(tools) == plain.count_tools(tools)


def test_a_whole_request_is_counted_by_the_endpoint(server: HTTPServer) -> None:
    counter = answering(server, 1234)
    tools = [{"name": "read", "input_schema": {"type": "object"}}]
    assert ask(counter, system=[{"type": "text", "text": "Be brief."}], tools=tools) == 1234
    sent = json.loads(server.log[0][0].get_data())
    assert sent == {
        "model": "claude-test",
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": MESSAGES,
        "tools": tools,
    }


def test_an_absent_system_and_absent_tools_are_not_sent(server: HTTPServer) -> None:
    ask(answering(server, 10))
    assert set(json.loads(server.log[0][0].get_data())) == {"model", "messages"}


def test_a_higher_answer_scales_the_estimates_that_follow(server: HTTPServer) -> None:
    counter = answering(server, round(ESTIMATE * 1.25))
    before = counter.count_text(TEXT)
    ask(counter)
    assert counter.factor == pytest.approx(1.25, abs=0.01)
    assert counter.count_text(TEXT) == pytest.approx(before * 1.25, abs=1.5)
    thought = {"type": "thinking", "thinking": TEXT, "signature": "s"}
    message = Message(role="assistant", content=(thought,))
    count = counter.count_message(message)
    assert count.total > EstimatingTokenCounter().count_message(message).total
    assert 0 < count.thinking < count.total


@pytest.mark.parametrize(("share", "factor"), [(0.6, 1.0), (40, 2.0)])
def test_the_factor_stays_between_one_and_two(
    server: HTTPServer, share: float, factor: float
) -> None:
    counter = answering(server, round(ESTIMATE * share))
    ask(counter)
    assert counter.factor == factor


def test_a_small_request_teaches_nothing(server: HTTPServer) -> None:
    counter = answering(server, 60)
    ask(counter, messages=[{"role": "user", "content": "hello"}])
    assert counter.factor == 1.0


@pytest.mark.parametrize("status", [400, 401, 429, 529])
def test_a_refusal_becomes_our_error_with_status_and_reason(
    server: HTTPServer, status: int
) -> None:
    body = {"type": "error", "error": {"type": "some_error", "message": "no such model"}}
    server.expect_request(PATH).respond_with_json(body, status=status)
    counter = counter_of(server)
    with pytest.raises(TokenCountError, match="no such model") as caught:
        ask(counter)
    assert caught.value.status == status
    assert isinstance(caught.value, RefoldError)
    assert counter.factor == 1.0


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "Check ANTHROPIC_API_KEY and the messages"),
        (401, "Set ANTHROPIC_API_KEY to a valid key, or pass client="),
        (404, "Check the model's name and the base URL"),
        (529, "Try again later"),
    ],
)
def test_a_refusal_says_what_to_do(server: HTTPServer, status: int, advice: str) -> None:
    body = {"type": "error", "error": {"type": "some_error", "message": "no such model"}}
    server.expect_request(PATH).respond_with_json(body, status=status)
    with pytest.raises(TokenCountError) as caught:
        ask(counter_of(server))
    assert f"{advice}. The local estimates" in str(caught.value)


def test_a_missing_server_becomes_our_error_without_status(server: HTTPServer) -> None:
    counter = counter_of(server)
    server.stop()
    with pytest.raises(TokenCountError, match="no answer") as caught:
        ask(counter)
    assert caught.value.status is None


def test_missing_credentials_become_our_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    with pytest.raises(TokenCountError, match="can still be used"):
        ask(AnthropicTokenCounter())


class ServiceCounter(EstimatingTokenCounter):
    """A counter that asks a service, which answers in an event loop."""

    async def count_request(self, **request: Any) -> int:
        await asyncio.sleep(0.001)
        return 1_234


def test_a_request_is_counted_by_a_service_after_a_compaction_by_code(tmp_path: Path) -> None:
    path, counter = tmp_path / "agent.db", ServiceCounter()
    with refold.open(path, window=8_000, summariser="extractive", counter=counter) as memory:
        conversation = memory.conversation("t")
        for number in range(60):
            conversation.append({"role": "user", "content": f"Check part {number}. " * 9})
            conversation.append({"role": "assistant", "content": f"Part {number} is fine. " * 9})
        context = conversation.context(model="claude-opus-4-5")
    assert [made.outcome for made in context.compactions] == ["performed"]
    assert context.tokens == 1_234

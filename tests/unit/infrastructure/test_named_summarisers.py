"""Summarisers by name: which model is asked, which one instead, and with what key."""

from pathlib import Path
from typing import Any

import pytest

import refold
from refold.infrastructure.summarisers import anthropic, server_compaction
from refold.infrastructure.summarisers.anthropic import AnthropicSummariser
from refold.infrastructure.summarisers.named_summarisers import anthropic_summariser
from refold.infrastructure.summarisers.server_compaction import ServerCompactionSummariser
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from tests.support import anthropic_server as api
from tests.support.anthropic_server import AnthropicServer
from tests.support.summarising import KEY

COUNTER = EstimatingTokenCounter()


@pytest.mark.parametrize(
    ("answering", "model", "asked"),
    [
        (None, None, server_compaction.DEFAULT_MODEL),
        ("claude-opus-5-5", None, "claude-opus-5-5"),
        ("anthropic/claude-opus-5-5", None, "claude-opus-5-5"),
        ("claude-haiku-5-5", None, server_compaction.DEFAULT_MODEL),
        ("gpt-5", None, server_compaction.DEFAULT_MODEL),
        ("claude-opus-5-5", "claude-sonnet-5", "claude-sonnet-5"),
    ],
)
def test_the_conversations_own_model_compacts_if_it_can(
    answering: str | None, model: str | None, asked: str
) -> None:
    made = anthropic_summariser("anthropic-server", COUNTER, answering=answering, model=model)
    assert isinstance(made, ServerCompactionSummariser)
    assert (made.name, made.model) == ("anthropic-server", asked)


def test_summaries_are_asked_of_the_model_that_answers_unless_another_is_named() -> None:
    made = anthropic_summariser("anthropic", COUNTER, answering="anthropic/claude-opus-5-5")
    assert isinstance(made, AnthropicSummariser)
    assert (made.name, made.model) == ("anthropic", "claude-opus-5-5")
    unknown = anthropic_summariser("anthropic", COUNTER, answering="gpt-5")
    assert isinstance(unknown, AnthropicSummariser)
    assert unknown.model == anthropic.DEFAULT_MODEL
    named = anthropic_summariser("anthropic", COUNTER, model="claude-sonnet-5")
    assert isinstance(named, AnthropicSummariser)
    assert named.model == "claude-sonnet-5"


def asked_by(
    name: str,
    answers: list[api.Answer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    **models: Any,
) -> tuple[refold.CompactionResult, list[str]]:
    """What one compaction ended in, and the models that were asked."""
    with AnthropicServer(answers) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
        memory = refold.open(tmp_path / "a.db", summariser=name, notes="off", **models)
        with memory:
            conversation = memory.conversation("t")
            for n in range(12):
                conversation.append(
                    {"role": "user", "content": f"Question {n}. " + "What of it? " * 40}
                )
                conversation.append({"role": "assistant", "content": "It is warm. " * 30})
            result = conversation.compact()
        return result, [request.body["model"] for request in server.requests]


def test_a_model_of_summaries_that_is_gone_is_replaced_by_the_conversations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = api.error(404, "not_found_error", "model: claude-haiku-5-5")
    models = {"model": "claude-opus-5-5", "summariser_model": "claude-haiku-5-5"}
    result, asked = asked_by("anthropic", [gone, api.ok()], tmp_path, monkeypatch, **models)
    assert (result.outcome, result.model_calls) == ("performed", 2)
    assert asked == ["claude-haiku-5-5", "claude-opus-5-5"]


def test_the_model_of_a_call_is_asked_for_the_summary_that_the_call_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AnthropicServer([api.ok()] * 9) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
        settings: dict[str, Any] = {"summariser": "anthropic", "window": 8_000, "notes": "off"}
        with refold.open(tmp_path / "a.db", **settings) as memory:
            conversation = memory.conversation("t")
            for n in range(20):
                conversation.append(
                    {"role": "user", "content": f"Question {n}. " + "What of it? " * 60}
                )
                conversation.append({"role": "assistant", "content": "It is warm. " * 60})
            conversation.append({"role": "user", "content": "And now?"})
            assert (
                conversation.context(model="claude-opus-5-5").compactions[0].outcome == "performed"
            )
            done = conversation.compact(model="claude-sonnet-5-5", keep_last=1)
            assert done.outcome == "performed", done
        asked = [request.body["model"] for request in server.requests]
        assert set(asked) == {"claude-opus-5-5", "claude-sonnet-5-5"}
        assert asked[-1] == "claude-sonnet-5-5"


def test_where_the_model_of_summaries_is_not_there_the_one_of_the_call_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = api.error(404, "not_found_error", "model: claude-haiku-5-5")
    with AnthropicServer([gone, *[api.ok()] * 9]) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
        settings: dict[str, Any] = {
            "summariser": "anthropic",
            "summariser_model": "claude-haiku-5-5",
        }
        with refold.open(tmp_path / "a.db", window=8_000, notes="off", **settings) as memory:
            conversation = memory.conversation("t")
            for n in range(20):
                conversation.append(
                    {"role": "user", "content": f"Question {n}. " + "What of it? " * 60}
                )
                conversation.append({"role": "assistant", "content": "It is warm. " * 60})
            conversation.append({"role": "user", "content": "And now?"})
            done = conversation.context(model="claude-opus-5-5").compactions[0]
            assert (done.outcome, done.summariser) == ("performed", "anthropic")
        asked = [request.body["model"] for request in server.requests]
        assert asked[:2] == ["claude-haiku-5-5", "claude-opus-5-5"]


def test_compaction_by_the_api_needs_no_more_than_its_name_and_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, asked = asked_by(
        "anthropic-server", [api.compacted()], tmp_path, monkeypatch, model="claude-opus-5-5"
    )
    assert (result.outcome, result.summariser) == ("performed", "anthropic-server")
    assert asked == ["claude-opus-5-5"]

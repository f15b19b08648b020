"""The summariser on the Messages API, with the real client against a local server."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import anthropic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.application.errors import SummariserError
from refold.application.ports.summariser import SourceMessage, SummaryDraft, SummaryRequest
from refold.domain.messages import Message
from refold.infrastructure.summarisers.anthropic import AnthropicSummariser
from refold.infrastructure.summarisers.api_calls import output_room
from refold.infrastructure.summarisers.named_summarisers import retrying
from refold.infrastructure.summarisers.prompt import PREFIX_SECTIONS, SECTIONS, prompt_fingerprint
from tests.support import anthropic_server as api
from tests.support.anthropic_server import Answer, AnthropicServer
from tests.support.summarising import KEY, Naps, failure, request_of, summarise


def test_a_complete_answer_becomes_a_draft_with_the_model_that_wrote_it() -> None:
    with AnthropicServer([api.ok()]) as server:
        draft = summarise(server)
    assert draft == SummaryDraft(
        text=api.GOOD_SUMMARY,
        complete=True,
        model="claude-test-1",
        prompt_fingerprint=prompt_fingerprint(),
        stop_reason="end_turn",
        required=tuple(f"## {name}" for name in SECTIONS),
    )


def test_an_answer_that_ended_at_a_stop_sequence_is_complete() -> None:
    with AnthropicServer([api.ok(stop_reason="stop_sequence")]) as server:
        assert summarise(server).complete


def test_thinking_in_the_answer_is_not_part_of_the_summary() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "x"}
    text = {"type": "text", "text": api.GOOD_SUMMARY}
    with AnthropicServer([api.message(thinking, text)]) as server:
        assert summarise(server).text == api.GOOD_SUMMARY


def test_the_request_has_one_user_message_and_the_room_for_the_limit() -> None:
    with AnthropicServer() as server:
        summarise(server, request_of("Hello", limit_tokens=1_200), model="claude-other")
    (sent,) = server.requests
    assert sorted(sent.body) == ["max_tokens", "messages", "model", "system"]
    assert sent.body["model"] == "claude-other"
    assert sent.body["max_tokens"] == output_room(1_200) == 1_800 + 8_192
    assert [m["role"] for m in sent.body["messages"]] == ["user"]
    assert isinstance(sent.body["messages"][0]["content"], str)


def test_messages_previous_summary_focus_and_lengths_reach_the_call() -> None:
    request = request_of(
        "Please fix src/app.py", previous="## Old summary", focus="the tests", target_tokens=777
    )
    with AnthropicServer() as server:
        summarise(server, request)
    text = server.requests[0].body["messages"][0]["content"]
    for part in ("Please fix src/app.py", "## Old summary", "the tests", "777 tokens"):
        assert part in text
    assert all(f"## {name}" in server.requests[0].body["system"] for name in SECTIONS)


def test_equal_requests_are_sent_as_the_same_bytes() -> None:
    with AnthropicServer() as server:
        for _ in range(2):
            summarise(server, request_of("Hello", "Hi", previous="p", focus="f"))
    first, second = server.requests
    assert first.raw == second.raw


def test_lone_surrogates_in_any_text_are_sent_as_replacement_characters() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "a\ud800", "input": {"k": "b\udfff"}}
    message = Message(role="assistant", content=(call, {"type": "text", "text": "c\ud83d d"}))
    request = SummaryRequest(
        messages=(SourceMessage(position=0, message=message),), previous="e\ud800", focus="f\udc00"
    )
    with AnthropicServer() as server:
        assert summarise(server, request).complete
    assert "c\ufffd d" in server.requests[0].body["messages"][0]["content"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (api.truncated, "truncated"),
        (lambda: api.ok(stop_reason="model_context_window_exceeded"), "too_large"),
        (api.refused, "refused"),
        (api.empty, "empty"),
        (lambda: api.ok(" \n"), "empty"),
        (lambda: api.ok(stop_reason="tool_use"), "bad_answer"),
        (lambda: api.ok(stop_reason="pause_turn"), "bad_answer"),
        (lambda: api.ok(stop_reason=None), "bad_answer"),
        (api.not_json, "bad_answer"),
        (lambda: Answer(body=b'{"content": 7}'), "bad_answer"),
        (lambda: Answer(body=b'{"stop_reason": "end_turn", "content": [7]}'), "bad_answer"),
        (lambda: Answer(body=b"[]"), "bad_answer"),
        (api.unauthorised, "authentication"),
        (lambda: api.error(403, "permission_error", "no"), "permission"),
        (lambda: api.error(402, "billing_error", "no credit"), "authentication"),
        (api.bad_request, "bad_request"),
        (lambda: api.error(404, "not_found_error", "model: claude-nope"), "not_found"),
        (api.too_large, "too_large"),
        (api.too_long, "too_large"),
    ],
)
def test_an_answer_that_will_not_get_better_fails_at_once(
    answer: Callable[[], Answer], reason: str
) -> None:
    error, server = failure(answer(), api.ok())
    assert (error.reason, error.attempts, len(server.requests)) == (reason, 1, 1)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (api.overloaded, "overloaded"),
        (api.rate_limit, "rate_limited"),
        (api.server_error, "server_error"),
        (lambda: api.error(503, "overloaded_error", "Overloaded"), "overloaded"),
        (lambda: Answer(status=502, body=b"<html>", content_type="text/html"), "server_error"),
        (lambda: api.error(504, "timeout_error", "took too long"), "timeout"),
        (api.dropped, "connection"),
    ],
)
def test_a_passing_trouble_is_tried_again_up_to_the_limit(
    answer: Callable[[], Answer], reason: str
) -> None:
    naps = Naps()
    error, server = failure(answer(), naps=naps)
    assert (error.reason, error.attempts, len(server.requests)) == (reason, 3, 3)
    assert len(naps.seconds) == 2
    assert "3 attempts" in str(error)


def test_a_call_that_answers_too_slowly_is_a_timeout_and_tried_again() -> None:
    error, server = failure(api.slow(), timeout=0.2, tries=2)
    assert (error.reason, error.attempts, len(server.requests)) == ("timeout", 2, 2)


def test_a_success_after_failures_is_a_success() -> None:
    with AnthropicServer([api.overloaded(), api.dropped(), api.ok()]) as server:
        assert summarise(server).complete
    assert len(server.requests) == 3


def test_the_last_failure_gives_the_reason() -> None:
    error, server = failure(api.overloaded(), api.unauthorised())
    assert (error.reason, error.attempts, len(server.requests)) == ("authentication", 2, 2)


def test_nobody_listening_is_a_connection_failure() -> None:
    with AnthropicServer() as server:
        pass
    with pytest.raises(SummariserError) as caught:
        summarise(server, tries=2)
    assert (caught.value.reason, caught.value.attempts) == ("connection", 2)


def test_a_wait_that_the_server_asks_for_is_kept() -> None:
    naps = Naps()
    with AnthropicServer([api.rate_limit(7), api.rate_limit("soon"), api.ok()]) as server:
        summarise(server, naps=naps)
    assert naps.seconds == [7.0, 0.5]


def test_a_wait_of_minutes_is_not_kept_but_reported() -> None:
    error, server = failure(api.rate_limit(3_600))
    assert (error.reason, error.attempts, len(server.requests)) == ("rate_limited", 1, 1)


def test_a_server_that_says_not_to_retry_is_obeyed() -> None:
    answer = api.error(429, "rate_limit_error", "spend limit", {"x-should-retry": "false"})
    error, server = failure(answer)
    assert (error.reason, len(server.requests)) == ("rate_limited", 1)


def test_every_error_carries_the_vendors_words_and_what_to_do_next() -> None:
    error, _ = failure(api.bad_request("max_tokens: must be positive"))
    assert "max_tokens: must be positive" in str(error)
    assert str(error).endswith("Check the model's name and the settings of the summariser.")


@pytest.mark.parametrize("where", ["in the call", "between calls"])
def test_cancellation_passes_through_untouched(where: str) -> None:
    asleep = asyncio.Event()

    async def sleep_for_ever(_seconds: float) -> None:
        asleep.set()
        await asyncio.sleep(60)

    async def run(server: AnthropicServer) -> None:
        async with anthropic.AsyncAnthropic(api_key=KEY, base_url=server.base_url) as client:
            summariser = retrying(AnthropicSummariser(client=client), sleep=sleep_for_ever)
            task = asyncio.create_task(summariser.summarise(request_of()))
            if where == "in the call":
                await asyncio.to_thread(server.received.wait, 10)
            else:
                await asyncio.wait_for(asleep.wait(), 10)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    answer = api.slow() if where == "in the call" else api.overloaded()
    with AnthropicServer([answer]) as server:
        asyncio.run(run(server))
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "settings", [{"window": 0}, {"timeout": 0}, {"timeout": float("nan")}, {"model": " "}]
)
def test_settings_that_make_no_sense_are_refused_at_once(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        AnthropicSummariser(**settings)


def test_a_missing_section_is_required_as_it_should_stand_there() -> None:
    """Whether an answer without it is taken is not decided here."""
    with AnthropicServer([api.ok("**1. Technical context**\nNone.")]) as server:
        required = summarise(server).required
    assert required[0] == "**1. Technical context"
    assert required[1:] == tuple(f"## {name}" for name in SECTIONS[1:])


def test_the_beginning_of_a_divided_turn_is_asked_for_in_its_own_sections() -> None:
    with AnthropicServer([api.ok("## Original Request\nFix it.")]) as server:
        draft = summarise(server, request_of("Fix it", part="turn_prefix"))
    assert draft.required == tuple(f"## {name}" for name in PREFIX_SECTIONS)
    assert all(line in server.requests[0].body["system"] for line in draft.required)


def test_a_measure_holds_the_prompt_and_the_room_for_the_answer() -> None:
    summariser = AnthropicSummariser()
    empty, long = request_of("Hi"), request_of("word " * 20_000)
    assert summariser.measure(empty) > output_room(empty.limit_tokens)
    assert summariser.measure(long) - summariser.measure(empty) > 19_900


@given(st.text(max_size=200), st.text(max_size=200))
def test_more_text_is_never_measured_as_less(text: str, more: str) -> None:
    summariser = AnthropicSummariser()
    measured = [
        summariser.measure(request_of(said, previous=said, ledger=said, focus=said))
        for said in ("x" + text, "x" + text + more)
    ]
    # The mark is a digest: its digits and letters cost a little more or less, each time it stands.
    assert measured[0] <= measured[1] + 16 * 12


def test_the_window_is_the_models_unless_another_is_given() -> None:
    assert AnthropicSummariser(model="claude-haiku-4-5").window == 200_000
    assert AnthropicSummariser(model="claude-haiku-5-5").window == 1_000_000
    assert AnthropicSummariser(window=50_000).window == 50_000


@pytest.mark.parametrize(
    "answer",
    [
        lambda: api.error(404, "not_found_error", "model: claude-small"),
        lambda: api.error(403, "permission_error", "no access to claude-small"),
        api.too_long,
    ],
)
def test_where_its_model_cannot_be_used_the_other_is_asked_once(
    answer: Callable[[], Answer],
) -> None:
    with AnthropicServer([answer(), api.ok()]) as server:
        draft = summarise(server, model="claude-haiku-4-5", fallback_model="claude-opus-5-5")
    assert [r.body["model"] for r in server.requests] == ["claude-haiku-4-5", "claude-opus-5-5"]
    assert draft.attempts == 2


def test_a_fallback_with_no_larger_window_is_not_asked_about_what_is_too_large() -> None:
    models = {"model": "claude-opus-5-5", "fallback_model": "claude-haiku-4-5"}
    error, server = failure(api.too_long(), api.ok(), **models)
    assert (error.reason, len(server.requests)) == ("too_large", 1)


def test_a_fallback_that_fails_too_gives_the_reason_and_both_calls_count() -> None:
    gone = api.error(404, "not_found_error", "no such model")
    error, server = failure(gone, api.unauthorised(), fallback_model="claude-opus-5-5")
    assert (error.reason, error.attempts, len(server.requests)) == ("authentication", 2, 2)


def test_importing_and_making_the_summariser_does_not_import_the_sdk() -> None:
    code = (
        "import sys\n"
        "from refold.infrastructure.summarisers.anthropic import AnthropicSummariser\n"
        "AnthropicSummariser()\n"
        "assert 'anthropic' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_server_counts_tokens_and_keeps_no_key() -> None:
    async def run(base_url: str) -> int:
        async with anthropic.AsyncAnthropic(api_key=KEY, base_url=base_url) as client:
            counted = await client.messages.count_tokens(
                model="claude-test-1", messages=[{"role": "user", "content": "Hello"}]
            )
            return counted.input_tokens

    with AnthropicServer(input_tokens=42) as server:
        assert asyncio.run(run(server.base_url)) == 42
    assert server.requests == []
    (counted,) = server.counts
    assert not re.search(KEY, json.dumps(dict(counted.headers)))

"""Compaction by the Messages API itself, with the real client against a local server."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.application.conversation.models import COMPACTION_BETA
from refold.application.errors import SummariserError
from refold.application.ports.summariser import SourceMessage, SummaryDraft, SummaryRequest
from refold.domain.events import OmittedMessage
from refold.domain.messages import Block, Message, Role
from refold.domain.value import replace
from refold.infrastructure.summarisers.api_calls import output_room
from refold.infrastructure.summarisers.prompt import SECTIONS
from refold.infrastructure.summarisers.server_compaction import (
    DEFAULT_MODEL,
    ServerCompactionSummariser,
    instructions_fingerprint,
    instructions_for,
)
from refold.testing.request_judge import violations
from tests.support import anthropic_server as api
from tests.support.anthropic_server import Answer, AnthropicServer
from tests.support.api_refusals import LONGEST_INSTRUCTIONS, compaction_block
from tests.support.summarising import failure, request_of, summarise

compact = partial(summarise, made=ServerCompactionSummariser)
failing = partial(failure, made=ServerCompactionSummariser)


def request(*contents: tuple[Role, str | tuple[Block, ...]], **fields: Any) -> SummaryRequest:
    messages = tuple(
        SourceMessage(position=7 + i, message=Message(role=role, content=content))
        for i, (role, content) in enumerate(contents)
    )
    return SummaryRequest(messages=messages, **fields)


def test_the_block_is_kept_as_it_came_and_its_content_is_the_text() -> None:
    changes = [{"type": "tool_addition", "tool": {"type": "tool_reference", "name": "b"}}]
    answer = api.compacted(tool_changes=changes, encrypted_content="b3BhcXVl", future={"a": [1.5]})
    with AnthropicServer([answer]) as server:
        draft = compact(server)
    assert draft == SummaryDraft(
        text=api.GOOD_SUMMARY,
        complete=True,
        model="claude-test-1",
        prompt_fingerprint=instructions_fingerprint(),
        stop_reason="compaction",
        required=tuple(f"## {name}" for name in SECTIONS),
        block=json.loads(answer.body)["content"][0],
    )
    assert list(draft.block or ()) == list(json.loads(answer.body)["content"][0])


def test_the_request_asks_for_nothing_but_a_compaction() -> None:
    with AnthropicServer([api.compacted()]) as server:
        compact(server, request_of("Fix it", "Done.", limit_tokens=1_200))
    (sent,) = server.requests
    assert sorted(sent.body) == ["compaction", "max_tokens", "messages", "model"]
    assert sent.headers["anthropic-beta"] == COMPACTION_BETA
    assert sent.body["model"] == DEFAULT_MODEL
    assert sent.body["max_tokens"] == output_room(1_200)
    assert sent.body["compaction"]["type"] == "summarize"
    assert sent.body["messages"] == [
        {"role": "user", "content": "Fix it"},
        {"role": "assistant", "content": "Done."},
    ]


CALL = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "app.py"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
ORPHAN = {"type": "tool_result", "tool_use_id": "toolu_0", "content": "of a call before"}


def test_the_messages_are_sent_as_a_legal_conversation_of_their_own() -> None:
    text = {"type": "text", "text": "Look."}
    covered = request(
        ("user", (ORPHAN,)),
        ("assistant", (THOUGHT, text, CALL)),
        ("user", (RESULT,)),
        ("assistant", (THOUGHT, {"type": "text", "text": " "})),
        ("assistant", (CALL,)),
        previous="## Earlier",
    )
    with AnthropicServer([api.compacted()]) as server:
        compact(server, covered)
    body = server.requests[0].body
    assert violations({"messages": body["messages"]}) == []
    sent = json.dumps(body["messages"])
    assert "[Conversation Summary]\\n## Earlier" in sent
    assert "app.py" in sent
    assert "of a call before" in sent
    assert "hm" not in [b.get("thinking") for m in body["messages"] for b in _blocks(m)]


def test_nothing_is_asked_after_the_last_answer() -> None:
    """Else the summary would tell of a user who wants the agent to go on."""
    with AnthropicServer([api.compacted()]) as server:
        compact(server, request_of("Fix it", "Done."))
    assert server.requests[0].body["messages"][-1] == {"role": "assistant", "content": "Done."}


def test_a_block_of_before_is_sent_back_first_and_unchanged() -> None:
    before = compaction_block("## Earlier", tool_changes=[])
    asked = request_of("Go on", "Done.", previous="## Earlier", previous_block=before)
    with AnthropicServer([api.compacted()]) as server:
        compact(server, asked)
    first = server.requests[0].body["messages"][0]
    assert json.dumps(first["content"][0]) == json.dumps(before)
    assert first["content"][1] == {"type": "text", "text": "Go on"}
    assert server.requests[0].raw.count(b"## Earlier") == 1


def test_a_block_that_is_accepted_no_more_is_replaced_by_its_text_once() -> None:
    forged = compaction_block("## Earlier", signature="of another time")
    asked = request_of("Go on", previous="## Earlier", previous_block=forged)
    with AnthropicServer([api.compacted()]) as server:
        draft = compact(server, asked)
    assert draft.attempts == 2
    (sent,) = server.requests
    assert "[Conversation Summary]\\n## Earlier" in json.dumps(sent.body["messages"])


INVALID = ("signature_invalid", "content_mismatch", "tool_changes_mismatch", "block_ambiguous")


@pytest.mark.parametrize("code", [f"compaction_{name}" for name in INVALID])
def test_a_refused_block_names_the_reason_and_what_to_do(code: str) -> None:
    error, server = failing(api.bad_request("compaction block: no", code))
    assert (error.reason, len(server.requests)) == ("bad_block", 1)
    assert "revert_compaction()" in str(error)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda: api.not_compacted("max_tokens"), "truncated"),
        (lambda: api.not_compacted("model_context_window_exceeded"), "too_large"),
        (lambda: api.not_compacted("tool_use"), "bad_answer"),
        (lambda: api.not_compacted("refusal"), "refused"),
        (lambda: api.not_compacted("end_turn"), "empty"),
        (lambda: api.not_compacted("compaction"), "bad_answer"),
        (lambda: api.compacted(None), "empty"),
        (lambda: api.compacted(" \n"), "empty"),
        (
            lambda: api.message({"type": "compaction", "content": 7}, stop_reason="compaction"),
            "bad_answer",
        ),
        (api.ok, "bad_answer"),
        (lambda: api.ok(stop_reason="compaction"), "bad_answer"),
        (
            lambda: api.message(
                compaction_block("a"), compaction_block("b"), stop_reason="compaction"
            ),
            "bad_answer",
        ),
        (lambda: api.message(compaction_block("a"), stop_reason="end_turn"), "bad_answer"),
        (api.not_json, "bad_answer"),
        (api.unauthorised, "authentication"),
        (lambda: api.error(403, "permission_error", "no"), "permission"),
        (lambda: api.error(404, "not_found_error", "model: claude-nope"), "not_found"),
        (lambda: api.bad_request("compaction: Extra inputs are not permitted"), "unsupported"),
        (
            lambda: api.bad_request("references", "compaction_too_many_tool_references"),
            "too_large",
        ),
        (lambda: api.bad_request("temperature: no"), "bad_request"),
        (api.too_large, "too_large"),
        (api.too_long, "too_large"),
    ],
)
def test_a_compaction_that_will_not_get_better_fails_at_once(
    answer: Callable[[], Answer], reason: str
) -> None:
    error, server = failing(answer(), api.compacted())
    assert (error.reason, error.attempts, len(server.requests)) == (reason, 1, 1)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (api.compaction_unavailable, "overloaded"),
        (api.rate_limit, "rate_limited"),
        (api.server_error, "server_error"),
        (api.dropped, "connection"),
    ],
)
def test_a_passing_trouble_is_tried_again(answer: Callable[[], Answer], reason: str) -> None:
    error, server = failing(answer())
    assert (error.reason, error.attempts, len(server.requests)) == (reason, 3, 3)
    with AnthropicServer([answer(), api.compacted()]) as server:
        assert compact(server).attempts == 2


def test_a_model_that_does_not_compact_is_reported_as_such() -> None:
    error, _ = failing(model="claude-haiku-5-5")
    assert error.reason == "unsupported"
    assert "summariser 'anthropic'" in str(error)


def test_focus_ledger_repair_and_what_is_left_out_reach_the_call_within_its_limit() -> None:
    asked = request_of(
        focus="F" + "f" * 20_000,
        ledger="L" + "l" * 20_000,
        repair="R" + "r" * 20_000,
        omitted=tuple(OmittedMessage(position=n, tokens=60_000) for n in range(400)),
    )
    with AnthropicServer([api.compacted()]) as server:
        compact(server, asked)
    instructions = server.requests[0].body["compaction"]["instructions"]
    assert len(instructions) <= LONGEST_INSTRUCTIONS
    for part in ("F" + "f" * 100, "L" + "l" * 100, "R" + "r" * 100, "message 3 (about 60000"):
        assert part in instructions


@pytest.mark.parametrize("part", ["history", "turn_prefix"])
def test_instructions_ask_for_the_sections_and_forbid_tools(
    part: Literal["history", "turn_prefix"],
) -> None:
    asked = replace(request_of(), part=part, target_tokens=777)
    text = instructions_for(asked)
    assert "Do not call tools" in text
    assert "about 777 tokens" in text
    assert ("## Pending Tasks" in text) == (part == "history")
    assert ("## Original Request" in text) == (part == "turn_prefix")


@given(st.text(), st.text(), st.text())
def test_nothing_quoted_carries_the_mark(focus: str, ledger: str, repair: str) -> None:
    fields = {"focus": focus, "ledger": ledger, "repair": repair}
    text = instructions_for(request_of(**fields))
    mark = text.split("the mark ")[1][:16]
    given = sum(bool(part.strip()) for part in fields.values())
    assert text.count(mark) == 1 + 2 * given


def test_the_fingerprint_of_the_wording_is_this_one() -> None:
    """Changed on purpose? Raise the version and put the new value here."""
    assert instructions_fingerprint() == "server-compaction-3-91ab344db75bcc08"


def test_a_measure_holds_messages_instructions_and_the_room_for_the_answer() -> None:
    summariser = ServerCompactionSummariser()
    short, long = request_of("Hi"), request_of("word " * 20_000)
    assert summariser.measure(short) > output_room(short.limit_tokens) + 500
    assert summariser.measure(long) - summariser.measure(short) > 19_900
    with_block = replace(
        short, previous="p " * 5_000, previous_block=compaction_block("p " * 5_000)
    )
    assert summariser.measure(with_block) - summariser.measure(short) > 2_500


def test_the_window_is_the_models_unless_another_is_given() -> None:
    assert ServerCompactionSummariser().window == 1_000_000
    assert ServerCompactionSummariser(window=60_000).window == 60_000
    with pytest.raises(ValueError, match="window"):
        ServerCompactionSummariser(window=-1)
    with pytest.raises(ValueError, match="model"):
        ServerCompactionSummariser(model=" ")


def test_no_credential_is_in_an_error() -> None:
    with pytest.raises(SummariserError) as caught, AnthropicServer() as server:
        compact(server, key="secret\n")
    assert caught.value.reason == "authentication"
    assert "secret" not in str(caught.value)


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [] if isinstance(content, str) else content

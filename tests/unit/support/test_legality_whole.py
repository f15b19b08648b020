"""The judge of requests: pending calls, the model's rules, sizes, and what a finding says."""

from typing import Any

import pytest

from refold.testing import request_judge
from refold.testing.request_judge import too_large, too_many_messages, violations
from refold.testing.request_parts import accepts_prefill, accepts_system_messages, signs_the_prefix

Json = dict[str, Any]

ASK: Json = {"role": "user", "content": "list the files"}
CALL_TWO: Json = {
    "role": "assistant",
    "content": [
        {"type": "tool_use", "id": "a", "name": "ls", "input": {}},
        {"type": "tool_use", "id": "b", "name": "ls", "input": {}},
    ],
}


def result(call_id: str) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "ok"}


def pending(*content: Json) -> Json:
    later: list[Json] = [{"role": "user", "content": list(content)}] if content else []
    return {"messages": [ASK, CALL_TWO, *later]}


@pytest.mark.parametrize(
    "waiting", [pending(), pending(result("b"))], ids=["no result yet", "one of two results"]
)
def test_calls_may_wait_at_the_very_end_only_if_that_is_allowed(waiting: Json) -> None:
    assert violations(waiting, allow_pending_at_end=True) == []
    assert any(f.startswith("unanswered-call") for f in violations(waiting))


def test_a_call_does_not_wait_once_the_user_has_spoken() -> None:
    spoken = pending(result("a"), {"type": "text", "text": "stop"})

    found = violations(spoken, allow_pending_at_end=True)

    assert [f.split(":")[0] for f in found] == ["unanswered-call"]


def test_a_call_before_the_last_round_never_waits() -> None:
    messages = [ASK, CALL_TWO, {"role": "user", "content": "stop"}]
    again = {"role": "assistant", "content": [{**CALL_TWO["content"][0], "id": "c"}]}

    found = violations({"messages": [*messages, again]}, allow_pending_at_end=True)

    assert [f.split(":")[0] for f in found] == ["unanswered-call", "unanswered-call"]


def test_a_final_assistant_message_without_calls_is_no_pending_round() -> None:
    ended = {"messages": [ASK, {"role": "assistant", "content": "done"}]}

    assert [f.split(":")[0] for f in violations(ended, allow_pending_at_end=True)] == ["prefill"]


def test_the_models_own_name_in_the_request_decides_whose_rules_hold() -> None:
    ended = {"messages": [ASK, {"role": "assistant", "content": "so:"}]}

    assert violations(ended, model="claude-haiku-4-5") == []
    assert violations({**ended, "model": "claude-opus-4-7"}, model="claude-haiku-4-5") != []


def test_a_finding_names_its_rule_the_place_and_the_fault() -> None:
    blank = {"role": "user", "content": [{"type": "text", "text": " "}]}

    assert violations({"messages": [blank]}) == [
        "blank-text: messages[0].content[0]: a text must not be blank"
    ]


def test_results_that_are_spread_over_user_messages_are_paired_but_not_portable() -> None:
    results: list[Json] = [{"role": "user", "content": [result(c)]} for c in ("b", "a")]

    found = violations({"messages": [ASK, CALL_TWO, *results]})

    assert [f.split(":")[0] for f in found] == ["alternation"]


def test_at_most_a_hundred_thousand_messages_are_taken() -> None:
    pair: list[Json] = [ASK, {"role": "assistant", "content": "fine"}]
    full = [*pair * 49_999, ASK, {"role": "assistant", "content": "f"}]

    assert list(too_many_messages({"messages": full})) == []
    assert list(too_many_messages({"messages": [*full, ASK]})) == [
        "message-count: messages: 100,001 messages, at most 100,000"
    ]


def test_at_most_32_megabytes_are_taken_and_chinese_counts_in_bytes() -> None:
    def sized(words: str) -> Json:
        return {"messages": [{"role": "user", "content": words}], "summary_id": "not sent" * 9}

    assert list(too_large(sized("字" * 10_666_600))) == []
    assert [f.split(":")[0] for f in too_large(sized("字" * 10_666_667))] == ["size"]


@pytest.mark.parametrize(
    ("model", "prefill", "system", "signs"),
    [
        ("claude-2.1", True, False, False),
        ("claude-3-7-sonnet-20250219", True, False, False),
        ("claude-opus-4-20250514", True, False, False),
        ("claude-haiku-4-5@20251001", True, False, False),
        ("claude-opus-4-6", False, False, False),
        ("claude-opus-4-8", False, True, False),
        ("claude-fable-5", False, True, False),
        ("claude-fable-5-1", False, True, True),
        ("claude-mythos-5-1", False, True, False),
        ("claude-mythos-5-2", False, True, True),
        ("claude-opus-5", False, True, False),
        ("eu.anthropic.claude-sonnet-5-5-v1:0", False, True, True),
        ("claude-mythos-preview", False, False, True),
        ("gpt-5", False, False, True),
    ],
)
def test_a_model_is_judged_by_its_generation_and_an_unknown_one_strictly(
    model: str, prefill: bool, system: bool, signs: bool
) -> None:
    assert accepts_prefill(model) is prefill
    assert accepts_system_messages(model) is system
    assert signs_the_prefix(model) is signs


@pytest.mark.parametrize(
    ("limit", "rule"), [("MAX_MESSAGES", "message-count"), ("MAX_BYTES", "size")]
)
def test_the_judge_asks_for_both_limits(
    limit: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert violations({"messages": [ASK]}) == []

    monkeypatch.setattr(request_judge, limit, 0)

    assert [f.split(":")[0] for f in violations({"messages": [ASK]})] == [rule]

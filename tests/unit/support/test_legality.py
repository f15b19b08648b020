"""The judge of requests: for each rule a request that breaks it, and one close by that does not."""

from typing import Any

import pytest

from refold.testing.request_judge import violations

Json = dict[str, Any]

OLD = "claude-sonnet-4-5"


def text(words: str = "hello", **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


def call(call_id: Any = "toolu_1", **more: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": "bash", "input": {}, **more}


def result(call_id: str = "toolu_1", content: Any = "ok", **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def thought(signature: Any = "c2ln", **more: Any) -> Json:
    return {"type": "thinking", "thinking": "hm", "signature": signature, **more}


def server_call(call_id: str = "srvtoolu_1") -> Json:
    return {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {}}


def server_result(call_id: str = "srvtoolu_1") -> Json:
    return {"type": "web_search_tool_result", "tool_use_id": call_id, "content": []}


def compaction(content: Any = "the summary", **more: Any) -> Json:
    return {"type": "compaction", "content": content, "signature": "c2ln", **more}


def user(*content: Any) -> Json:
    return {"role": "user", "content": list(content) if content else "go on"}


def assistant(*content: Any) -> Json:
    return {"role": "assistant", "content": list(content) if content else "fine"}


def system(*content: Any) -> Json:
    return {"role": "system", "content": list(content) if content else "be brief"}


def request(*messages: Any, **more: Any) -> Json:
    return {"model": "claude-opus-5-5", "messages": list(messages), **more}


def answered(*results: Json, calls: tuple[Json, ...] = (call(),)) -> Json:
    return request(user(), assistant(*calls), user(*results))


MARK: Json = {"cache_control": {"type": "ephemeral"}}
PARALLEL = (call("a"), call("b"))
MANUAL: Json = {"thinking": {"type": "enabled", "budget_tokens": 2000}, "model": OLD}

# rule, a request that breaks it, a request that keeps it
CASES: list[tuple[str, Json, Json]] = [
    ("unanswered-call", answered(result("a"), calls=PARALLEL), answered(result(), text())),
    ("unanswered-call", request(user(), assistant(call()), user()), answered(result())),
    ("unanswered-call", answered(text(), result()), answered(result(), text())),
    ("late-result", answered(text(), result()), answered(result(), text())),
    (
        "late-result",
        answered(result("b"), text(), result("a"), calls=PARALLEL),
        answered(result("b"), result("a"), text(), calls=PARALLEL),
    ),
    ("orphan-result", request(user(result())), answered(result())),
    (
        "orphan-result",
        request(user(), assistant(call()), user(result()), assistant(), user(result())),
        request(user(), assistant(call()), user(result()), assistant(), user()),
    ),
    (
        "duplicate-result",
        answered(result("a"), result("a"), result("b"), calls=PARALLEL),
        answered(result("a"), result("b"), calls=PARALLEL),
    ),
    (
        "repeated-call-id",
        request(user(), assistant(call()), user(result()), assistant(call()), user(result())),
        request(user(), assistant(call()), user(result()), assistant(call("b")), user(result("b"))),
    ),
    ("repeated-call-id", answered(result(), calls=(call(), call())), answered(result())),
    ("call-id", answered(result("a:0"), calls=(call("a:0"),)), answered(result())),
    ("call-id", answered(result("a\n"), calls=(call("a\n"),)), answered(result())),
    ("call-id", answered(result("工"), calls=(call("工"),)), answered(result())),
    ("call-id", answered(result(""), calls=(call(""),)), answered(result())),
    (
        "call-id",
        request(user(), assistant(server_call("toolu_1"), server_result("toolu_1")), user()),
        request(user(), assistant(server_call(), server_result()), user()),
    ),
    (
        "server-result",
        request(user(), assistant(server_result(), server_call(), text()), user()),
        request(user(), assistant(server_call(), server_result(), text()), user()),
    ),
    (
        "server-call",
        request(user(), assistant(server_call(), text()), user()),
        request(
            user(),
            assistant(server_call(), call(caller={"tool_id": "srvtoolu_1"})),
            user(result()),
        ),
    ),
    (
        "block-role",
        request(user(), assistant(call(), result()), user(result())),
        answered(result()),
    ),
    ("block-role", request(user(call()), assistant(), user()), request(user())),
    ("block-role", request(user(thought(), text())), request(user())),
    ("block-role", request(user(server_call()), assistant(), user()), request(user())),
    (
        "block-role",
        request(user(), system({"type": "image", "source": {}})),
        request(user(), system(text())),
    ),
    ("blank-text", request(user(text(""))), request(user(text(".")))),
    ("blank-text", request(user(text(" \n\u3000"))), request(user(text(" a ")))),
    ("blank-text", request({"role": "user", "content": "\n"}), request(user())),
    ("blank-text", answered(result(content=[text(" ")])), answered(result(content=""))),
    ("blank-text", request(user(), system=[text("")]), request(user(), system=[text()])),
    ("blank-text", request(user(), system=" "), request(user(), system="be kind")),
    (
        "blank-text",
        request(user({"type": "document", "source": {"type": "content", "content": [text("")]}})),
        request(user({"type": "document", "source": {"type": "content", "content": [text()]}})),
    ),
    (
        "error-without-content",
        answered(result(content="", is_error=True)),
        answered(result(content="", is_error=False)),
    ),
    (
        "error-without-content",
        answered(result(content=[], is_error=True)),
        answered(result(content="boom", is_error=True)),
    ),
    (
        "error-not-text",
        answered(result(content=[text(), {"type": "image", "source": {}}], is_error=True)),
        answered(result(content=[text(), {"type": "image", "source": {}}])),
    ),
    ("empty-content", request({"role": "user", "content": []}), request(user())),
    (
        "empty-content",
        request(user(), {"role": "assistant", "content": ""}, user()),
        request(user(), {"role": "assistant", "content": ""}, model=OLD),
    ),
    ("no-messages", request(), request(user())),
    ("empty-system", request(user(), system=[]), request(user(), system=None)),
    (
        "cache-marks",
        request(
            user(text(**MARK), text(**MARK), text(**MARK)),
            system=[text(**MARK)],
            tools=[{"name": "bash", **MARK}],
        ),
        request(
            user(text(**MARK), text(**MARK)),
            system=[text(**MARK)],
            tools=[{"name": "bash", **MARK}, {"name": "sh", "cache_control": None}],
        ),
    ),
    (
        "cache-marks",
        answered(result(content=[text(**MARK)] * 4, **MARK)),
        answered(result(content=[text(**MARK)] * 3, **MARK)),
    ),
    (
        "cache-on-blank",
        request(user(text("", **MARK), text())),
        request(user(text("a", **MARK), text())),
    ),
    (
        "cache-on-thinking",
        request(user(), assistant(thought(**MARK), text()), user()),
        request(user(), assistant(thought(), text(**MARK)), user()),
    ),
    ("prefill", request(user(), assistant()), request(user(), assistant(), model=OLD)),
    (
        "prefill",
        request(user(), assistant(), model="claude-opus-4-6"),
        request(user(), assistant(), model="claude-3-5-sonnet-20241022"),
    ),
    (
        "prefill",
        request(user(), assistant(), model="some-model-of-2029"),
        request(user(), assistant(), model="anthropic.claude-sonnet-4-20250514-v1:0"),
    ),
    (
        "trailing-space",
        request(user(), assistant(text("so ")), model=OLD),
        request(user(), assistant(text(" so")), model=OLD),
    ),
    (
        "thinking-last",
        request(user(), assistant(text(), thought()), user()),
        request(user(), assistant(thought(), text()), user()),
    ),
    (
        "thinking-last",
        request(user(), assistant({"type": "redacted_thinking", "data": "x"}), user()),
        request(user(), assistant({"type": "redacted_thinking", "data": "x"}, text()), user()),
    ),
    (
        "unsigned-thinking",
        request(user(), assistant(thought(""), text()), user()),
        request(user(), assistant(thought(), text()), user()),
    ),
    (
        "unsigned-thinking",
        request(user(), assistant({"type": "thinking", "thinking": "hm"}, text()), user()),
        request(user(), assistant(thought(thinking=""), text()), user()),
    ),
    (
        "unsigned-thinking",
        request(user(), assistant({"type": "redacted_thinking", "data": ""}, text()), user()),
        request(user(), assistant({"type": "redacted_thinking", "data": "x"}, text()), user()),
    ),
    (
        "thinking-leads",
        {**answered(result()), **MANUAL},
        {**answered(result(), calls=(thought(), call())), **MANUAL},
    ),
    (
        "thinking-leads",
        {**answered(result()), **MANUAL},
        {**request(user(), assistant(call()), user(result()), assistant(), user()), **MANUAL},
    ),
    ("alternation", request(user(), user()), request(user(), assistant(), user())),
    (
        "alternation",
        request(user(), assistant(), assistant(), user()),
        request(user(), system(), assistant(), user()),
    ),
    ("first-role", request(assistant(), user()), request(user())),
    (
        "first-role",
        request(system(), assistant(), user()),
        request(assistant(compaction(), text()), user()),
    ),
    ("role-name", request(user(), {"role": "tool", "content": "x"}), request(user())),
    ("system-role", request(user(), system(), model=OLD), request(user(), system())),
    ("system-role", request(user(), system(), model="unknown-1"), request(user(), system())),
    (
        "system-role",
        request(user(), assistant(), system(), user()),
        request(user(), system(), assistant(), user(), model="claude-opus-4-8"),
    ),
    ("encoding", request(user(text("a\ud83d"))), request(user(text("a👍")))),
    ("encoding", answered(result(), calls=(call(input={"\udc00": 1}),)), answered(result())),
    (
        "encoding",
        answered(result(), calls=(call(input={"n": [float("nan")]}),)),
        answered(result(), calls=(call(input={"n": [1.5, True, None]}),)),
    ),
    (
        "encoding",
        request(user(), tools=[{"name": "bash", "max": float("inf")}]),
        request(user(), tools=[{"name": "bash", "max": 10**30}]),
    ),
    ("encoding", request(user({"type": "image", "source": b"png"})), request(user())),
    (
        "compaction",
        request(user(), assistant(compaction(), text()), user()),
        request(user(), assistant(compaction(None), text()), user()),
    ),
    (
        "compaction",
        request(user(compaction(), compaction())),
        request(user(compaction(), compaction(None), text())),
    ),
    ("compaction", request(user(compaction(""), text())), request(user(compaction(), text()))),
    ("shape", {"messages": "hello"}, request(user())),
    ("shape", request("hello"), request(user())),
    ("shape", request({"role": "user", "content": 7}), request(user())),
    ("shape", request(user({"text": "no type"})), request(user({"type": "from_the_future"}))),
]


def rules(found: list[str]) -> set[str]:
    return {finding.split(":")[0] for finding in found}


@pytest.mark.parametrize(("rule", "illegal"), [(rule, bad) for rule, bad, _ in CASES])
def test_a_request_that_breaks_a_rule_is_found_by_that_rule(rule: str, illegal: Json) -> None:
    assert rule in rules(violations(illegal))


@pytest.mark.parametrize(("rule", "legal"), [(rule, good) for rule, _, good in CASES])
def test_a_request_that_keeps_the_rule_is_not_found_at_all(rule: str, legal: Json) -> None:
    assert violations(legal) == [], f"a false alarm near the rule {rule}"

"""The generators of histories: what they promise holds, and each odd thing really comes."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from tests.support.histories import (
    Message,
    Step,
    live_histories,
    marked,
    marker,
    recorded_histories,
    turns,
)
from tests.support.legality import violations

Block = dict[str, Any]
CALLS = ("tool_use", "server_tool_use")


def blocks(message: Message) -> list[Block]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def of_type(message: Message, *kinds: str) -> list[Block]:
    return [b for b in blocks(message) if b["type"] in kinds]


def all_of(history: list[Message], *kinds: str) -> list[Block]:
    return [b for message in history for b in of_type(message, *kinds)]


def dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- what the live flavour promises ---------------------------------------------------------


@given(live_histories())
def test_live_results_answer_an_open_call_of_the_last_assistant_message(
    history: list[Message],
) -> None:
    open_calls: set[str] = set()
    for message in history:
        if message["role"] == "assistant":
            open_calls = {b["id"] for b in of_type(message, "tool_use")}
        for result in of_type(message, "tool_result"):
            assert message["role"] == "user"
            open_calls.remove(result["tool_use_id"])


@given(live_histories())
def test_live_ids_are_unique(history: list[Message]) -> None:
    ids = [b["id"] for b in all_of(history, *CALLS)]

    assert len(ids) == len(set(ids))


@given(live_histories())
def test_a_naive_rendering_of_a_live_history_is_legal(history: list[Message]) -> None:
    assert violations({"messages": naively_rendered(history)}) == []


@given(st.booleans().flatmap(lambda r: turns(recorded=r, max_messages=9, max_text=80, huge=500)))
def test_sizes_are_kept_and_no_step_is_empty(steps: list[Step]) -> None:
    history = [message for step in steps for message in step]
    texts = [b["text"] for b in all_of(history, "text")]
    results = [b.get("content") for b in all_of(history, "tool_result")]

    assert all(steps)
    assert 1 <= len(history) <= 9
    assert all(len(text) <= 80 for text in texts)
    assert all(len(r) <= 500 for r in results if isinstance(r, str))


@given(st.one_of(live_histories(), recorded_histories()))
def test_every_message_carries_no_marker_but_its_own_and_each_text_is_unique(
    history: list[Message],
) -> None:
    texts: list[str] = []
    for index, message in enumerate(history):
        assert marked(dumped(message)) <= {index}
        texts += [b["text"] for b in of_type(message, "text") if marked(b["text"])]

    assert len(texts) == len(set(texts))


@given(st.one_of(live_histories(), recorded_histories()))
def test_every_text_that_is_not_blank_carries_its_marker(history: list[Message]) -> None:
    for index, message in enumerate(history):
        for block in of_type(message, "text", "thinking", "tool_use", "future_block"):
            if block["type"] != "text" or block["text"].strip():
                assert marker(index) in dumped(block)


def naively_rendered(history: list[Message]) -> list[Message]:
    """The plainest legal rendering: it answers lost calls, sorts results first, drops blanks."""
    merged: list[Message] = []
    for message in history:
        kept = [without_blanks(b) for b in blocks(message) if b.get("text", "x").strip()]
        if merged and merged[-1]["role"] == message["role"]:
            merged[-1]["content"] += kept
        else:
            merged.append({"role": message["role"], "content": kept})
    if merged[-1]["role"] == "assistant":
        merged.append({"role": "user", "content": []})
    for asking, answering in zip(merged, merged[1:], strict=False):
        answer_all(asking, answering)
    for message in merged:
        ends_well = message["content"] and message["content"][-1]["type"] not in (
            "thinking",
            "redacted_thinking",
        )
        if not ends_well:
            message["content"].append({"type": "text", "text": "(nothing said)"})
    return merged


def without_blanks(block: Block) -> Block:
    if block["type"] != "tool_result":
        return block
    content = block.get("content")
    if isinstance(content, list):
        content = [b for b in content if b.get("text", "x").strip()]
    return {**block, "content": content or "(no output)"}


def answer_all(asking: Message, answering: Message) -> None:
    results = of_type(answering, "tool_result")
    others = [b for b in answering["content"] if b["type"] != "tool_result"]
    lost = {b["id"] for b in of_type(asking, "tool_use")} - {r["tool_use_id"] for r in results}
    results += [{"type": "tool_result", "tool_use_id": c, "content": "(lost)"} for c in lost]
    answering["content"] = results + others


# --- each odd thing comes ---------------------------------------------------------------------

Feature = Callable[[list[Message]], bool]


def pairs(history: list[Message]) -> list[tuple[Message, Message]]:
    return list(zip(history, history[1:], strict=False))


def results_after_calls(history: list[Message]) -> list[list[list[str]]]:
    """For each assistant message with calls: the call ids, then the result ids by message."""
    rounds: list[list[list[str]]] = []
    for message in history:
        if message["role"] == "assistant":
            rounds.append([[b["id"] for b in of_type(message, "tool_use")]])
        elif rounds and (results := of_type(message, "tool_result")):
            rounds[-1].append([b["tool_use_id"] for b in results])
    return [r for r in rounds if r[0]]


def follows(first: str, second: str) -> Feature:
    return lambda h: any(a["role"] == first and b["role"] == second for a, b in pairs(h))


def aborted_by(role: str) -> Feature:
    def found(history: list[Message]) -> bool:
        return any(
            of_type(a, "tool_use") and b["role"] == role and not of_type(b, "tool_result")
            for a, b in pairs(history)
        )

    return found


def result_content(wanted: Callable[[Any], bool]) -> Feature:
    return lambda h: any(wanted(b.get("content", "absent")) for b in all_of(h, "tool_result"))


def result_kinds(content: Any) -> set[str]:
    return {b["type"] for b in content} if isinstance(content, list) else set()


def text_with(wanted: Callable[[str], bool]) -> Feature:
    return lambda h: any(wanted(b["text"]) for b in all_of(h, "text"))


def has(*kinds: str) -> Feature:
    return lambda h: bool(all_of(h, *kinds))


def unknown_results(history: list[Message]) -> bool:
    calls = {b["id"] for b in all_of(history, "tool_use")}
    return any(b["tool_use_id"] not in calls for b in all_of(history, "tool_result"))


def late_results(history: list[Message]) -> bool:
    issued: set[str] = set()
    for message in history:
        answered = {b["tool_use_id"] for b in of_type(message, "tool_result")}
        if message["role"] == "assistant":
            last = {b["id"] for b in of_type(message, "tool_use")}
            issued |= last
        elif issued and answered & issued - last:
            return True
    return False


def repeats(history: list[Message], kind: str, key: str) -> bool:
    ids = [b[key] for b in all_of(history, kind)]
    return len(ids) > len(set(ids))


LIVE: dict[str, Feature] = {
    "five parallel calls": lambda h: any(len(of_type(m, "tool_use")) == 5 for m in h),
    "results in another order": lambda h: any(
        len(sum(r[1:], [])) == len(r[0]) > 1 and sum(r[1:], []) != r[0]
        for r in results_after_calls(h)
    ),
    "results over several messages": lambda h: any(len(r) > 2 for r in results_after_calls(h)),
    "parallel results in one message": lambda h: any(len(of_type(m, "tool_result")) > 1 for m in h),
    "text before a result in its message": lambda h: any(
        of_type(m, "tool_result") and blocks(m)[0]["type"] == "text" for m in h
    ),
    "text after a result in its message": lambda h: any(
        of_type(m, "tool_result") and blocks(m)[-1]["type"] == "text" for m in h
    ),
    "user speaks while tools run": lambda h: any(
        of_type(a, "tool_use")
        and b["role"] == "user"
        and not of_type(b, "tool_result")
        and of_type(c, "tool_result")
        for a, b, c in zip(h, h[1:], h[2:], strict=False)
    ),
    "round aborted by the user": aborted_by("user"),
    "round aborted by the assistant": aborted_by("assistant"),
    "round half answered, then left": lambda h: any(
        0 < len(sum(r[1:], [])) < len(r[0]) for r in results_after_calls(h)[:-1]
    ),
    "calls pending at the end": lambda h: bool(of_type(h[-1], "tool_use")),
    "two user messages in a row": follows("user", "user"),
    "two assistant messages in a row": follows("assistant", "assistant"),
    "assistant without content": lambda h: any(m["content"] == [] for m in h),
    "error result": lambda h: any(b.get("is_error") for b in all_of(h, "tool_result")),
    "empty error result": lambda h: any(
        b.get("is_error") and not b.get("content") for b in all_of(h, "tool_result")
    ),
    "empty result": result_content(lambda c: c == ""),
    "result without content": result_content(lambda c: c == "absent"),
    "result of no blocks": result_content(lambda c: c == []),
    "blank text in a result": result_content(lambda c: c == [{"type": "text", "text": " \n"}]),
    "image in a result": result_content(lambda c: result_kinds(c) == {"image"}),
    "text and image in a result": result_content(lambda c: result_kinds(c) == {"text", "image"}),
    "huge result": result_content(lambda c: len(c) == 2_000),
    "signed thinking": has("thinking"),
    "redacted thinking": has("redacted_thinking"),
    "thinking before calls": lambda h: any(
        of_type(m, "thinking") and of_type(m, "tool_use") for m in h
    ),
    "server tool": has("web_search_tool_result"),
    "image": has("image"),
    "unknown block": has("future_block"),
    "content as a string": lambda h: any(isinstance(m["content"], str) for m in h),
    "blank text": text_with(lambda t: t != "" and not t.strip()),
    "empty text": text_with(lambda t: t == ""),
    "Chinese": text_with(lambda t: "简体" in t),
    "emoji of several code points": text_with(lambda t: "👩‍💻" in t),
    "very long text": text_with(lambda t: len(t) > 250),
}

RECORDED: dict[str, Feature] = {
    "result of an unknown call": unknown_results,
    "result given twice": lambda h: repeats(h, "tool_result", "tool_use_id"),
    "result much too late": late_results,
    "call id used twice": lambda h: repeats(h, "tool_use", "id"),
    "call id of odd characters": lambda h: any(":" in b["id"] for b in all_of(h, "tool_use")),
    "call id empty": lambda h: any(b["id"] == "" for b in all_of(h, "tool_use")),
    "system first": lambda h: h[0]["role"] == "system",
    "system between call and result": lambda h: any(
        of_type(a, "tool_use") and b["role"] == "system" for a, b in pairs(h)
    ),
    "assistant first": lambda h: h[0]["role"] == "assistant",
    "user without content": lambda h: any(m == {"role": "user", "content": []} for m in h),
    "lone surrogate": text_with(lambda t: any("\ud800" <= c <= "\udfff" for c in t)),
    "thinking last": lambda h: any(m["content"] and blocks(m)[-1]["type"] == "thinking" for m in h),
    "thinking without signature": lambda h: any(
        "signature" not in b for b in all_of(h, "thinking")
    ),
    "thinking with an empty signature": lambda h: any(
        b.get("signature") == "" for b in all_of(h, "thinking")
    ),
    "server call without result": lambda h: any(
        of_type(m, "server_tool_use") and not of_type(m, "web_search_tool_result") for m in h
    ),
    "answer over several messages": lambda h: any(
        of_type(a, "tool_use") and [*map(str, (b["type"] for b in blocks(c)))] == ["tool_use"]
        for a, c in pairs(h)
    ),
}

BOUNDED = settings(
    max_examples=1_000,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("feature", LIVE)
def test_live_histories_hold_sometimes(feature: str) -> None:
    find(live_histories(), LIVE[feature], settings=BOUNDED)


@pytest.mark.parametrize("feature", {**LIVE, **RECORDED})
def test_recorded_histories_hold_sometimes(feature: str) -> None:
    find(recorded_histories(), {**LIVE, **RECORDED}[feature], settings=BOUNDED)


def test_a_step_may_hold_a_whole_round_or_leave_it_open() -> None:
    def whole(steps: list[Step]) -> bool:
        return any(of_type(s[0], "tool_use") and of_type(s[-1], "tool_result") for s in steps)

    def open_between(steps: list[Step]) -> bool:
        return any(
            of_type(a[-1], "tool_use") and of_type(b[0], "tool_result")
            for a, b in zip(steps, steps[1:], strict=False)
        )

    find(turns(), whole, settings=BOUNDED)
    find(turns(), open_between, settings=BOUNDED)


def test_a_find_shrinks_to_the_plainest_history() -> None:
    smallest = find(live_histories(), has("tool_result"), settings=settings(database=None))

    assert len(smallest) == 3
    assert [b["type"] for b in blocks(smallest[1])] == ["tool_use"]
    assert [b["type"] for b in blocks(smallest[2])] == ["tool_result"]

"""The generators of histories: what they promise holds."""

import json
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from refold.testing.history_layout import Message, Step, marked, marker
from refold.testing.history_strategies import live_histories, recorded_histories, turns
from refold.testing.request_judge import violations

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


SMALL = {"min_messages": 5, "max_messages": 6, "max_text": 80, "huge": 500}


@given(st.one_of(turns(**SMALL), turns(recorded=True, **SMALL)))
def test_sizes_are_kept_and_no_step_is_empty(steps: list[Step]) -> None:
    history = [message for step in steps for message in step]
    texts = [b["text"] for b in all_of(history, "text")]
    results = [b.get("content") for b in all_of(history, "tool_result")]

    assert all(steps)
    assert 5 <= len(history) <= 6
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
    """The plainest legal rendering: it answers lost calls, sorts results first, drops blanks and odd names."""
    merged: list[Message] = []
    for message in history:
        kept = [without_blanks(b) for b in blocks(message) if b.get("text", "x").strip()]
        if merged and merged[-1]["role"] == message["role"]:
            merged[-1]["content"] += kept
        else:
            merged.append({"role": message["role"], "content": kept})
    if merged[-1]["role"] == "assistant":
        merged.append({"role": "user", "content": []})
    for asking, answering in pairwise(merged):
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
    if block["type"] == "tool_use":
        return {**block, "name": block["name"] if block["name"].isascii() else "odd"}
    if block["type"] != "tool_result":
        return block
    content: Any = block.get("content") or []
    if not isinstance(content, str):
        content = [b for b in content if b.get("text", "x").strip()]
    shown = {**block, "content": content or "(no output)"}
    if not isinstance(content, str) and any(part["type"] != "text" for part in content):
        shown.pop("is_error", None)  # A result that is marked as failed may hold nothing but texts.
    return shown


def answer_all(asking: Message, answering: Message) -> None:
    results = of_type(answering, "tool_result")
    others = [b for b in answering["content"] if b["type"] != "tool_result"]
    lost = {b["id"] for b in of_type(asking, "tool_use")} - {r["tool_use_id"] for r in results}
    results += [{"type": "tool_result", "tool_use_id": c, "content": "(lost)"} for c in lost]
    answering["content"] = results + others

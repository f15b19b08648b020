"""What is decided between two requests is sized for what these carry: system text, tools and model."""

import time
from pathlib import Path
from typing import Any

import pytest

import refold

SYSTEM = "You look after the boats. " * 400
TOOLS: list[dict[str, Any]] = [
    {"name": "recall_memory", "description": "Look it up.", "input_schema": {"type": "object"}}
]


def talked(conversation: refold.ConversationMemory, turns: int, **carried: Any) -> None:
    for number in range(turns):
        conversation.append(
            {"role": "user", "content": f"Question {number} about boat_{number}.py. " * 12}
        )
        conversation.context(**carried)
        conversation.append(
            {"role": "assistant", "content": f"boat_{number}.py is at its pier. " * 12}
        )
    conversation.append({"role": "user", "content": "And now?"})


@pytest.mark.parametrize("restarts", [False, True])
def test_a_compaction_on_demand_sizes_the_request_that_comes_next(
    tmp_path: Path, restarts: bool
) -> None:
    path = tmp_path / "a.db"
    memory = refold.open(path, window=32_000)
    talked(memory.conversation("t"), 30, system=SYSTEM, tools=TOOLS)
    if restarts:
        memory.close()
        memory = refold.open(path, window=32_000)
    with memory:
        conversation = memory.conversation("t")
        result = conversation.compact(all=True)
        assert result.outcome == "performed"
        context = conversation.context(system=SYSTEM, tools=TOOLS)
        assert context.tokens == result.tokens_after
        assert "ask recall_memory" in str(context.messages[0]["content"])
        back = conversation.revert_compaction()
        assert back.tokens_after == conversation.context(system=SYSTEM, tools=TOOLS).tokens


def test_what_is_given_counts_before_what_is_known(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db", window=32_000) as memory:
        conversation = memory.conversation("t")
        talked(conversation, 30, system=SYSTEM, tools=TOOLS)
        result = conversation.compact(all=True, system="Be brief.", tools=TOOLS)
        assert result.tokens_after == conversation.context(system="Be brief.", tools=TOOLS).tokens


def test_after_a_restart_an_append_begins_what_the_next_request_needs(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    large = SYSTEM * 4
    with refold.open(path, window=32_000) as memory:
        talked(memory.conversation("t"), 40, system=large)
        assert not memory.conversation("t").summaries()
    with refold.open(path, window=32_000, background=True) as memory:
        conversation = memory.conversation("t")
        deadline = time.monotonic() + 20
        while not conversation.summaries() and time.monotonic() < deadline:
            conversation.append(
                {"role": "user", "content": "One more thing about boat_3.py. " * 12}
            )
            time.sleep(0.05)
        assert conversation.summaries()
        known = conversation.context(system=large)
        assert known.tokens <= known.budget.trigger


def test_a_system_text_that_did_not_fit_is_not_shown_as_sent() -> None:
    with refold.open(":memory:", window=8_000) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "Hello."})
        conversation.context(system="You are kind.")
        conversation.append({"role": "assistant", "content": "Hi."})
        conversation.append({"role": "user", "content": "And now?"})
        sent = conversation.context(system="You are kind.")
        conversation.append({"role": "assistant", "content": "Now we begin."})
        with pytest.raises(refold.ContextWindowExceeded):
            conversation.context(system="You are long-winded. " * 4_000)
        assert conversation.context(at=sent.version).system == "You are kind."
        conversation.append({"role": "user", "content": "Go on."})
        assert conversation.context(at=sent.version).system == "You are kind."

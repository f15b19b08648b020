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


def talked(chat: refold.Chat, turns: int, **carried: Any) -> None:
    for number in range(turns):
        chat.append({"role": "user", "content": f"Question {number} about boat_{number}.py. " * 12})
        chat.context(**carried)
        chat.append({"role": "assistant", "content": f"boat_{number}.py is at its pier. " * 12})
    chat.append({"role": "user", "content": "And now?"})


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
        chat = memory.conversation("t")
        result = chat.compact(all=True)
        assert result.outcome == "performed"
        context = chat.context(system=SYSTEM, tools=TOOLS)
        assert context.tokens == result.tokens_after
        assert "ask recall_memory" in str(context.messages[0]["content"])
        back = chat.revert_compaction()
        assert back.tokens_after == chat.context(system=SYSTEM, tools=TOOLS).tokens


def test_what_is_given_counts_before_what_is_known(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db", window=32_000) as memory:
        chat = memory.conversation("t")
        talked(chat, 30, system=SYSTEM, tools=TOOLS)
        result = chat.compact(all=True, system="Be brief.", tools=TOOLS)
        assert result.tokens_after == chat.context(system="Be brief.", tools=TOOLS).tokens


def test_after_a_restart_an_append_begins_what_the_next_request_needs(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    large = SYSTEM * 4
    with refold.open(path, window=32_000) as memory:
        talked(memory.conversation("t"), 40, system=large)
        assert not memory.conversation("t").summaries()
    with refold.open(path, window=32_000, background=True) as memory:
        chat = memory.conversation("t")
        deadline = time.monotonic() + 20
        while not chat.summaries() and time.monotonic() < deadline:
            chat.append({"role": "user", "content": "One more thing about boat_3.py. " * 12})
            time.sleep(0.05)
        assert chat.summaries()
        known = chat.context(system=large)
        assert known.tokens <= known.budget.trigger

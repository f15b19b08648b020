"""Observers are told the figures of the results, of offloads as of compactions."""

from typing import Any

import refold
from refold.application.api.results import CompactionResult
from refold.domain.compaction.policy import CompactionPolicy

TOOL = "line of a log that says little\n"


def work(conversation: Any, number: int, lines: int) -> None:
    call = {"type": "tool_use", "id": f"c{number}", "name": "read", "input": {"path": f"f{number}"}}
    result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": TOOL * lines}
    conversation.append({"role": "user", "content": f"read f{number}"})
    conversation.append({"role": "assistant", "content": [call]})
    conversation.append({"role": "user", "content": [result]})
    conversation.append({"role": "assistant", "content": "done " * 40})


def test_a_summary_after_an_offload_is_told_with_the_figures_of_the_result() -> None:
    told: list[CompactionResult] = []
    with refold.open(":memory:", window=20_000, on_compaction=told.append) as memory:
        conversation = memory.conversation("t")
        for number in range(4):
            work(conversation, number, 400)
        results: list[CompactionResult] = []
        for number in range(40):
            conversation.append({"role": "user", "content": f"{number} " + "some words " * 120})
            conversation.append({"role": "assistant", "content": f"{number} " + "an answer " * 120})
            results += conversation.context().compactions
    assert any(result.results_offloaded or result.results_condensed for result in results)
    assert told == results


def test_released_offloads_are_named_by_address() -> None:
    told: list[CompactionResult] = []
    policy = CompactionPolicy(keep_last=1)
    with refold.open(":memory:", window=20_000, on_compaction=told.append, policy=policy) as memory:
        conversation = memory.conversation("t")
        for number in range(6):
            work(conversation, number, 500)
            conversation.context()
        for number in range(4):
            conversation.append({"role": "user", "content": f"{number} " + "some words " * 20})
            conversation.append({"role": "assistant", "content": "an answer"})
        result = conversation.compact()
        assert result.outcome == "performed"
        assert told[-1] == result
        assert result.released
        assert result.offloads_released >= len(result.released)
        for address in result.released:
            assert TOOL.strip() in str(conversation.read(address).message.blocks())
        assert conversation.revert_compaction() == told[-1]

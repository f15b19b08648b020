"""What is asked about one old place of a long conversation reads that place, and not all that came after it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.api.memory import Memory
from tests.support.counted_reads import counted_reads

EARLY = 10
LATER = 600
FEW = 10 * EARLY
"""Events that may be read for an early place."""


def said(number: int) -> dict[str, Any]:
    return {"role": "assistant" if number % 2 else "user", "content": f"Part {number} is checked."}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with refold.open(
        tmp_path / "a.db", window=200_000, scrub_megabytes=0, standing_recall=0
    ) as memory:
        yield memory


def test_a_copy_of_an_early_version_reads_that_version_alone(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = memory.conversation("t")
    conversation.append([said(n) for n in range(EARLY)], recorded=True)
    early = conversation.version
    conversation.append([said(n) for n in range(EARLY, EARLY + LATER)], recorded=True)
    conversation.erase([2, EARLY + LATER // 2])
    counts = counted_reads(monkeypatch)
    copy = conversation.fork(at=early)
    assert counts["events"] + counts["messages"] <= FEW
    assert [one.position for one in copy.messages() if one.erased] == [2]
    assert memory.verify().ok

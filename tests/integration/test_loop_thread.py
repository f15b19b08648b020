"""With asyncio, nothing whose work grows with a conversation runs in the thread of the event loop."""

import asyncio
import json
import re
import sqlite3
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import refold
from refold.application.ports.summariser import (
    NotesDraft,
    NotesRequest,
    SummaryDraft,
    SummaryRequest,
)
from refold.domain.evolve import fold
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter

MARK = "/refold/"
PAIR = [
    {"role": "user", "content": "check src/app.py and run `make test` please " * 10},
    {"role": "assistant", "content": "done, src/app.py is fine " * 10},
]
SLACK = 150
"""Calls by which two runs may differ for other reasons, such as how often a task went on (540 more messages)."""
HEAVY = (json, re, zlib, sqlite3)
"""Modules whose calls hold the loop for as long as their texts are."""


class Model:
    """A model with a window of its own."""

    name = "model"
    window = 12_000

    def measure(self, request: SummaryRequest) -> int:
        return sum(len(str(m.message.content)) for m in request.messages) // 4 + 1_000

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        await asyncio.sleep(0)
        text = "what was said " * 50
        return SummaryDraft(text=text, complete=True, model="m", prompt_fingerprint="1")

    async def take_notes(self, request: NotesRequest) -> NotesDraft:
        return NotesDraft(notes=(), model="m", prompt_fingerprint="1")


class Recorded:
    """What ran in this thread: functions of refold, and heavy calls that they made themselves."""

    def __init__(self) -> None:
        self.calls = Counter[str]()
        self.heavy = Counter[str]()

    def take(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if MARK not in code.co_filename or "tests" in code.co_filename:
            return
        where = f"{code.co_filename.rpartition(MARK)[2]}:{code.co_name}"
        if event == "call":
            self.calls[where] += 1
        elif event == "c_call" and _is_heavy(arg):
            self.heavy[f"{where} calls {arg}"] += 1


def _is_heavy(called: Any) -> bool:
    owner = type(getattr(called, "__self__", None)).__module__
    module = getattr(called, "__module__", None) or owner
    return any(name.startswith(heavy.__name__) for heavy in HEAVY for name in (module, owner))


@contextmanager
def recorded() -> Generator[Recorded]:
    found = Recorded()
    sys.setprofile(found.take)
    try:
        yield found
    finally:
        sys.setprofile(None)


async def use(
    conversation: refold.AsyncConversationMemory, memory: refold.AsyncMemory, pairs: int
) -> None:
    for _ in range(3):
        await conversation.append(PAIR * pairs)
        await conversation.context()
    await conversation.compact(focus="the build")
    await conversation.context(at=3)
    await conversation.revert_compaction()
    await conversation.context()
    await conversation.messages()
    await conversation.explain()
    await conversation.recall("make test")
    await conversation.topics()
    await conversation.export()
    await conversation.pin(0)
    assert (await conversation.tools().call("recall_memory", {"query": "make test"})).text
    await memory.conversations()
    await memory.search("make test")
    await (await conversation.fork()).context()
    await conversation.erase(1)
    await memory.verify()


def in_the_loop(path: Path, pairs: int, summariser: object, **more: object) -> Recorded:
    async def serve() -> Recorded:
        options: dict[str, Any] = {"summariser": summariser, "memories": 3, **more}
        async with refold.aopen(path, window=20_000, **options) as memory:
            conversation = memory.conversation("t")
            with recorded() as found:
                await use(conversation, memory, pairs)
            return found

    return asyncio.run(serve())


@pytest.mark.slow
@pytest.mark.parametrize("by", ["extractive", "model"])
def test_no_work_that_grows_runs_in_the_loop(tmp_path: Path, by: str) -> None:
    make: Callable[[], object] = (lambda: "extractive") if by == "extractive" else Model
    small = in_the_loop(tmp_path / "small.db", 30, make())
    large = in_the_loop(tmp_path / "large.db", 120, make())
    grown = {
        where: (small.calls[where], count)
        for where, count in large.calls.items()
        if count - small.calls[where] > SLACK
    }
    assert grown == {}
    # Each answer of a summariser is judged in the loop: those are short, and few.
    heavy = {where: n for where, n in (large.heavy - small.heavy).items() if n > SLACK}
    assert heavy == {}


@pytest.mark.slow
def test_no_work_of_archiving_runs_in_the_loop(tmp_path: Path) -> None:
    policy = refold.CompactionPolicy(archive_over=40)
    few, many = (
        in_the_loop(tmp_path / f"{pairs}.db", pairs, "extractive", policy=policy)
        for pairs in (30, 120)
    )
    grown = {where: n for where, n in (many.calls - few.calls).items() if n > SLACK}
    assert grown == {}


def test_work_in_the_loop_would_be_seen() -> None:
    async def careless() -> Recorded:
        with recorded() as found:
            fold(())
            EstimatingTokenCounter().count_text("word " * 100)
        return found

    calls = asyncio.run(careless()).calls
    assert calls["domain/evolve.py:fold"] == 1

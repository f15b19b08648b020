"""The façade for asyncio answers as the synchronous one, also from inside a running loop."""

import asyncio
from typing import Any

import pytest

from refold.application.api.async_memory import AsyncMemory
from refold.application.api.memory import Memory
from refold.application.ports.summariser import Summariser
from refold.domain.errors import InvalidThreadId, UnknownSummary, UnknownToolCall
from tests.support.builders import history, results, talk, user
from tests.support.fake_ports import MemoryLog, core_of
from tests.support.fake_summarisers import GoodSummariser, RaisingSummariser, SlowSummariser
from tests.support.recall_scenes import Scene

WORDS = "word " * 200
TURNS: list[Any] = [{"role": r, "content": WORDS} for _ in range(14) for r in ("user", "assistant")]


def in_sync(log: MemoryLog, summariser: Summariser) -> list[object]:
    with Memory(core_of(log, summariser=summariser)) as memory:
        chat = memory.conversation("t")
        return [
            chat.append(TURNS),
            chat.append(user("last"), key="k"),
            chat.append(user("last"), key="k"),
            chat.context(system="You help."),
            chat.compact(focus="parser"),
            chat.context(at=5),
            chat.messages(1, 3),
            chat.summaries(),
            chat.compactions(),
            memory.conversations(),
            memory.verify(),
            memory.replay(),
        ]


async def in_async(log: MemoryLog, summariser: Summariser) -> list[object]:
    async with AsyncMemory(core_of(log, summariser=summariser)) as memory:
        chat = memory.conversation("t")
        return [
            await chat.append(TURNS),
            await chat.append(user("last"), key="k"),
            await chat.append(user("last"), key="k"),
            await chat.context(system="You help."),
            await chat.compact(focus="parser"),
            await chat.context(at=5),
            await chat.messages(1, 3),
            await chat.summaries(),
            await chat.compactions(),
            await memory.conversations(),
            await memory.verify(),
            await memory.replay(),
        ]


@pytest.mark.parametrize("summariser", [GoodSummariser(), RaisingSummariser()])
def test_both_facades_answer_alike_and_log_alike(summariser: Summariser) -> None:
    one, other = MemoryLog(), MemoryLog()
    assert in_sync(one, summariser) == asyncio.run(in_async(other, summariser))
    assert one.streams == other.streams


def test_the_synchronous_facade_works_inside_a_running_loop() -> None:
    async def notebook() -> list[object]:
        return in_sync(MemoryLog(), GoodSummariser())

    assert asyncio.run(notebook()) == in_sync(MemoryLog(), GoodSummariser())


def test_errors_are_the_same() -> None:
    async def scene() -> None:
        async with AsyncMemory(core_of()) as memory:
            with pytest.raises(InvalidThreadId):
                memory.conversation(" ")
            with pytest.raises(UnknownToolCall):
                await memory.conversation("t").append(results("x"))

    asyncio.run(scene())


def test_the_loop_goes_on_while_a_summary_is_written() -> None:
    async def scene() -> int:
        slow = SlowSummariser()
        async with AsyncMemory(core_of(summariser=slow)) as memory:
            chat = memory.conversation("t")
            await chat.append(TURNS)
            compacting = asyncio.create_task(chat.compact())
            await slow.started.wait()
            for _ in range(5):
                await chat.append(user("meanwhile"))
            slow.release.set()
            assert (await compacting).outcome == "performed"
            return (await chat.append(user("after"))).positions[0]

    assert asyncio.run(scene()) == 33


def test_closing_twice_is_fine() -> None:
    memory = Memory(core_of())
    memory.conversation("t").append(TURNS)
    memory.conversation("t").compact()
    memory.close()
    memory.close()


def test_looking_things_up_is_the_same_for_both() -> None:
    scene = Scene(*history(*talk(4)))
    chat, memory = scene.chat, scene.memory
    in_turn: list[object] = [
        chat.recall("question 2", limit=2, roles="user"),
        chat.query(start=1, text="answer", limit=2),
        chat.read_part(1, 2, 100),
        memory.search("answer 3", neighbours=0),
        memory.index(),
    ]

    async def scened() -> list[object]:
        async with AsyncMemory(scene.core) as memory:
            chat = memory.conversation("t")
            with pytest.raises(UnknownSummary):
                await chat.expand("s")
            with pytest.raises(UnknownSummary):
                await memory.expand("s")
            return [
                await chat.recall("question 2", limit=2, roles="user"),
                await chat.query(start=1, text="answer", limit=2),
                await chat.read_part(1, 2, 100),
                await memory.search("answer 3", neighbours=0),
                await memory.index(),
            ]

    assert asyncio.run(scened()) == in_turn

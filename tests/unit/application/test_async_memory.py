"""The façade for asyncio answers as the synchronous one, also from inside a running loop."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from refold.application.api.async_memory import AsyncConversationMemory, AsyncMemory
from refold.application.api.memory import Memory
from refold.application.conversation.loaded import LoadedConversation
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
        conversation = memory.conversation("t")
        return [
            conversation.append(TURNS),
            conversation.append(user("last"), key="k"),
            conversation.append(user("last"), key="k"),
            conversation.context(system="You help."),
            conversation.compact(focus="parser"),
            conversation.context(at=5),
            conversation.messages(1, 3),
            conversation.summaries(),
            conversation.compactions(),
            memory.conversations(),
            memory.verify(),
            memory.replay(),
        ]


async def in_async(log: MemoryLog, summariser: Summariser) -> list[object]:
    async with AsyncMemory(core_of(log, summariser=summariser)) as memory:
        conversation = memory.conversation("t")
        return [
            await conversation.append(TURNS),
            await conversation.append(user("last"), key="k"),
            await conversation.append(user("last"), key="k"),
            await conversation.context(system="You help."),
            await conversation.compact(focus="parser"),
            await conversation.context(at=5),
            await conversation.messages(1, 3),
            await conversation.summaries(),
            await conversation.compactions(),
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
            conversation = memory.conversation("t")
            await conversation.append(TURNS)
            compacting = asyncio.create_task(conversation.compact())
            await slow.started.wait()
            for _ in range(5):
                await conversation.append(user("meanwhile"))
            slow.release.set()
            assert (await compacting).outcome == "performed"
            return (await conversation.append(user("after"))).positions[0]

    assert asyncio.run(scene()) == 33


def test_closing_twice_is_fine() -> None:
    memory = Memory(core_of())
    memory.conversation("t").append(TURNS)
    memory.conversation("t").compact()
    memory.close()
    memory.close()


def test_looking_things_up_is_the_same_for_both() -> None:
    scene = Scene(*history(*talk(4)))
    conversation, memory = scene.conversation, scene.memory
    in_turn: list[object] = [
        conversation.recall("question 2", limit=2, roles="user"),
        conversation.query(start=1, text="answer", limit=2),
        conversation.read_part(1, 2, 100),
        memory.search("answer 3", neighbours=0),
        memory.index(),
    ]

    async def scened() -> list[object]:
        async with AsyncMemory(scene.core) as memory:
            conversation = memory.conversation("t")
            with pytest.raises(UnknownSummary):
                await conversation.expand("s")
            with pytest.raises(UnknownSummary):
                await memory.expand("s")
            return [
                await conversation.recall("question 2", limit=2, roles="user"),
                await conversation.query(start=1, text="answer", limit=2),
                await conversation.read_part(1, 2, 100),
                await memory.search("answer 3", neighbours=0),
                await memory.index(),
            ]

    assert asyncio.run(scened()) == in_turn


Read = Callable[[AsyncConversationMemory], Awaitable[object]]
READS: dict[str, Read] = {
    "version": lambda conversation: conversation.version(),
    "explain": lambda conversation: conversation.explain(0),
    "earlier context": lambda conversation: conversation.context(at=1),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_that_raises_stop_iteration_ends_with_an_error(name: str) -> None:
    """A coroutine that waits for a thread in Python 3.11 would wait for ever."""

    class Stopping(MemoryLog):
        def load(self, thread_id: str, *, at: int | None = None) -> LoadedConversation:
            raise StopIteration

    async def ask() -> None:
        async with AsyncMemory(core_of(Stopping())) as memory:
            await asyncio.wait_for(READS[name](memory.conversation("t")), 2)

    with pytest.raises(RuntimeError, match="raised StopIteration"):
        asyncio.run(ask())

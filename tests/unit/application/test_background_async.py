"""For asyncio: the background is the caller's own loop, and no cancellation leaves an attempt open."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from refold.application.api import memory
from refold.application.api.async_memory import AsyncConversationMemory, AsyncMemory
from refold.application.conversation.loaded import LoadedConversation
from refold.application.ports.summariser import Summariser, SummaryDraft, SummaryRequest
from refold.domain.events import CompactionFailed, CompactionPerformed, CompactionRequested, Event
from tests.support.fake_ports import MemoryLog, core_of
from tests.support.fake_summarisers import GoodSummariser, SlowSummariser

T = TypeVar("T")
WAIT = 20
TALK: list[dict[str, object]] = [
    {"role": ("user", "assistant")[n % 2], "content": "word " * 200} for n in range(30)
]
DUE = TALK[:23]


class Desk:
    """A memory for asyncio on a log in memory."""

    def __init__(
        self, summariser: Summariser, *, log: MemoryLog | None = None, background: bool = True
    ) -> None:
        self.log = log or MemoryLog()
        self.memory = AsyncMemory(core_of(self.log, summariser=summariser, background=background))
        self.conversation: AsyncConversationMemory = self.memory.conversation("t")

    @property
    def events(self) -> list[Event]:
        return self.log.streams.get("t", [])

    def outcomes(self) -> list[str]:
        """How each attempt ended, in order; ``open`` where one did not."""
        ends: dict[str, list[str]] = {}
        for event in self.events:
            match event:
                case CompactionRequested():
                    ends[event.attempt_id] = []
                case CompactionPerformed():
                    ends[event.attempt_id].append("performed")
                case CompactionFailed():
                    ends[event.attempt_id].append(event.reason)
                case _:
                    pass
        assert all(len(end) <= 1 for end in ends.values()), "an attempt with two ends"
        return [end[0] if end else "open" for end in ends.values()]


def played(scene: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(scene, WAIT))


def test_nobody_waits_and_the_summariser_works_in_the_callers_loop() -> None:
    class Placed(SlowSummariser):
        async def summarise(self, request: SummaryRequest) -> SummaryDraft:
            loops.append(asyncio.get_running_loop())
            return await super().summarise(request)

    loops: list[asyncio.AbstractEventLoop] = []

    async def scene() -> None:
        slow = Placed()
        desk = Desk(slow)
        async with desk.memory:
            await desk.conversation.append(DUE)
            await slow.started.wait()
            await desk.conversation.append({"role": "assistant", "content": "meanwhile"})
            assert (await desk.conversation.context()).summary is None
            slow.release.set()
            assert await desk.memory.drain()
            context = await desk.conversation.context()
            assert context.summary is not None
            assert loops == [asyncio.get_running_loop()]
        assert desk.outcomes() == ["performed"]

    played(scene())


def test_a_request_that_would_not_fit_waits_for_the_compaction_that_runs() -> None:
    async def scene() -> None:
        slow = SlowSummariser()
        desk = Desk(slow)
        async with desk.memory:
            await desk.conversation.append(DUE)
            await slow.started.wait()
            await desk.conversation.append(TALK[23:])
            asked = asyncio.create_task(desk.conversation.context())
            done, _ = await asyncio.wait({asked}, timeout=0.05)
            assert not done
            slow.release.set()
            context = await asked
            assert context.summary is not None
            assert context.tokens <= context.budget.limit
        assert desk.outcomes() == ["performed"]

    played(scene())


def test_closing_gives_up_what_does_not_end() -> None:
    async def scene() -> Desk:
        slow = SlowSummariser()
        desk = Desk(slow)
        await desk.conversation.append(DUE)
        await slow.started.wait()
        assert not await desk.memory.drain(0)
        await desk.memory.close(0)
        return desk

    assert played(scene()).outcomes() == ["abandoned"]


def test_closing_waits_no_longer_for_the_log_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = list[float]()

    def written(*_: object, at: object, wait: float) -> None:
        del at
        waits.append(wait)

    monkeypatch.setattr(memory, "write_all_waiting", written)
    played(Desk(GoodSummariser()).memory.close(0))
    assert waits == [0]


def test_a_program_that_is_interrupted_does_not_wait() -> None:
    async def scene(desk: Desk, slow: SlowSummariser) -> None:
        async with desk.memory:
            await desk.conversation.append(DUE)
            await slow.started.wait()
            raise asyncio.CancelledError

    slow = SlowSummariser()
    desk = Desk(slow)
    with pytest.raises(asyncio.CancelledError):
        played(scene(desk, slow))
    assert desk.outcomes() == ["abandoned"]


def test_a_loop_that_ends_with_a_memory_open_leaves_an_end_in_the_log() -> None:
    async def scene() -> Desk:
        slow = SlowSummariser()
        desk = Desk(slow)
        await desk.conversation.append(DUE)
        await slow.started.wait()
        return desk

    assert played(scene()).outcomes() == ["abandoned"]


def test_a_loop_that_ends_right_after_an_append_leaves_no_attempt_open() -> None:
    async def scene() -> Desk:
        desk = Desk(SlowSummariser())
        await desk.conversation.append(DUE)
        return desk

    assert "open" not in played(scene()).outcomes()


def test_a_memory_serves_one_loop_after_another() -> None:
    desk = Desk(GoodSummariser())

    async def scene() -> bool:
        await desk.conversation.append(TALK)
        return await desk.memory.drain()

    assert all(played(scene()) for _ in range(3))
    assert set(desk.outcomes()) == {"performed"}
    played(desk.memory.close())


class CancellingLog(MemoryLog):
    """Has a task cancelled while it is at work for the so-manieth time, and only then does that work."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.task: asyncio.Task[object] | None = None

    def watch(self, task: asyncio.Task[object]) -> None:
        self.task = task

    def load(self, thread_id: str, *, at: int | None = None) -> LoadedConversation:
        self._worked()
        return super().load(thread_id, at=at)

    def _worked(self) -> None:
        if self.task is None:
            return
        self.number -= 1
        if self.number == 0:
            seen, task = threading.Event(), self.task
            task.get_loop().call_soon_threadsafe(task.cancel)
            task.get_loop().call_soon_threadsafe(seen.set)
            assert seen.wait(WAIT)


@pytest.mark.parametrize("act", ["context", "compact"])
def test_whenever_a_caller_is_cancelled_no_attempt_stays_open(act: str) -> None:
    async def scene(number: int) -> bool:
        log = CancellingLog(number)
        desk = Desk(GoodSummariser(), log=log, background=False)
        async with desk.memory:
            await desk.conversation.append(TALK)
            task = asyncio.create_task(getattr(desk.conversation, act)())
            log.watch(task)
            await asyncio.wait({task})
        ends.update(desk.outcomes())
        assert "open" not in desk.outcomes(), f"cancelled at access {number}"
        return task.cancelled()

    ends: set[str] = set()
    number = 1
    while played(scene(number)):
        number += 1
    assert number > 4
    assert ends == {"cancelled", "performed"}


def test_a_caller_that_is_cancelled_while_the_model_writes_can_ask_again() -> None:
    async def scene() -> None:
        slow = SlowSummariser()
        desk = Desk(slow, background=False)
        async with desk.memory:
            await desk.conversation.append(TALK)
            asked = asyncio.create_task(desk.conversation.context())
            await slow.started.wait()
            asked.cancel()
            await asyncio.wait({asked})
            assert desk.outcomes() == ["cancelled"]
            slow.release.set()
            assert (await desk.conversation.context()).summary is not None
        assert desk.outcomes() == ["cancelled", "performed"]

    played(scene())

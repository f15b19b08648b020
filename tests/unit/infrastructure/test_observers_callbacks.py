"""Callbacks: called with every result, plain or async; what they raise goes no further."""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager

import pytest

import refold
from refold.application.api.conversation_memory import ConversationMemory
from refold.domain.events import Trigger


def filled(conversation: ConversationMemory) -> None:
    for n in range(8):
        conversation.append({"role": "user", "content": f"check file_{n}.py please. " * 40})
        conversation.append({"role": "assistant", "content": f"file_{n}.py is fine. " * 40})


def test_a_function_has_the_result_before_the_answer_is_there() -> None:
    told: list[refold.CompactionResult] = []
    with refold.open(":memory:", window=8_000, on_compaction=told.append) as memory:
        conversation = memory.conversation("t")
        filled(conversation)
        assert [conversation.compact()] == told
        assert told[0].outcome == "performed"
        assert told[0].thread_id == "t"


def test_a_coroutine_is_waited_for_when_the_memory_closes() -> None:
    told: list[str] = []

    async def slow(result: refold.CompactionResult) -> None:
        await asyncio.sleep(0.05)
        told.append(result.outcome)

    with refold.open(":memory:", window=8_000, on_compaction=slow) as memory:
        filled(memory.conversation("t"))
        memory.conversation("t").compact()
        assert told == []
    assert told == ["performed"]


def test_a_coroutine_that_does_not_end_is_left_alone_after_the_wait_that_was_set() -> None:
    async def endless(result: refold.CompactionResult) -> None:
        del result
        await asyncio.Event().wait()

    memory = refold.open(":memory:", window=8_000, on_compaction=endless, close_wait=0.01)
    filled(memory.conversation("t"))
    memory.conversation("t").compact()
    memory.close()


def test_for_asyncio_a_coroutine_runs_in_the_loop_of_the_program() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def told(result: refold.CompactionResult) -> None:
        del result
        loops.append(asyncio.get_running_loop())

    async def program() -> None:
        async with refold.aopen(":memory:", window=8_000, on_compaction=told) as memory:
            await memory.conversation("t").compact()
        assert loops == [asyncio.get_running_loop()]

    asyncio.run(program())


@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_callback_raises_is_logged_and_goes_no_further(
    is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def bad(result: refold.CompactionResult) -> None:
        raise RuntimeError(f"no good: {result.outcome}")

    async def bad_later(result: refold.CompactionResult) -> None:
        bad(result)

    call = bad_later if is_async else bad
    with refold.open(":memory:", window=8_000, on_compaction=call) as memory:
        filled(memory.conversation("t"))
        assert memory.conversation("t").compact().outcome == "performed"
    what = "on_compaction" if is_async else "an observer"
    assert f"{what} failed: RuntimeError ({__file__}:" in caplog.text
    assert "no good" not in caplog.text  # It may quote a message.


class Broken:
    """An observer that raises wherever it can."""

    def compaction_ended(self, result: refold.CompactionResult) -> None:
        raise RuntimeError(f"ended {result.outcome}")

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        raise RuntimeError(f"request {thread_id} {tokens} {tokens_repeated}")

    @contextmanager
    def compacting(self, thread_id: str, trigger: Trigger) -> Generator[None]:
        yield
        raise RuntimeError(f"compacting {thread_id} {trigger}")

    async def finish(self) -> None:
        raise RuntimeError("finish")


def test_an_observer_that_raises_everywhere_disturbs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        caplog.at_level(logging.WARNING, "refold"),
        refold.open(":memory:", window=8_000, observers=(Broken(),)) as memory,
    ):
        conversation = memory.conversation("t")
        filled(conversation)
        assert conversation.compact().outcome == "performed"
        assert conversation.context().tokens
    told = {r.getMessage() for r in caplog.records if "an observer failed" in r.getMessage()}
    assert len(told) == 4  # Each by the line that raised it.

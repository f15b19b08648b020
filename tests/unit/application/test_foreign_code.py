"""Whatever code of the user's own raises ends its attempt, and nothing else."""

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import AbstractContextManager
from typing import Any

import pytest

import refold
from refold.application.api.results import CompactionResult
from refold.application.errors import RaisedOutside
from refold.application.ports.summariser import (
    NotesDraft,
    NotesRequest,
    SummaryDraft,
    SummaryRequest,
)
from refold.application.runtime.foreign_code import Contained

ENDINGS = [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, MemoryError]
TALK = [
    {"role": role, "content": f"{role} {n} " + "word " * 60}
    for n in range(30)
    for role in ("user", "assistant")
]
SOON = 30


class Raising:
    """Raises in one of the places where a summariser is asked."""

    name = "raising"

    def __init__(self, kind: type[BaseException], place: str) -> None:
        self._kind = kind
        self._place = place

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        await asyncio.sleep(0)
        if self._place == "summarise":
            raise self._kind(3)
        return SummaryDraft(text="what was said", complete=True, model="m", prompt_fingerprint="1")

    async def take_notes(self, request: NotesRequest) -> NotesDraft:
        if self._place == "take_notes":
            raise self._kind(3)
        return NotesDraft(notes=(), model="m", prompt_fingerprint="1")


class RaisingObserver:
    def __init__(self, kind: type[BaseException]) -> None:
        self._kind = kind

    def compaction_ended(self, result: CompactionResult) -> None:
        raise self._kind(3)

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        raise self._kind(3)

    def compacting(self, thread_id: str, trigger: str) -> AbstractContextManager[object]:
        raise self._kind(3)

    async def finish(self) -> None:
        raise self._kind(3)


@pytest.mark.parametrize("kind", ENDINGS)
@pytest.mark.parametrize("place", ["summarise", "take_notes"])
def test_whatever_a_summariser_raises_ends_its_attempt_and_nothing_else(
    kind: type[BaseException], place: str
) -> None:
    with refold.open(":memory:", window=8_000, summariser=Raising(kind, place)) as memory:
        conversation = memory.conversation("t")
        conversation.append(TALK)
        result = conversation.compact()
        if place == "summarise":
            assert (result.outcome, result.reason) == ("failed", "error")
            assert kind.__name__ in result.detail
            assert [row.outcome for row in conversation.compactions()] == ["failed"]
        else:
            assert result.outcome == "performed"
        conversation.append({"role": "user", "content": "still there?"})
        assert conversation.context().messages


@pytest.mark.parametrize("kind", ENDINGS)
def test_the_same_in_the_loop_of_a_service(kind: type[BaseException]) -> None:
    async def serve() -> None:
        async with refold.aopen(
            ":memory:", window=8_000, summariser=Raising(kind, "summarise")
        ) as memory:
            conversation = memory.conversation("t")
            await conversation.append(TALK)
            result = await asyncio.wait_for(conversation.compact(), SOON)
            assert (result.outcome, result.reason) == ("failed", "error")
            assert (await asyncio.wait_for(conversation.context(), SOON)).messages

    asyncio.run(serve())


@pytest.mark.parametrize("kind", ENDINGS)
def test_whatever_an_observer_or_a_callback_raises_goes_no_further(
    kind: type[BaseException],
) -> None:
    async def raising(result: CompactionResult) -> None:
        raise kind(3)

    with refold.open(
        ":memory:", window=8_000, observers=(RaisingObserver(kind),), on_compaction=raising
    ) as memory:
        conversation = memory.conversation("t")
        conversation.append(TALK)
        assert conversation.compact().outcome == "performed"
        if kind is not KeyboardInterrupt:  # In the main thread that is Ctrl-C.
            assert conversation.context().messages
            assert conversation.revert_compaction().outcome == "reverted"


class RaisingEmbedder:
    name = model = "raising"

    def __init__(self, kind: type[BaseException]) -> None:
        self._kind = kind

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise self._kind(3)

    def embed_query(self, text: str) -> list[float]:
        raise self._kind(3)


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, asyncio.CancelledError])
def test_whatever_an_embedder_raises_words_are_searched(kind: type[BaseException]) -> None:
    embedder: Any = RaisingEmbedder(kind)
    with refold.open(":memory:", embedder=embedder) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "the green boat"})
        assert [hit.position for hit in conversation.recall("green boat").hits] == [0]
        progress = memory.embed(wait=5)
        assert progress is not None
        assert kind.__name__ in (progress.error or "")


@pytest.mark.parametrize("kind", [SystemExit, KeyError])
def test_whatever_a_search_program_raises_the_built_in_search_answers(
    kind: type[BaseException],
) -> None:
    class Backend:
        name = "mine"

        def find(self, query: str, mode: str, thread_id: str | None, limit: int) -> list[Any]:
            raise kind("no")

        def drop(self) -> bool:
            return True

        def close(self) -> None: ...

    with refold.open(":memory:", search_backend=Backend()) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "the green boat"})
        found = conversation.recall("green boat")
        assert [hit.position for hit in found.hits] == [0]
        assert kind.__name__ in str(found.notice)


def test_the_callers_own_cancellation_goes_on() -> None:
    async def waits() -> None:
        with Contained():
            await asyncio.sleep(SOON)

    async def cancelled() -> None:
        task = asyncio.create_task(waits())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await waits()

    asyncio.run(cancelled())


def test_a_coroutine_that_is_closed_closes() -> None:
    async def waits() -> None:
        with Contained():
            await asyncio.sleep(SOON)

    loop = asyncio.new_event_loop()
    coroutine: Coroutine[Any, Any, None] = waits()
    task = loop.create_task(coroutine)
    loop.run_until_complete(asyncio.sleep(0.01))
    coroutine.close()
    task.cancel()
    loop.run_until_complete(asyncio.wait([task]))
    loop.close()


def test_ctrl_c_in_the_main_thread_is_the_callers() -> None:
    with pytest.raises(KeyboardInterrupt), Contained():
        raise KeyboardInterrupt
    raised: list[BaseException] = []

    def work() -> None:
        try:
            with Contained():
                raise KeyboardInterrupt
        except RaisedOutside as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(SOON)
    assert [str(error) for error in raised] == ["KeyboardInterrupt"]

"""Cancelled coroutines: what a caller sees when the cancellation reaches it is what stays."""

import asyncio
import random
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import pytest

import refold
from refold.application.api.following import FollowingMemory
from refold.infrastructure.files.lock import WriteLock
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter

ROUNDS = 150
P = ParamSpec("P")


def in_a_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that is a coroutine."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def stored(path: Path) -> list[tuple[str, int]]:
    """Every event in the file, as a look from outside sees it."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT originator_id, originator_version FROM stored_events ORDER BY 1, 2"
        ).fetchall()


async def cancelled_at(work: Awaitable[object], pause: float) -> bool:
    """Whether the work was cancelled, so many seconds after it began."""
    task = asyncio.ensure_future(work)
    await asyncio.sleep(pause)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return True
    return False


def said(number: int) -> dict[str, object]:
    return {"role": "user", "content": f"message {number}"}


@in_a_loop
async def test_an_append_is_stored_when_its_cancellation_is_told_or_never(tmp_path: Path) -> None:
    path, chance = tmp_path / "a.db", random.Random(7)
    async with refold.aopen(path) as memory:
        conversation = memory.conversation("t")
        await conversation.append(said(-1))
        cancelled = 0
        for number in range(ROUNDS):
            cancelled += await cancelled_at(
                conversation.append(said(number)), chance.random() * 0.002
            )
            then = stored(path)
            await asyncio.sleep(chance.random() * 0.004)
            assert stored(path) == then
        assert cancelled > ROUNDS / 4
        texts = [str(m.message.content) for m in await conversation.messages()]
        assert len(texts) == len(set(texts))
        assert texts == sorted(texts, key=lambda text: int(text.split()[1]))


WRITING: dict[
    str, Callable[[refold.AsyncMemory, refold.AsyncConversationMemory], Awaitable[object]]
] = {
    "append": lambda memory, conversation: conversation.append(said(0)),
    "label": lambda memory, conversation: conversation.label(f"label {random.random()}"),
    "pin": lambda memory, conversation: conversation.pin(f"a text to keep {random.random()}"),
    "unpin": lambda memory, conversation: conversation.unpin("none"),
    "remember": lambda memory, conversation: conversation.tools(edits="allow").call(
        "remember", {"text": f"It is {random.random()}.", "kind": "fact"}
    ),
    "fork": lambda memory, conversation: conversation.fork(),
    "erase": lambda memory, conversation: conversation.erase(1),
    "compact": lambda memory, conversation: conversation.compact(),
    "revert": lambda memory, conversation: conversation.revert_compaction(),
    "context": lambda memory, conversation: conversation.context(),
    "erase_conversation": lambda memory, conversation: memory.erase_conversation("other"),
}


async def filled(memory: refold.AsyncMemory, turns: int = 20) -> refold.AsyncConversationMemory:
    conversation = memory.conversation("t")
    for thread_id in ("t", "other"):
        words = [said(n) | {"content": f"{n} " + "word " * 60} for n in range(2 * turns)]
        for n in range(1, 2 * turns, 2):
            words[n]["role"] = "assistant"
        await memory.conversation(thread_id).append([*words, said(0)])
    return conversation


@pytest.mark.slow(but=["pin", "label"])
@pytest.mark.parametrize("name", WRITING)
@in_a_loop
async def test_what_writes_has_written_when_its_cancellation_is_told_or_never_does(
    tmp_path: Path, name: str
) -> None:
    chance = random.Random(name)
    path = tmp_path / "a.db"
    async with refold.aopen(path, window=4_000) as memory:
        conversation = await filled(memory)
        for _ in range(12):
            with suppress(refold.RefoldError):
                await cancelled_at(WRITING[name](memory, conversation), chance.random() * 0.012)
            then = stored(path)
            await asyncio.sleep(0.015)
            assert stored(path) == then
        assert (await memory.verify()).ok


@pytest.mark.parametrize("name", [n for n in WRITING if n not in ("unpin", "revert", "context")])
@in_a_loop
async def test_what_waits_for_another_writer_is_given_up_at_once_and_never_written(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / "a.db"
    async with refold.aopen(path, window=4_000) as memory:
        conversation = await filled(memory)
        before, other = stored(path), WriteLock(Path(f"{path}.lock"), 30)
        loop = asyncio.get_running_loop()
        with other.held():
            began = loop.time()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(WRITING[name](memory, conversation), 0.1)
            assert loop.time() - began < 5
        other.close()
        await asyncio.sleep(0.05)
        assert [row for row in stored(path) if row not in before] == []
        await conversation.append(said(1))


def adk(memory: refold.AsyncMemory) -> Any:
    pytest.importorskip("google.adk")
    from google.adk.memory.memory_entry import MemoryEntry
    from google.genai import types

    from refold.adapters.google_adk import RefoldMemoryService

    content = types.Content(role="user", parts=[types.Part(text="hi")])
    service = RefoldMemoryService(memory)
    return service.add_memory(
        app_name="a", user_id="ann", memories=[MemoryEntry(id="1", content=content)]
    )


def memory_tool(memory: refold.AsyncMemory) -> Any:
    pytest.importorskip("anthropic", minversion="2.12")
    from refold.adapters.anthropic import AsyncMemoryTool

    given = {"command": "create", "path": "/memories/a.txt", "file_text": "hi"}
    return AsyncMemoryTool(memory).call(given)


def session_store(memory: refold.AsyncMemory) -> Any:
    pytest.importorskip("claude_agent_sdk")
    from refold.adapters.claude_agent import RefoldSessionStore

    key = {"project_key": "p", "session_id": "s"}
    entry = {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "hi"}}
    return RefoldSessionStore(memory).append(key, [entry])


def deleted_session(memory: refold.AsyncMemory) -> Any:
    pytest.importorskip("claude_agent_sdk")
    from refold.adapters.claude_agent import RefoldSessionStore

    return RefoldSessionStore(memory).delete({"project_key": "p", "session_id": "other"})


def list_of_an_agent(memory: refold.AsyncMemory) -> Any:
    following = FollowingMemory(memory)
    return following.acontext_of(lambda: following.follow("agent", [said(0)]), 1)


@pytest.mark.parametrize(
    "write", [adk, memory_tool, session_store, deleted_session, list_of_an_agent]
)
@in_a_loop
async def test_what_an_adapter_writes_is_written_when_its_cancellation_arrives_or_never(
    tmp_path: Path, write: Callable[[refold.AsyncMemory], Awaitable[object]]
) -> None:
    path = tmp_path / "a.db"
    async with refold.aopen(path) as memory:
        await memory.conversation("p/other").append(said(0))
        work, other, release = write(memory), WriteLock(Path(f"{path}.lock"), 30), ExitStack()
        release.enter_context(other.held())
        asyncio.get_running_loop().call_later(0.5, release.close)
        assert await cancelled_at(work, 0.2)
        then = stored(path)
        await asyncio.sleep(0.6)
        assert stored(path) == then
        other.close()


@in_a_loop
async def test_what_waits_for_a_thread_of_the_pool_never_begins(tmp_path: Path) -> None:
    loop, busy = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))
    async with refold.aopen(tmp_path / "a.db") as memory:
        conversation = memory.conversation("t")
        blocking = loop.run_in_executor(None, busy.wait)
        for number in range(5):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await conversation.append(said(number))
        busy.set()
        await blocking
        assert await conversation.messages() == []


@in_a_loop
async def test_threads_of_the_pool_come_back(tmp_path: Path) -> None:
    loop, pool = asyncio.get_running_loop(), ThreadPoolExecutor(2)
    loop.set_default_executor(pool)
    async with refold.aopen(tmp_path / "a.db") as memory:
        conversation, chance = memory.conversation("t"), random.Random(3)
        for number in range(40):
            tasks = [asyncio.ensure_future(conversation.append(said(number))) for _ in range(4)]
            await asyncio.sleep(chance.random() * 0.004)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        async with asyncio.timeout(10):
            await asyncio.gather(*(conversation.append(said(n)) for n in range(8)))


@in_a_loop
async def test_a_task_that_is_cancelled_twice_still_waits_for_what_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refold.infrastructure.event_store.store import SQLiteLog

    writes, go_on = threading.Event(), threading.Event()
    insert = SQLiteLog._insert  # type: ignore[attr-defined,unused-ignore]

    def slow(log: SQLiteLog, *given: Any) -> Any:
        writes.set()
        go_on.wait(10)
        return insert(log, *given)

    async with refold.aopen(tmp_path / "a.db") as memory:
        conversation = memory.conversation("t")
        monkeypatch.setattr(SQLiteLog, "_insert", slow)
        task = asyncio.ensure_future(conversation.append(said(0)))
        await asyncio.to_thread(writes.wait, 10)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.01)
            assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(await conversation.messages()) == 1


@in_a_loop
async def test_a_task_group_that_fails_leaves_no_append_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.db"

    async def fails() -> None:
        await asyncio.sleep(0.003)
        raise ValueError("of the program's own")

    async with refold.aopen(path) as memory:
        conversation = memory.conversation("t")

        async def together() -> None:
            async with asyncio.TaskGroup() as group:
                for number in range(6):
                    group.create_task(conversation.append(said(number)))
                group.create_task(fails())

        for _ in range(10):
            with pytest.raises(ExceptionGroup):
                await together()
            then = stored(path)
            await asyncio.sleep(0.01)
            assert stored(path) == then


def test_a_loop_that_ends_while_an_append_waits_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    other, left = WriteLock(Path(f"{path}.lock"), 30), list[refold.AsyncMemory]()

    async def leave() -> None:
        memory = await refold.aopen(path)
        left.append(memory)
        asyncio.get_running_loop().create_task(memory.conversation("t").append(said(0)))
        await asyncio.sleep(0.05)

    with other.held():
        asyncio.run(leave())
    other.close()
    asyncio.run(left[0].close())
    assert stored(path) == []


class HeldCounter(EstimatingTokenCounter):
    """A counter that holds the first count after a compaction was requested."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.counts, self.go_on = threading.Event(), threading.Event()
        self._path = path

    def count_text(self, text: str) -> int:
        if not self.counts.is_set() and payloads(self._path, "compaction_requested"):
            self.counts.set()
            assert self.go_on.wait(10)
        return super().count_text(text)


def payloads(path: Path, name: str) -> list[bytes]:
    """The stored events of this name."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT state FROM stored_events WHERE topic=?", [name])
        return [state for (state,) in rows]


def long_talk(memory: refold.Memory) -> None:
    """A conversation for which a compaction is due."""
    conversation = memory.conversation("t")
    for number in range(200):
        conversation.append(
            {"role": "user", "content": f"Keep port {number} of the {number}th server."}
        )
        conversation.append(
            {"role": "assistant", "content": f"I decided to keep port {number}. " * 20}
        )


@in_a_loop
async def test_a_cancelled_compaction_by_code_is_recorded_and_can_be_made_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    counter = HeldCounter(path)
    options: Any = {"window": 20_000, "summariser": "extractive", "counter": counter}
    with refold.open(path) as memory:
        long_talk(memory)
    async with refold.aopen(path, **options) as memory:
        conversation = memory.conversation("t")
        task = asyncio.ensure_future(conversation.context())
        assert await asyncio.to_thread(counter.counts.wait, 10)
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()
        counter.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        then = stored(path)
        [failed] = payloads(path, "compaction_failed")
        assert b'"reason":"cancelled"' in failed
        assert stored(path) == then
        [made] = (await conversation.context()).compactions
        assert made.outcome == "performed"

"""The store of the Claude Agent SDK's sessions: every entry comes back, once."""

import asyncio
import copy
import json
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.infrastructure.transcripts.transcript_source import read_bytes
from tests.support.real_data import files, needs_data

testing: Any = pytest.importorskip("claude_agent_sdk.testing")

from refold.adapters.claude_agent import RefoldSessionStore  # noqa: E402

KEY: Any = {"project_key": "-home-ann-shop", "session_id": "s1"}


def user(uuid: str, said: str, **more: Any) -> Any:
    message = {"role": "user", "content": said}
    return {"type": "user", "uuid": uuid, "sessionId": "s1", "message": message, **more}


def answer(uuid: str, message_id: str, block: Any) -> Any:
    message = {"role": "assistant", "id": message_id, "model": "m", "content": [block]}
    return {"type": "assistant", "uuid": uuid, "sessionId": "s1", "message": message}


ENTRIES: list[Any] = [
    {"type": "ai-title", "aiTitle": "Red build", "sessionId": "s1"},
    user("u1", "Why is the build red?", timestamp="2026-02-01T10:00:00.000Z"),
    answer("a1", "m1", {"type": "text", "text": "I look."}),
    {"type": "file-history-snapshot", "snapshot": {}},
    answer("a2", "m1", {"type": "tool_use", "id": "c1", "name": "run", "input": {"x": 1}}),
    user("u2", "Go on."),
]


def test_the_store_fulfils_every_contract_of_the_sdk(tmp_path: Path) -> None:
    opened: list[refold.Memory] = []

    def make() -> RefoldSessionStore:
        opened.append(refold.open(tmp_path / f"{len(opened)}.db", telemetry=False))
        return RefoldSessionStore(opened[-1])

    asyncio.run(testing.run_session_store_conformance(make))
    assert len(opened) >= 14
    for memory in opened:
        memory.close()


def test_a_session_is_a_conversation_that_refold_reads(memory: refold.Memory) -> None:
    async def play() -> None:
        store = RefoldSessionStore(memory)
        for begin in (0, 3):
            await store.append(KEY, ENTRIES[begin : begin + 3])
            await store.append(KEY, ENTRIES[begin : begin + 3])
        # Entries without an id are not known again.
        stored = [*ENTRIES[:3], ENTRIES[0], *ENTRIES[3:], ENTRIES[3]]
        assert await store.load(KEY) == stored

    asyncio.run(play())
    (row,) = memory.conversations()
    assert row.thread_id == "-home-ann-shop/s1"
    found = memory.search("Why was the build red?")
    assert found[0].text == "Why is the build red?"
    assert found[0].at.startswith("2026-02-01T10:00:00")


def test_a_summary_may_be_changed(memory: refold.Memory) -> None:
    async def play() -> None:
        store = RefoldSessionStore(memory)
        await store.append(KEY, ENTRIES[:3])
        (first,) = await store.list_session_summaries(KEY["project_key"])
        before = copy.deepcopy(first)
        first["data"].clear()
        assert await store.list_session_summaries(KEY["project_key"]) == [before]

    asyncio.run(play())


@needs_data
@pytest.mark.parametrize(
    "path", files("claude-code-entire/*.jsonl.gz")[:4], ids=lambda path: path.name
)
def test_recorded_sessions_come_back_equal(memory: refold.Memory, path: Path) -> None:
    entries: list[Any] = []
    seen: set[Any] = set()
    for line in read_bytes(path).splitlines():
        try:
            entries.append(json.loads(line))
        except ValueError:
            continue

    async def play() -> Any:
        store = RefoldSessionStore(memory)
        for begin in range(0, len(entries), 37):
            await store.append(KEY, entries[begin : begin + 37])
        return await store.load(KEY)

    expected: list[Any] = []
    for one in entries:
        if one.get("uuid") is None or one["uuid"] not in seen:
            expected.append(one)
            seen.add(one.get("uuid"))
    assert asyncio.run(play()) == expected


def _append(path: Path, begin: int) -> int:
    async def play() -> int:
        with refold.open(path, telemetry=False) as memory:
            store = RefoldSessionStore(memory)
            await store.append(
                KEY, [user(f"u{n}", f"Question {n}") for n in range(begin, begin + 5)]
            )
            return len(await store.load(KEY) or ())

    return asyncio.run(play())


def test_two_processes_share_a_session(tmp_path: Path) -> None:
    lengths: list[int] = []
    for begin in (0, 3):
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            lengths.append(pool.submit(_append, tmp_path / "a.db", begin).result())
    assert lengths == [5, 8]


def test_stores_that_get_the_same_entries_at_once_keep_each_once(memory: refold.Memory) -> None:
    entries = [user(f"u{n}", f"Question {n}") for n in range(60)]
    begin = threading.Barrier(3)

    def play(store: RefoldSessionStore) -> None:
        async def append() -> None:
            for first in range(0, len(entries), 5):
                await store.append(KEY, entries[first : first + 5])

        begin.wait()
        asyncio.run(append())

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(play, [RefoldSessionStore(memory) for _ in range(3)]))
    assert asyncio.run(RefoldSessionStore(memory).load(KEY)) == entries


def test_appends_are_logged_at_different_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elapsing:
        """A clock that goes on while something sleeps, and by 0.9 ms when the memory reads it."""

        microseconds = 10_000

        def time_ns(self) -> int:
            return self.microseconds * 1_000

        def sleep(self, seconds: float) -> None:
            self.microseconds += int(seconds * 1_000_000)

        def now(self) -> datetime:
            self.microseconds += 900
            return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=self.microseconds)

    clock = Elapsing()
    monkeypatch.setattr("refold.adapters.claude_agent.time", clock)

    async def play(memory: refold.Memory) -> list[int]:
        store = RefoldSessionStore(memory)
        for number in range(40):
            key: Any = {"project_key": "p", "session_id": f"s{number:02}"}
            await store.append(key, [user(f"u{number}", "hi")])
        listed = await store.list_sessions("p")
        return [one["mtime"] for one in sorted(listed, key=lambda one: one["session_id"])]

    with refold.open(tmp_path / "a.db", telemetry=False, clock=clock.now) as memory:
        times = asyncio.run(play(memory))
    assert len(times) == 40
    assert sorted(set(times)) == times


def test_the_store_works_under_trio(memory: refold.Memory) -> None:
    trio = pytest.importorskip("trio")

    async def play() -> None:
        store = RefoldSessionStore(memory)
        await store.append(KEY, ENTRIES)
        assert await store.load(KEY) == ENTRIES
        assert [one["session_id"] for one in await store.list_sessions("-home-ann-shop")] == ["s1"]
        assert len(await store.list_session_summaries("-home-ann-shop")) == 1
        assert await store.list_subkeys(KEY) == []
        await store.delete(KEY)
        assert await store.load(KEY) is None

    trio.run(play)


def test_a_session_is_listed_until_all_of_it_is_erased(
    memory: refold.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    under = [{**KEY, "subpath": f"subagents/agent-{number}"} for number in range(3)]
    erase = type(memory).erase_conversation
    left = 2

    def erase_some(*given: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise refold.LogBusy("another process holds the log")
        return erase(*given)

    async def play() -> None:
        store = RefoldSessionStore(memory)
        for number, key in enumerate([KEY, *under]):
            await store.append(key, [user(f"u{number}", "My number is 12345678.")])
        with monkeypatch.context() as patch:
            patch.setattr(type(memory), "erase_conversation", erase_some)
            with pytest.raises(refold.LogBusy):
                await store.delete(KEY)
        for one in await store.list_sessions(KEY["project_key"]):
            await store.delete({**KEY, "session_id": one["session_id"]})
        assert [await store.load(key) for key in (KEY, *under)] == [None] * 4

    asyncio.run(play())


def test_odd_keys_stay_apart(memory: refold.Memory) -> None:
    lists = RefoldSessionStore(memory)

    async def play() -> None:
        odd = ["a/b", "a", "a%2Fb", "x" * 300, "x" * 301, " ", "ünï"]
        for number, project in enumerate(odd):
            key: Any = {"project_key": project, "session_id": "s/1"}
            await lists.append(key, [user(f"u{number}", "hi")])
            under: Any = {**key, "subpath": "subagents/a"}
            await lists.append(under, [user(f"v{number}", "ho")])
        for number, project in enumerate(odd):
            again: Any = {"project_key": project, "session_id": "s/1"}
            assert [one.get("uuid") for one in await lists.load(again) or ()] == [f"u{number}"]
            assert [one["session_id"] for one in await lists.list_sessions(project)] == ["s/1"]
            assert await lists.list_subkeys(again) == ["subagents/a"]

    asyncio.run(play())


def test_what_the_application_has_seen_is_stored(
    memory: refold.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refold.adapters.claude_agent._PROMPT", 30)

    async def play() -> None:
        store = RefoldSessionStore(memory)
        adding = asyncio.ensure_future(store.append(KEY, ENTRIES))
        await asyncio.sleep(0)
        assert len(memory.conversation("-home-ann-shop/s1").messages()) == 3
        await adding

    asyncio.run(play())


def test_a_long_call_does_not_hold_the_event_loop(
    memory: refold.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refold.adapters.claude_agent._PROMPT", 0.01)
    ended = threading.Event()

    class Slow(RefoldSessionStore):
        def _sessions(self, project_key: str) -> list[dict[str, Any]]:
            assert ended.wait(30)
            raise OSError(project_key)

    async def play() -> None:
        asyncio.get_running_loop().call_soon(ended.set)
        with pytest.raises(OSError, match="-home-ann-shop"):
            await Slow(memory).list_sessions("-home-ann-shop")

    asyncio.run(play())


def _refuse(*_: Any) -> Any:
    raise AssertionError("a session was read")


def test_sessions_are_listed_without_reading_them(
    memory: refold.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        store = RefoldSessionStore(memory)
        keys: list[Any] = [{**KEY, "session_id": f"s{number}"} for number in range(3)]
        for key in keys:
            await store.append(key, ENTRIES)
        summaries = await store.list_session_summaries("-home-ann-shop")
        with monkeypatch.context() as patch:
            patch.setattr("refold.application.conversation.thread_log.ThreadLog._newest", _refuse)
            listed = await store.list_sessions("-home-ann-shop")
            assert await store.list_session_summaries("-home-ann-shop") == summaries
        assert [one["session_id"] for one in listed] == ["s0", "s1", "s2"]
        assert [one["mtime"] for one in listed] == [one["mtime"] for one in summaries]
        await store.append(keys[1], [{"type": "custom-title", "customTitle": "Green"}])
        again = await store.list_session_summaries("-home-ann-shop")
        assert again == await RefoldSessionStore(memory).list_session_summaries("-home-ann-shop")
        assert [one["data"].get("custom_title") for one in again] == [None, "Green", None]

    asyncio.run(play())


def test_a_summary_forgets_what_another_process_has_deleted(tmp_path: Path) -> None:
    async def play(one: RefoldSessionStore, other: RefoldSessionStore) -> None:
        await one.append(KEY, [user("u1", "My number is 12345678.")])
        assert "12345678" in str(await one.list_session_summaries("-home-ann-shop"))
        await other.delete(KEY)
        await other.append(KEY, [user(f"v{number}", "Hello.") for number in range(3)])
        assert "Hello." in str(found := await one.list_session_summaries("-home-ann-shop"))
        assert "12345678" not in str(found)

    with (
        refold.open(tmp_path / "a.db", telemetry=False) as first,
        refold.open(tmp_path / "a.db", telemetry=False) as second,
    ):
        asyncio.run(play(RefoldSessionStore(first), RefoldSessionStore(second)))

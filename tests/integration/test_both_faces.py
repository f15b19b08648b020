"""One scene, played on a real log through both faces: equal answers, equal errors, equal events in the log."""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest

import refold
from tests.support.two_faces import Used

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
REPLY: dict[str, Any] = {
    "role": "assistant",
    "content": [
        {"type": "tool_use", "id": "call", "name": "recall_memory", "input": {"query": "7"}}
    ],
}
RECORDED = [refold.RecordedMessage(message=refold.Message(role="user", content="old"), key="1")]
UNUSED = {"Toolbox.for_anthropic": "needs an SDK; test_anthropic_tools plays it through both faces"}


def options() -> dict[str, Any]:
    ticks, ids = count(), count()
    return {
        "window": 4_000,
        "background": False,
        "scrub_megabytes": 0,  # Whether its file is there yet is chance.
        "clock": lambda: NOON + timedelta(seconds=next(ticks)),
        "new_id": lambda: f"{next(ids):032x}",
    }


def talk(number: int) -> list[dict[str, object]]:
    said = f"the port of service {number} is {5400 + number}. " + "word " * 60
    return [{"role": role, "content": f"{role}: {said}"} for role in ("user", "assistant")]


async def append_and_compact(used: Used, conversation: Any) -> None:
    for number in range(14):
        await used.ask(conversation, "append", talk(number), key=[f"{number}a", f"{number}b"])
        await used.ask(conversation, "context", system="You help.", tools=conversation.tools())
    await used.ask(conversation, "append", talk(0), key=["0a", "0b"])
    await used.ask(conversation, "append", {"role": "nobody"})
    await used.ask(conversation, "append", talk(1), expected_version=1)
    await used.ask(conversation, "append_recorded", RECORDED)
    await used.ask(conversation, "knows", RECORDED[0])
    await used.ask(conversation, "select_known", RECORDED)
    await used.ask(conversation, "pin", 3)
    pin = await used.ask(conversation, "pin", "keep this")
    await used.ask(conversation, "pins")
    await used.ask(conversation, "compact", focus="ports", force=True, keep_last=2)
    await used.ask(conversation, "compact", target=-1)
    await used.ask(conversation, "unpin", pin)
    await edit(used, conversation)
    await used.ask(conversation, "revert_compaction", "to try")
    await used.ask(conversation, "context")
    await used.ask(conversation, "label", "A name")
    await used.ask(conversation, "label", " ")
    await used.within(await used.ask(conversation, "turn", 5))
    await used.ask(conversation, "turn", -1)


async def edit(used: Used, conversation: Any) -> None:
    tools = conversation.tools(edits="propose", author="planner")
    for number in range(3):
        await used.ask(tools, "call", "remember", {"text": f"Port {number} is.", "kind": "fact"})
    await used.ask(tools, "call", "forget", {"target": "0"})
    noted, refused, *_ = await used.ask(conversation, "proposals")
    await used.ask(conversation, "allow", noted.edit_id, by="person")
    await used.ask(conversation, "allow", noted.edit_id)
    await used.ask(conversation, "allow", "none")
    await used.ask(conversation, "refuse", refused.edit_id, "no")
    await used.ask(conversation, "allow", refused.edit_id)
    await used.ask(conversation, "withdraw_note", noted.edit_id)
    await used.ask(conversation, "withdraw_note", "none")
    await used.ask(conversation, "tools", edits="other")
    await used.ask(conversation.tools(edits="allow"), "call", "pin", {"message": "5"})


async def look_back(used: Used, conversation: Any) -> None:
    context = await used.ask(conversation, "context")
    for name in (
        "messages",
        "iter_messages",
        "summaries",
        "compactions",
        "topics",
        "notes",
        "row",
        "size_history",
        "message_strip",
        "topics",
        "notes",
        "owner",
        "version",
    ):
        await used.ask(conversation, name)
    await used.ask(conversation, "iter_messages", 2, -2)
    await used.ask(conversation, "iter_messages", "2")
    await used.ask(conversation, "context", at=5)
    await used.ask(conversation, "context", position=7)
    await used.ask(conversation, "context", at=5, position=7)
    await used.ask(conversation, "diff", 10, 50)
    await used.ask(conversation, "diff", 10, 5_000)
    for form in ("jsonl", "anthropic", "events", "other"):
        await used.ask(conversation, "export", form)
    await used.ask(conversation, "explain", 2, 9, at=30)
    await used.ask(conversation, "size_history", at=30, most=3)
    await used.ask(conversation, "message_strip", at=30, most=3)
    await used.ask(conversation, "why", "service 7")
    await used.ask(conversation, "why", "service 7", at=30)
    await used.ask(conversation, "why", " ")
    await used.ask(conversation, "fate_history", 2)
    await used.ask(conversation, "fate_history", 4_000)
    await used.ask(conversation, "facts", 2, 9)
    await used.ask(conversation, "facts", rules="none")
    await used.ask(conversation, "compare_rules")
    await used.ask(conversation, "read", 4)
    await used.ask(conversation, "read", 4_000)
    await used.ask(conversation, "read_part", 4, 2, 100)
    await used.ask(conversation, "recall", "port of service 7", limit=2)
    await used.ask(conversation, "recall", "port", limt=2)
    await used.ask(conversation, "query", text="service 7", limit=1)
    await used.ask(conversation, "request_parts", context)
    await used.ask(conversation, "cache_report")
    await used.ask(conversation, "cache_report", at=5)
    await used.ask(conversation, "shared_with", 3)
    for summary in await used.ask(conversation, "summaries"):
        await used.ask(conversation, "expand", summary.summary_id, limit=2)
        await used.ask(conversation, "summary_sources", summary.summary_id, 0, 9)
    await used.ask(conversation, "expand", "none")
    await used.ask(conversation, "summary_sources", "none")
    await used.ask(conversation, "ledger")


async def call_tools(used: Used, face: Any, **which: Any) -> None:
    tools = await used.ask(face, "tools", **which)
    used.answers.append(("all", (len(tools), list(tools) and tools["recall_memory"].name)))
    await used.ask(tools, "definitions")
    await used.ask(tools, "names")
    await used.ask(tools, "call", "recall_memory", {"query": "port of service 9"})
    await used.ask(tools, "call", "no_such_tool", {})
    await used.ask(tools, "result_for", REPLY["content"][0])
    await used.ask(tools, "results_for", REPLY)
    await used.ask(tools, "result_for", {"type": "tool_use"})


async def fork(used: Used, conversation: Any) -> None:
    fork = await used.ask(conversation, "fork", position=9, thread_id="fork")
    await used.ask(fork, "append", talk(30))
    await used.ask(fork, "context")
    await used.ask(conversation, "fork", thread_id="fork")


async def erase(used: Used, memory: Any, conversation: Any) -> None:
    await used.ask(conversation, "erase", [1, 2], "asked to")
    await used.ask(conversation, "erase", 4_000)
    await used.ask(conversation, "context")
    theirs = await used.ask(memory, "conversation", "theirs", owner="ann")
    await used.ask(theirs, "append", talk(1))
    other = memory.conversation("theirs", owner="bob")
    for name in ("context", "compact", "version", "fork", "messages", "iter_messages"):
        await used.ask(other, name)
    await used.ask(other, "erase", 0)
    await used.ask(memory, "erase_owner", "ann", "asked to")
    await used.ask(memory, "erase_conversation", "fork")
    await used.ask(memory, "erase_conversation", "never")
    await used.ask(memory, "finish_erasures", wait=1)
    await used.ask(memory, "conversations")
    await used.ask(memory, "verify")


def note_tools(db: Any, event: refold.FollowedEvent) -> None:
    db["seen"].insert({"name": event.name, "blocks": len(event.blocks)})


async def look_after(used: Used, memory: Any, folder: Path) -> None:
    for name in (
        "conversations",
        "conversations_page",
        "iter_conversations",
        "notes",
        "notes_status",
        "write_notes",
        "index",
        "embed",
    ):
        await used.ask(memory, name)
    await used.ask(memory, "search_notes", "port")
    await used.ask(memory, "embedding")
    await used.ask(memory, "search", "port of service 8", limit=2)
    await used.ask(memory, "search", "port", scope="owner")
    [*_, summary] = await used.ask(memory.conversation("t"), "summaries")
    await used.ask(memory, "expand", summary.summary_id)
    await used.ask(memory, "expand", "none")
    await used.ask(memory, "verify", repair=True)
    follower = await used.ask(memory, "follow", "tools", note_tools, into=folder / "own.db")
    for name in (
        "position",
        "update",
        "rebuild",
        "position",
        "name",
        "version",
        "place",
        "has_remains",
        "stop",
    ):
        await used.ask(follower, name)
    await used.ask(follower, "start", 0)
    await used.ask(follower, "start", 60)
    await used.ask(follower, "close")
    await used.ask(memory, "follow", "no name", note_tools, into=folder / "own.db")
    await used.ask(memory, "anchor", folder / "anchor")
    await used.ask(memory, "anchor", folder / "anchor")
    await used.ask(memory, "replay")
    await used.ask(memory, "backup", folder / "copy.db")
    await used.ask(memory, "backup", folder / "copy.db")
    await used.ask(memory, "salvage", folder / "salvaged.db")
    await used.ask(memory, "compress", keep=-1)
    sizes = await used.ask(memory, "stats")
    # The anchor grows with the moments at which it was written.
    files = [file for file in sizes.files if file.name != "anchor"]
    used.answers[-1] = ("Memory.stats", (sizes.conversations, files))


async def scene(opened: Callable[..., Any], folder: Path) -> Used:
    used = Used()
    memory = opened(folder / "a.db", **options())
    conversation = await used.ask(memory, "conversation", "t")
    await used.ask(memory, "conversation", " ")
    await append_and_compact(used, conversation)
    await look_back(used, conversation)
    await call_tools(used, conversation, scope="all")
    await call_tools(used, memory, thread_id="t")
    await fork(used, conversation)
    await look_after(used, memory, folder)
    used.answers.append(("log", events_in(folder / "a.db")))
    await erase(
        used, memory, conversation
    )  # The last: what it leaves in the file is made by chance.
    compressed = await used.ask(memory, "compress")
    used.answers[-1] = ("Memory.compress", compressed.events)  # Sizes depend on chance as well.
    await used.ask(memory, "drain", 5)
    await used.ask(memory, "close", 0)
    await used.ask(memory, "close")
    return used


def events_in(path: Path) -> list[tuple[object, ...]]:
    """Every event in the file, without the salt and the hashes in its first line."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT originator_id, originator_version, topic, state FROM stored_events ORDER BY 1, 2"
        ).fetchall()
    return [(*place, *_without_chance(state)) for *place, state in rows]


def _without_chance(state: bytes) -> tuple[list[bytes], bytes]:
    head, _, body = state.partition(b"\n")
    return head.split()[:3], body


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Used, Used]:
    """The scene through the face that blocks and the other; in one place, for answers name files."""
    folder = tmp_path_factory.mktemp("both") / "log"

    def play(opened: Callable[..., Any]) -> Used:
        folder.mkdir()
        used = asyncio.run(scene(opened, folder))
        shutil.rmtree(folder)
        return used

    return play(refold.open), play(refold.aopen)


def test_the_answers_and_the_log_are_equal(played: tuple[Used, Used]) -> None:
    for answer, same in zip(played[0].answers, played[1].answers, strict=True):
        assert answer == same


def test_the_scene_asks_every_public_method_and_most_of_it_works(
    played: tuple[Used, Used],
) -> None:
    used, _ = played
    public = {
        f"{kind.__name__.removeprefix('Async')}.{name}"
        for kind in (
            refold.AsyncMemory,
            refold.AsyncConversationMemory,
            refold.AsyncToolbox,
            refold.AsyncFollower,
        )
        for name in dir(kind)
        if not name.startswith("_")
    }
    assert public - used.asked == set(UNUSED)
    assert public - used.worked == set(UNUSED)
    rows = next(
        answer for where, answer in used.answers if where == "ConversationMemory.compactions"
    )
    assert {row.trigger for row in cast(Any, rows)} == {"size", "manual"}

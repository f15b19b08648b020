"""Conversations of several people in one log: whose each is, and that a stranger gets nothing of it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import refold

Work = Callable[[refold.ConversationMemory], object]
REFUSED: dict[str, Work] = {
    "append": lambda conversation: conversation.append(said("mine")),
    "context": lambda conversation: conversation.context(),
    "context at": lambda conversation: conversation.context(at=1),
    "compact": lambda conversation: conversation.compact(),
    "messages": lambda conversation: conversation.messages(),
    "read": lambda conversation: conversation.read(0),
    "recall": lambda conversation: conversation.recall("secret"),
    "query": lambda conversation: conversation.query(),
    "export": lambda conversation: list(conversation.export()),
    "notes": lambda conversation: conversation.notes(),
    "topics": lambda conversation: conversation.topics(),
    "summaries": lambda conversation: conversation.summaries(),
    "facts": lambda conversation: conversation.facts(),
    "compare_rules": lambda conversation: conversation.compare_rules(),
    "summary_sources": lambda conversation: conversation.summary_sources("any"),
    "ledger": lambda conversation: conversation.ledger(),
    "why": lambda conversation: conversation.why("secret"),
    "fate_history": lambda conversation: conversation.fate_history(0),
    "explain": lambda conversation: conversation.explain(),
    "diff": lambda conversation: conversation.diff(1, 1),
    "tools": lambda conversation: conversation.tools(),
    "fork": lambda conversation: conversation.fork(),
    "erase": lambda conversation: conversation.erase(0),
    "label": lambda conversation: conversation.label("mine"),
    "pin": lambda conversation: conversation.pin(0),
    "owner": lambda conversation: conversation.owner,
    "version": lambda conversation: conversation.version,
}


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


def test_the_log_keeps_whose_a_conversation_is(path: Path) -> None:
    with refold.open(path) as memory:
        conversation = memory.conversation("monday", owner="user-7")
        assert conversation.owner == "user-7"
        conversation.append([said("hello"), said("hi", "assistant")])
        memory.conversation("nobodys").append(said("hello"))
        assert conversation.version == 2, "no commit and no event of its own"
    with refold.open(path) as memory:
        assert memory.conversation("monday").owner == "user-7"
        assert memory.conversation("nobodys").owner is None
        assert [row.thread_id for row in memory.conversations(owner="user-7")] == ["monday"]
        assert memory.conversation("monday").fork(thread_id="copy").owner == "user-7"
        assert memory.verify().ok


@pytest.mark.parametrize("work", REFUSED.values(), ids=REFUSED)
def test_another_owner_is_refused_whatever_they_do(path: Path, work: Work) -> None:
    with refold.open(path) as memory:
        memory.conversation("monday", owner="user-7").append(said("secret"))
        stranger = memory.conversation("monday", owner="user-8")
        with pytest.raises(refold.OwnerConflict) as refused:
            work(stranger)
        assert "user-" not in str(refused.value), "it may be told to the wrong one"
        assert memory.conversation("monday").version == 1


@pytest.mark.parametrize("work", REFUSED.values(), ids=REFUSED)
def test_asyncio_refuses_the_same(path: Path, work: Work, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.id
    if name == "version":
        pytest.skip("has no twin for asyncio")

    async def refused() -> None:
        async with refold.aopen(path) as memory:
            await memory.conversation("monday", owner="user-7").append(said("secret"))
            stranger: Any = memory.conversation("monday", owner="user-8")
            with pytest.raises(refold.OwnerConflict):
                await _awaited(name, work, stranger)

    asyncio.run(refused())


async def _awaited(name: str, work: Work, stranger: Any) -> None:
    match name:
        case "tools":
            told = await stranger.tools().call("recall_memory", {"query": "secret"})
            assert told.is_error
            raise refold.OwnerConflict("monday")
        case "owner":
            await stranger.owner()
        case "export":
            await stranger.export()
        case _:
            done: Any = work(stranger)
            await done


@pytest.mark.parametrize("owner", ["", " ", "a\nb", "x" * 501, 7])
def test_an_owner_that_cannot_be_is_refused(path: Path, owner: Any) -> None:
    with refold.open(path) as memory:
        with pytest.raises(refold.InvalidOwner):
            memory.conversation("monday", owner=owner)
        with pytest.raises(refold.InvalidOwner):
            memory.conversation("monday").append(said("x"), owner=owner)
        assert memory.conversations() == []


def test_a_conversation_that_was_nobodys_can_be_given_an_owner(path: Path) -> None:
    with refold.open(path) as memory:
        memory.conversation("old").append([said("hello"), said("hi", "assistant")])
        memory.conversation("old", owner="user-7").append(said("it is me"))
        assert memory.conversation("old").owner == "user-7"
        with pytest.raises(refold.OwnerConflict):
            memory.conversation("old", owner="user-8").context()


def test_what_an_owner_wrote_goes_although_each_message_was_erased_before(path: Path) -> None:
    with refold.open(path) as memory:
        conversation = memory.conversation("t", owner="user-7")
        conversation.append({"role": "user", "content": "Hello"})
        conversation.append({"role": "assistant", "content": "Hi"})
        conversation.label("quokka label")
        conversation.pin("quokka pin")
        tools = conversation.tools(edits="allow")
        tools.call("remember", {"text": "The quokka note is one of the owner.", "kind": "fact"})
        waiting = conversation.tools(edits="propose")
        waiting.call("remember", {"text": "The quokka proposal is open.", "kind": "fact"})
        conversation.erase([0, 1])
        assert "quokka" in str(list(conversation.export("events")))
        assert memory.erase_owner("user-7").removed
        assert "quokka" not in str(list(conversation.export("events")))
        assert list(memory.notes()) == []
        version = conversation.version
        assert not memory.erase_owner("user-7").removed
        assert conversation.version == version
        assert memory.verify().ok
    assert not [
        file for file in path.parent.glob(f"{path.stem}*") if b"quokka" in file.read_bytes()
    ]

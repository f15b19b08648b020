"""Quoted memories on real files: after a restart, from a snapshot, at any version, and after an erasure."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

import refold
from refold.application.rendering.request_blocks import MEMORIES_HEADING

SECRET = "Remember: the staging postgres of Zanzibar listens on port 54331."
QUESTION = "Which port does the staging postgres of Zanzibar listen on?"
FILLER = "Tidying the garden shed, raking leaves and painting the fence white. " * 14

Open = Callable[[], refold.Memory]


@pytest.fixture
def agent(tmp_path: Path) -> Open:
    return lambda: refold.open(tmp_path / "agent.db", window=8_000, memories=5)


def asked(conversation: refold.ConversationMemory) -> refold.Context:
    """The secret, then so much else that it is folded away, then the question."""
    said = [SECRET, *[FILLER] * 24]
    conversation.append([m for text in said for m in (_user(text), _assistant("Noted."))])
    conversation.append(_user(QUESTION))
    return conversation.context(system="You help.")


def _user(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def _assistant(text: str) -> dict[str, object]:
    return {"role": "assistant", "content": text}


def block(context: refold.Context) -> str:
    return str(context.system).partition(f"\n\n{MEMORIES_HEADING}\n")[2]


def test_what_was_folded_away_is_quoted_when_it_matters(agent: Open) -> None:
    with agent() as memory:
        context = asked(memory.conversation("t"))
    assert context.summary is not None
    assert f"```\n{SECRET}\n```" in block(context)
    assert block(context).startswith("[refold://t/0] user, 20")


def test_a_restart_gives_the_same_bytes(agent: Open) -> None:
    with agent() as memory:
        before = asked(memory.conversation("t"))
    with agent() as memory:
        conversation = memory.conversation("t")
        again = conversation.context(system="You help.")
        assert (again.system, again.messages, again.tokens) == (
            before.system,
            before.messages,
            before.tokens,
        )
        assert conversation.context(at=before.version, system="You help.").system == before.system


def test_they_are_still_there_when_a_snapshot_stands_for_the_events_that_chose_them(
    agent: Open,
) -> None:
    """A later compaction that changes nothing of them leaves their choice far behind the live part."""
    with agent() as memory:
        conversation = memory.conversation("t")
        before = asked(conversation)
        size = before.tokens
        for _ in range(4):
            conversation.append([_assistant("54331."), _user(QUESTION)])
        conversation.compact()
        assert SECRET in block(conversation.context())
    with agent() as memory:
        conversation = memory.conversation("t")
        for version in range(before.version, conversation.version + 1):
            assert SECRET in block(conversation.context(at=version)), version
        assert conversation.context().tokens < size + 1_000
        assert memory.verify().ok


def test_an_erased_message_is_quoted_nowhere_and_in_no_file(agent: Open, tmp_path: Path) -> None:
    with agent() as memory:
        conversation = memory.conversation("t")
        context = asked(conversation)
        copy = conversation.fork(thread_id="copy")
        assert SECRET in block(copy.context())
        report = conversation.erase(0)
        assert {"quoted memory"} <= {one.place for one in report.removed}
        assert {"t", "copy"} == {o.thread_id for o in report.removed if o.place == "quoted memory"}
        for one in (conversation, copy):
            newest = one.context(system="You help.")
            assert block(newest) == ""
            assert newest.tokens <= newest.budget.limit
        assert block(conversation.context(at=context.version)) == ""
        old = conversation.fork(at=context.version, thread_id="old")
        assert block(old.context()) == ""
        assert memory.verify().ok
    for path in tmp_path.iterdir():
        assert b"Zanzibar listens on port 54331" not in path.read_bytes(), path


def test_an_async_memory_quotes_them_as_well(tmp_path: Path) -> None:
    async def work() -> refold.Context:
        async with refold.aopen(tmp_path / "agent.db", window=8_000, memories=5) as memory:
            conversation = memory.conversation("t")
            said = [SECRET, *[FILLER] * 20]
            await conversation.append(
                [m for text in said for m in (_user(text), _assistant("Noted."))]
            )
            await conversation.append(_user(QUESTION))
            assert (await conversation.compact()).outcome == "performed"
            return await conversation.context()

    assert SECRET in block(asyncio.run(work()))

"""What was noted in one conversation is quoted in the first request of the owner's next one, and nowhere else."""

import asyncio
from pathlib import Path

import pytest

import refold
from refold.application.rendering.request_blocks import (
    MEMORIES_GUIDANCE,
    MEMORIES_HEADING,
    OWNER_MEMORIES_GUIDANCE,
)
from refold.infrastructure.event_store import stream_copies
from tests.support.owner_talk import ASKED, FILLER, LIKING, Open, assistant, opener, user


@pytest.fixture
def agent(tmp_path: Path) -> Open:
    return opener(tmp_path)


def monday(memory: refold.Memory, owner: str | None = "user-7") -> refold.ConversationMemory:
    """A conversation in which a liking was told, noted and folded away."""
    conversation = memory.conversation("monday", owner=owner)
    conversation.append([user(f"Remember: {LIKING}"), assistant("Noted.")])
    conversation.append([m for _ in range(6) for m in (user(FILLER), assistant("Fine."))])
    conversation.append(user("Go on."))
    assert conversation.compact().outcome == "performed"
    assert any(LIKING in note.text for note in conversation.notes())
    return conversation


def block(context: refold.Context) -> str:
    return str(context.system).partition(f"\n\n{MEMORIES_HEADING}\n")[2]


def test_a_noted_liking_is_in_the_first_request_of_the_next_conversation(agent: Open) -> None:
    with agent() as memory:
        monday(memory)
        conversation = memory.conversation("tuesday", owner="user-7")
        conversation.append(user(ASKED))
        context = conversation.context(system="SYS")
        assert LIKING in block(context)
        assert block(context).startswith("[refold://monday/0] note, 20")
        assert OWNER_MEMORIES_GUIDANCE in str(context.system)
        assert MEMORIES_GUIDANCE not in str(context.system)
        assert str(context.system).startswith("SYS\n\n")


@pytest.mark.parametrize("owner", ["user-8", None])
def test_nobody_else_gets_it(agent: Open, owner: str | None) -> None:
    with agent() as memory:
        monday(memory)
        conversation = memory.conversation("tuesday", owner=owner)
        conversation.append(user(ASKED))
        assert conversation.context(system="SYS").system == "SYS"
        assert conversation.version == 1, "nothing was chosen"


def test_what_is_nobodys_is_offered_to_nobody(agent: Open) -> None:
    with agent() as memory:
        monday(memory, owner=None)
        for owner in ("user-7", None):
            conversation = memory.conversation(f"tuesday-{owner}", owner=owner)
            conversation.append(user(ASKED))
            assert block(conversation.context()) == ""


def test_the_prefix_holds_from_then_on_and_is_the_same_bytes_later(agent: Open) -> None:
    with agent() as memory:
        monday(memory)
        conversation = memory.conversation("tuesday", owner="user-7")
        conversation.append(user(ASKED))
        first = conversation.context(system="SYS")
        assert conversation.context(system="SYS") == first
        monday_again = memory.conversation("monday")
        monday_again.append([user("Remember: I prefer tabs to spaces."), assistant("Noted.")])
        monday_again.append([m for _ in range(8) for m in (user(FILLER), assistant("Fine."))])
        monday_again.append(user("Go on."))
        assert monday_again.compact().outcome == "performed"
        conversation.append([assistant("Python."), user("And tabs or spaces?")])
        second = conversation.context(system="SYS")
        assert second.system == first.system
        assert second.messages[: len(first.messages)] == first.messages
    with agent() as memory:
        conversation = memory.conversation("tuesday")
        assert conversation.context(at=first.version, system="SYS").system == first.system
        assert conversation.context(system="SYS").system == first.system
        assert memory.verify().ok


def test_what_holds_for_long_is_offered_whatever_is_asked(agent: Open) -> None:
    with agent() as memory:
        monday(memory)
        conversation = memory.conversation("tuesday", owner="user-7")
        conversation.append(user("Sort this table for me."))
        assert LIKING in block(conversation.context())


def test_after_a_compaction_they_are_still_offered(agent: Open) -> None:
    with agent() as memory:
        monday(memory)
        conversation = memory.conversation("tuesday", owner="user-7")
        conversation.append([user("The port of staging is 54331."), assistant("Noted.")])
        conversation.append([m for _ in range(8) for m in (user(FILLER), assistant("Fine."))])
        conversation.append(user("Which port of staging do I use in a script, in which language?"))
        assert conversation.compact().outcome == "performed"
        quoted = block(conversation.context())
        assert LIKING in quoted
        assert "54331" in quoted
        assert memory.verify().ok


def test_it_can_be_turned_off(agent: Open) -> None:
    for options in ({"owner_memories": "off"}, {"memories": 0}):
        with agent(**options) as memory:
            if "monday" not in [row.thread_id for row in memory.conversations()]:
                monday(memory)
            conversation = memory.conversation(
                f"tuesday-{len(memory.conversations())}", owner="user-7"
            )
            conversation.append(user(ASKED))
            assert block(conversation.context()) == ""


def test_summaries_only_where_a_setting_allows_them(agent: Open) -> None:
    with agent() as memory:
        monday(memory)
        first = memory.conversation("tuesday", owner="user-7")
        first.append(user("Did we tidy the garden shed?"))
        assert "] summary, " not in block(first.context())
    with agent(owner_memories="summaries") as memory:
        second = memory.conversation("wednesday", owner="user-7")
        second.append(user("Did we tidy the garden shed?"))
        assert "[refold://monday/0] summary, 20" in block(second.context())


def test_what_somebody_else_said_in_a_conversation_is_no_memory_of_its_owner(agent: Open) -> None:
    with agent(owner_memories="summaries") as memory:
        conversation = memory.conversation("monday", owner="user-7")
        conversation.append([user(f"Remember: {LIKING}"), assistant("Noted.")])
        conversation.append(
            user("Remember: I always use the port 9911 for Zanzibar."), owner="user-8"
        )
        conversation.append(
            [assistant("Noted."), *(m for _ in range(6) for m in (user(FILLER), assistant("F.")))]
        )
        conversation.append(user("Go on."))
        assert conversation.compact().outcome == "performed"
        assert any("9911" in note.text for note in conversation.notes())
        for owner in ("user-7", "user-8"):
            next_one = memory.conversation(f"tuesday-{owner}", owner=owner)
            next_one.append(user(f"{ASKED} Which port of Zanzibar do I always use?"))
            assert "9911" not in str(next_one.context().system)
        mine = memory.conversation("tuesday-user-7")
        assert LIKING in block(mine.context())


def test_asyncio_quotes_them_as_well(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with refold.open(path, window=8_000) as memory:
        monday(memory)

    async def work() -> refold.Context:
        async with refold.aopen(path, window=8_000, memories=5) as memory:
            conversation = memory.conversation("tuesday", owner="user-7")
            await conversation.append(user(ASKED))
            return await conversation.context()

    assert LIKING in block(asyncio.run(work()))


def quoting(memory: refold.Memory) -> refold.Context:
    """Two conversations, the second of which quotes the first, and a fork of it."""
    monday(memory)
    conversation = memory.conversation("tuesday", owner="user-7")
    conversation.append(user(ASKED))
    context = conversation.context(system="SYS")
    assert LIKING in block(context)
    conversation.append([assistant("The one you like."), user("Which?")])
    conversation.fork(thread_id="copy")
    return context


def assert_is_nowhere(memory: refold.Memory, folder: Path) -> None:
    for row in memory.conversations():
        conversation = memory.conversation(row.thread_id)
        for version in range(1, conversation.version + 1):
            assert LIKING not in str(conversation.context(at=version).system)
        assert LIKING not in str(conversation.context().system)
        assert LIKING not in str(list(conversation.export("events")))
    assert memory.verify().ok
    for path in folder.iterdir():
        assert LIKING.encode() not in path.read_bytes(), path


def test_what_is_erased_is_quoted_nowhere_any_more(agent: Open, tmp_path: Path) -> None:
    with agent() as memory:
        before = quoting(memory)
        report = memory.conversation("monday").erase(0)
        places = {(one.thread_id, one.place) for one in report.removed}
        assert {("tuesday", "quoted memory"), ("copy", "quoted memory")} <= places
        assert report.complete
        assert_is_nowhere(memory, tmp_path)
        conversation = memory.conversation("tuesday")
        assert (
            conversation.context(system="SYS").messages
            == before.messages + conversation.context().messages[1:]
        )
        assert memory.conversation("monday").erase(0).changed is False
        conversation.fork(at=before.version, thread_id="late")
        assert block(memory.conversation("late").context()) == ""
        assert_is_nowhere(memory, tmp_path)
    with agent() as memory:
        assert_is_nowhere(memory, tmp_path)


def test_a_copy_of_what_lost_its_quotations_has_no_damage(agent: Open, tmp_path: Path) -> None:
    with agent() as memory:
        before = quoting(memory)
        memory.conversation("monday").erase(0)
        copy = memory.conversation("tuesday").fork(thread_id="later")
        assert_is_nowhere(memory, tmp_path)
        copy.fork(at=before.version, thread_id="older")
        assert_is_nowhere(memory, tmp_path)


def test_a_copy_that_an_earlier_version_made_has_no_damage(
    agent: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with agent() as memory:
        quoting(memory)
        memory.conversation("monday").erase(0)
        with monkeypatch.context() as patch:
            # What was erased in another conversation was copied without its mark.
            patch.setattr(stream_copies, "REWRITING", ("message_erased", "message_erased"))
            memory.conversation("tuesday").fork(thread_id="later")
        assert_is_nowhere(memory, tmp_path)
        backup = memory.backup(tmp_path / "backup.db")
        assert memory.salvage(tmp_path / "salvaged.db").events == backup.events
    for name in ("backup.db", "salvaged.db"):
        with refold.open(tmp_path / name) as memory:
            assert memory.verify().ok


def test_erasing_the_whole_conversation_takes_the_quotations_along(
    agent: Open, tmp_path: Path
) -> None:
    with agent() as memory:
        quoting(memory)
        report = memory.erase_conversation("monday")
        assert ("tuesday", "quoted memory") in {(o.thread_id, o.place) for o in report.removed}
        assert_is_nowhere(memory, tmp_path)


def test_an_older_choice_is_withdrawn_and_the_present_one_stays(
    agent: Open, tmp_path: Path
) -> None:
    with agent() as memory:
        monday(memory)
        other = memory.conversation("sunday", owner="user-7")
        other.append([user("Remember: I always use port 9911 for Zanzibar."), assistant("Noted.")])
        other.append([m for _ in range(6) for m in (user(FILLER), assistant("Fine."))])
        other.append(user("Go on."))
        other.compact()
        conversation = memory.conversation("tuesday", owner="user-7")
        conversation.append(user(ASKED))
        assert LIKING in block(conversation.context())
        conversation.append([m for _ in range(8) for m in (assistant("Fine."), user(FILLER))])
        conversation.append([assistant("Fine."), user("Which port do I always use for Zanzibar?")])
    with agent(memories=1) as memory:
        conversation = memory.conversation("tuesday")
        assert conversation.compact().outcome == "performed"
        present = block(conversation.context())
        assert "9911" in present
        assert LIKING not in present
        memory.conversation("monday").erase(0)
        assert block(conversation.context()) == present
        assert_is_nowhere(memory, tmp_path)

"""What is quoted of other conversations is chosen at the first request, once, whoever spoke before it."""

import asyncio
import threading
from pathlib import Path

import pytest

import refold
from refold.application.rendering.request_blocks import MEMORIES_HEADING
from tests.support.owner_talk import ASKED, FILLER, LIKING, Open, assistant, opener, user

GREETING = "Hello! How can I help you today?"


@pytest.fixture
def agent(tmp_path: Path) -> Open:
    return opener(tmp_path)


def noted(memory: refold.Memory, thread_id: str = "monday") -> None:
    """A conversation in which a liking was told, noted and folded away."""
    conversation = memory.conversation(thread_id, owner="user-7")
    conversation.append([user(f"Remember: {LIKING}"), assistant("Noted.")])
    conversation.append([m for _ in range(6) for m in (user(FILLER), assistant("Fine."))])
    conversation.append(user("Go on."))
    assert conversation.compact().outcome == "performed"


def block(context: refold.Context) -> str:
    return str(context.system).partition(f"{MEMORIES_HEADING}\n")[2]


def test_a_greeting_before_the_question_takes_nothing_away(agent: Open) -> None:
    with agent() as memory:
        noted(memory)
        conversation = memory.conversation("tuesday", owner="user-7")
        conversation.append(assistant(GREETING))
        assert block(conversation.context()) == "", "nobody has asked yet"
        conversation.append(user(ASKED))
        first = conversation.context()
        assert LIKING in block(first)
        conversation.append([assistant("Python."), user("And for pages?")])
        assert conversation.context().system == first.system


@pytest.mark.slow(but="1")
@pytest.mark.parametrize("rounds", [1, 12, 700])
def test_a_history_from_elsewhere_gets_them_with_its_first_request(
    agent: Open, rounds: int
) -> None:
    with agent(window=60_000) as memory:
        noted(memory)
        conversation = memory.conversation("tuesday", owner="user-7")
        conversation.append(
            [m for n in range(rounds) for m in (user(f"Step {n}?"), assistant("Done."))]
        )
        conversation.append(user(ASKED))
        first = conversation.context()
        assert LIKING in block(first)
        conversation.append([assistant("Python."), user("Thanks.")])
        assert conversation.context().system == first.system


@pytest.mark.slow(but=["SYS-never", "None-after the answer"])
@pytest.mark.parametrize("reopened", ["never", "before the answer", "after the answer"])
@pytest.mark.parametrize("system", [None, "SYS"])
def test_where_the_first_request_found_nothing_no_later_one_is_changed(
    agent: Open, system: str | None, reopened: str
) -> None:
    memory = agent()
    conversation = memory.conversation("tuesday", owner="user-7")
    conversation.append([assistant(GREETING), user(ASKED)])
    first = conversation.context(system=system)
    if reopened == "before the answer":
        memory.close()
        memory = agent()
    memory.conversation("tuesday").append(assistant("I do not know."))
    if reopened == "after the answer":
        memory.close()
        memory = agent()
    with memory:
        noted(memory)
        conversation = memory.conversation("tuesday")
        conversation.append(user(ASKED))
        assert conversation.context(system=system).system == first.system
        assert memory.verify().ok


@pytest.mark.slow
def test_what_was_withdrawn_by_an_erasure_is_not_chosen_anew(agent: Open) -> None:
    with agent() as memory:
        noted(memory)
        noted(memory, "sunday")
        conversation = memory.conversation("tuesday", owner="user-7")
        conversation.append(user(ASKED))
        assert LIKING in block(conversation.context())
        conversation.append(assistant("Python."))
        memory.erase_conversation("sunday")
        memory.erase_conversation("monday")
        noted(memory, "wednesday")
        conversation.append(user(ASKED))
        assert block(conversation.context()) == ""


def test_two_first_requests_at_once_are_equal(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with refold.open(path, window=8_000) as memory:
        noted(memory)

    async def work() -> list[tuple[refold.Context, refold.Context]]:
        async with refold.aopen(path, window=8_000, memories=5) as memory:
            made: list[tuple[refold.Context, refold.Context]] = []
            for n in range(6):
                conversation = memory.conversation(f"tuesday-{n}", owner="user-7")
                await conversation.append(user(ASKED))
                made.append(await asyncio.gather(conversation.context(), conversation.context()))
            return made

    for one, other in asyncio.run(work()):
        assert (one.system, one.messages, one.version) == (
            other.system,
            other.messages,
            other.version,
        )
        assert LIKING in block(one)
        assert one.version == 2


def test_first_requests_of_several_threads_and_memories_are_equal(agent: Open) -> None:
    with agent() as memory, agent() as another:
        noted(memory)
        memory.conversation("tuesday", owner="user-7").append(user(ASKED))
        made: list[refold.Context] = []
        start = threading.Barrier(6)

        def request(of: refold.Memory) -> None:
            start.wait()
            made.append(of.conversation("tuesday").context())

        threads = [threading.Thread(target=request, args=(one,)) for one in (memory, another) * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 6
        assert {(str(c.system), c.version) for c in made} == {(str(made[0].system), 2)}
        assert LIKING in block(made[0])


@pytest.mark.slow(but="notes")
@pytest.mark.parametrize("offered", ["notes", "summaries"])
def test_notes_of_a_conversation_behind_hundreds_of_newer_ones_are_offered(
    agent: Open, offered: str
) -> None:
    with agent(owner_memories=offered) as memory:
        noted(memory)
        for n in range(230):
            memory.conversation(f"later-{n}", owner="user-7").append(user("Hi."))
        conversation = memory.conversation("tuesday", owner="user-7")
        conversation.append(user(f"{ASKED} Or shall I go on tidying the garden shed?"))
        quoted = block(conversation.context())
        assert LIKING in quoted
        assert ("[refold://monday/0] summary" in quoted) == (offered == "summaries")

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
    chat = memory.conversation(thread_id, owner="user-7")
    chat.append([user(f"Remember: {LIKING}"), assistant("Noted.")])
    chat.append([m for _ in range(6) for m in (user(FILLER), assistant("Fine."))])
    chat.append(user("Go on."))
    assert chat.compact().outcome == "performed"


def block(context: refold.Context) -> str:
    return str(context.system).partition(f"{MEMORIES_HEADING}\n")[2]


def test_a_greeting_before_the_question_takes_nothing_away(agent: Open) -> None:
    with agent() as memory:
        noted(memory)
        chat = memory.conversation("tuesday", owner="user-7")
        chat.append(assistant(GREETING))
        assert block(chat.context()) == "", "nobody has asked yet"
        chat.append(user(ASKED))
        first = chat.context()
        assert LIKING in block(first)
        chat.append([assistant("Python."), user("And for pages?")])
        assert chat.context().system == first.system


@pytest.mark.slow(but="1")
@pytest.mark.parametrize("rounds", [1, 12, 700])
def test_a_history_from_elsewhere_gets_them_with_its_first_request(
    agent: Open, rounds: int
) -> None:
    with agent(window=60_000) as memory:
        noted(memory)
        chat = memory.conversation("tuesday", owner="user-7")
        chat.append([m for n in range(rounds) for m in (user(f"Step {n}?"), assistant("Done."))])
        chat.append(user(ASKED))
        first = chat.context()
        assert LIKING in block(first)
        chat.append([assistant("Python."), user("Thanks.")])
        assert chat.context().system == first.system


@pytest.mark.slow(but=["SYS-never", "None-after the answer"])
@pytest.mark.parametrize("reopened", ["never", "before the answer", "after the answer"])
@pytest.mark.parametrize("system", [None, "SYS"])
def test_where_the_first_request_found_nothing_no_later_one_is_changed(
    agent: Open, system: str | None, reopened: str
) -> None:
    memory = agent()
    chat = memory.conversation("tuesday", owner="user-7")
    chat.append([assistant(GREETING), user(ASKED)])
    first = chat.context(system=system)
    if reopened == "before the answer":
        memory.close()
        memory = agent()
    memory.conversation("tuesday").append(assistant("I do not know."))
    if reopened == "after the answer":
        memory.close()
        memory = agent()
    with memory:
        noted(memory)
        chat = memory.conversation("tuesday")
        chat.append(user(ASKED))
        assert chat.context(system=system).system == first.system
        assert memory.verify().ok


@pytest.mark.slow
def test_what_was_withdrawn_by_an_erasure_is_not_chosen_anew(agent: Open) -> None:
    with agent() as memory:
        noted(memory)
        noted(memory, "sunday")
        chat = memory.conversation("tuesday", owner="user-7")
        chat.append(user(ASKED))
        assert LIKING in block(chat.context())
        chat.append(assistant("Python."))
        memory.erase_conversation("sunday")
        memory.erase_conversation("monday")
        noted(memory, "wednesday")
        chat.append(user(ASKED))
        assert block(chat.context()) == ""


def test_two_first_requests_at_once_are_equal(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with refold.open(path, window=8_000) as memory:
        noted(memory)

    async def work() -> list[tuple[refold.Context, refold.Context]]:
        async with refold.aopen(path, window=8_000, memories=5) as memory:
            made: list[tuple[refold.Context, refold.Context]] = []
            for n in range(6):
                chat = memory.conversation(f"tuesday-{n}", owner="user-7")
                await chat.append(user(ASKED))
                made.append(await asyncio.gather(chat.context(), chat.context()))
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
        chat = memory.conversation("tuesday", owner="user-7")
        chat.append(user(f"{ASKED} Or shall I go on tidying the garden shed?"))
        quoted = block(chat.context())
        assert LIKING in quoted
        assert ("[refold://monday/0] summary" in quoted) == (offered == "summaries")

"""A summary may be named by the beginning of its id, as the command line shows it."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import refold
from refold.application.api.conversation_memory import ConversationMemory
from tests.support.command_line import Refold

TURNS = 20


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[refold.Memory]:
    """Its ids are ``abcd0000``, ``abcd0001`` …, with a tail that is equal in all."""
    numbers = count()
    with refold.open(
        tmp_path / "agent.db", window=4_000, new_id=lambda: f"abcd{next(numbers):04}-of-a-test"
    ) as made:
        yield made


def compacted(conversation: ConversationMemory, times: int = 1) -> list[str]:
    """Talk and compact; returns the ids of its summaries, oldest first."""
    for n in range(times * TURNS):
        conversation.append({"role": "user", "content": f"Step {n}: check file_{n}.py. " * 10})
        conversation.append({"role": "assistant", "content": f"file_{n}.py is fine. " * 10})
        if n % TURNS == TURNS - 1:
            conversation.compact()
    return [row.summary_id for row in conversation.summaries()]


def test_the_beginning_of_an_id_is_enough_where_one_summary_begins_so(
    memory: refold.Memory,
) -> None:
    conversation = memory.conversation("t")
    first, second = compacted(conversation, times=2)
    for expand in (conversation.expand, memory.expand):
        assert expand(first[:8]).summary_id == first
        assert expand(second[:8]).summary_id == second
        assert expand(second).summary_id == second


def test_a_beginning_of_several_ids_is_refused_with_those_it_could_be(
    memory: refold.Memory,
) -> None:
    conversation = memory.conversation("t")
    first, second = compacted(conversation, times=2)
    other = memory.conversation("other")
    (third,) = compacted(other)
    with pytest.raises(refold.UnknownSummary, match="give more characters") as here:
        conversation.expand("abcd")
    assert here.value.newest == (second, first)
    assert first in str(here.value)
    assert second in str(here.value)
    with pytest.raises(refold.UnknownSummary, match="give more characters") as anywhere:
        memory.expand("abcd")
    assert anywhere.value.newest == (third, second, first)
    assert other.expand("abcd").summary_id == third
    assert other.expand("a").summary_id == third


@pytest.mark.parametrize("short", ["", "b", "bcd0", "ABCD00000"])
def test_what_is_no_beginning_is_unknown(memory: refold.Memory, short: str) -> None:
    conversation = memory.conversation("t")
    (known,) = compacted(conversation)
    for expand in (conversation.expand, memory.expand):
        with pytest.raises(refold.UnknownSummary, match="there is no summary") as refused:
            expand(short)
        assert refused.value.newest == (known,)


def test_a_whole_id_wins_over_those_that_begin_with_it(tmp_path: Path) -> None:
    numbers = count()
    with refold.open(
        tmp_path / "agent.db", window=4_000, new_id=lambda: "abcd" + "x" * next(numbers)
    ) as memory:
        conversation = memory.conversation("t")
        ids = compacted(conversation, times=3)
        assert ids[1].startswith(ids[0])
        (longer,) = compacted(memory.conversation("other"))
        for summary_id in ids:
            assert conversation.expand(summary_id).summary_id == summary_id
            assert memory.expand(summary_id).summary_id == summary_id
        assert memory.expand(longer).thread_id == "other"


def test_the_summary_of_a_fork_and_its_source_is_one(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    (known,) = compacted(conversation)
    conversation.fork()
    assert memory.expand("abcd").summary_id == known
    assert memory.expand("abcd").thread_id == "t"


def test_the_tool_takes_a_beginning_and_answers_with_the_whole_id(memory: refold.Memory) -> None:
    conversation = memory.conversation("t")
    (known,) = compacted(conversation)
    tool = next(tool for tool in conversation.tools() if tool.name == "expand_summary")
    assert known in tool(summary_id=known[:8])


def test_the_command_takes_what_explain_prints(refold: Refold, stored: Path) -> None:
    del stored
    explained = refold("explain", "talk").out
    short = explained.partition("summary ")[2][:8]
    done = refold("expand", short)
    assert done.code == 0, done.err
    assert short in done.out

"""A list whose beginning is only in the log goes on without reading that beginning."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import refold as library
from refold.application.api.following import FollowingMemory
from refold.application.api.memory import Memory
from tests.support.counted_reads import counted_reads

KEPT = 4
LONG = 600
FEW = 10 * KEPT
"""Events that may be read for a list of which the application has few messages."""


def said(number: int, words: str = "is checked") -> dict[str, Any]:
    return {"role": "assistant" if number % 2 else "user", "content": f"Part {number} {words}."}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with library.open(
        tmp_path / "a.db", window=200_000, scrub_megabytes=0, standing_recall=0
    ) as memory:
        yield memory


def texts(memory: Memory, name: str) -> list[str]:
    return [one.text for one in memory.conversation(name).messages()]


def told(messages: list[dict[str, Any]]) -> list[str]:
    return [one["content"] for one in messages]


def test_a_new_process_and_later_turns_read_what_the_application_has(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [said(n) for n in range(LONG)]
    assert FollowingMemory(memory).follow("t", messages) == "t"
    memory.conversations()
    counts, lists = counted_reads(monkeypatch), FollowingMemory(memory)
    for _ in range(3):
        messages = [*messages, said(len(messages))]
        start = len(messages) - KEPT
        counts.clear()
        assert lists.follow("t", messages[start:], start=start, name="t") == "t"
        assert counts["events"] + counts["messages"] <= FEW
        assert lists.followed("t", len(messages)) == "t"
    assert texts(memory, "t") == told(messages)


@pytest.mark.parametrize("new_process", [False, True])
def test_an_edited_message_forks_where_it_stands(memory: Memory, new_process: bool) -> None:
    messages = [said(n) for n in range(20)]
    lists = FollowingMemory(memory)
    lists.follow("t", messages)
    lists.follow("t", messages[12:], start=12, name="t")
    edited = [*messages[:16], said(16, "is dropped"), *messages[17:]]
    whole = FollowingMemory(memory).follow("t", edited)
    lists = FollowingMemory(memory) if new_process else lists
    assert lists.follow("t", edited[12:], start=12, name="t") == whole
    assert texts(memory, whole) == told(edited)
    assert texts(memory, "t") == told(messages)


def test_the_list_of_a_fork_goes_on_in_it_and_a_whole_one_in_the_first(memory: Memory) -> None:
    messages = [said(n) for n in range(20)]
    FollowingMemory(memory).follow("t", messages)
    edited = [*messages[:8], *(said(n, "is dropped") for n in range(8, 20))]
    fork = FollowingMemory(memory).follow("t", edited)
    lists = FollowingMemory(memory)
    for start in (15, 5, 0):
        edited = [*edited, said(len(edited))]
        assert lists.follow("t", edited[start:], start=start, name=fork) == fork
        assert texts(memory, fork) == told(edited)
    assert lists.follow("t", messages) == "t"
    again = [*edited[:10], said(10, "is missing")]
    other = FollowingMemory(memory).follow("t", again[9:], start=9, name=fork)
    assert texts(memory, other) == told(again)
    assert texts(memory, "t") == told(messages)


def test_a_beginning_that_was_stored_without_keys_is_read(memory: Memory) -> None:
    messages = [said(n) for n in range(20)]
    memory.conversation("t").append(messages, recorded=True)
    messages.append(said(20))
    assert FollowingMemory(memory).follow("t", messages[17:], start=17, name="t") == "t"
    assert texts(memory, "t") == told(messages)
    edited = [*messages[:19], said(19, "is dropped")]
    lists = FollowingMemory(memory)
    lists.follow("t", messages[17:], start=17, name="t")
    fork = lists.follow("t", edited[17:], start=17, name="t")
    assert texts(memory, fork) == told(edited)


def test_an_erased_beginning_makes_no_fork(memory: Memory) -> None:
    messages = [said(n) for n in range(20)]
    FollowingMemory(memory).follow("t", messages)
    memory.conversation("t").erase([3, 11])
    messages.append(said(20))
    for start in (12, 14):
        lists = FollowingMemory(memory)
        assert lists.follow("t", messages[start:], start=start, name="t") == "t"
    assert len(memory.conversation("t").messages()) == 21


@pytest.mark.parametrize("position", [0, 3, 4, 7])
def test_an_erased_message_that_the_list_did_not_store_does_not_come_back(
    memory: Memory, position: int
) -> None:
    """The program appended the messages, erased one, and then began to give its list to an adapter."""
    messages = [said(n) for n in range(8)]
    for message in messages[:4]:
        memory.conversation("t").append(message)
    if position >= 4:
        FollowingMemory(memory).follow("t", messages)
    else:
        memory.conversation("t").append(messages[4:])
    memory.conversation("t").erase(position)
    messages.append(said(8))
    for _ in range(2):
        assert FollowingMemory(memory).follow("t", messages) == "t"
    (row,) = memory.conversations()
    assert row.messages == 9
    assert messages[position]["content"] not in texts(memory, "t")


def test_another_message_in_the_place_of_an_erased_one_goes_on_in_a_fork(memory: Memory) -> None:
    messages = [said(n) for n in range(4)]
    FollowingMemory(memory).follow("t", messages)
    memory.conversation("t").erase(2)
    messages[2] = said(2, "is another")
    fork = FollowingMemory(memory).follow("t", messages)
    assert texts(memory, fork) == told(messages)


@pytest.mark.parametrize("new_process", [False, True])
def test_an_application_goes_back_to_an_earlier_list(memory: Memory, new_process: bool) -> None:
    """The end of both lists is the same, and so is the number of messages before it."""
    messages = [said(n) for n in range(12)]
    other = [*messages[:4], said(4, "is dropped"), *messages[5:]]
    lists = FollowingMemory(memory)
    assert lists.follow("t", messages) == "t"
    fork = lists.follow("t", other)
    lists.follow("t", other[8:], start=8, name=fork)
    lists = FollowingMemory(memory) if new_process else lists
    messages.append(said(12, "is read"))
    assert lists.follow("t", messages[8:], start=8, name="t") == "t"
    assert texts(memory, "t") == told(messages)
    other.append(said(12, "is read"))
    assert lists.follow("t", other[8:], start=8, name=fork) == fork
    assert texts(memory, fork) == told(other)

"""Calls near Python's recursion limit: nothing is damaged, stored twice or lost, and the memory goes on."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import refold
from tests.support.log_files import rows

READS: dict[str, Callable[[refold.Memory], object]] = {
    "conversations": lambda memory: memory.conversations(),
    "recall": lambda memory: memory.conversation("t").recall("port"),
    "context": lambda memory: memory.conversation("t").context(),
    "messages": lambda memory: memory.conversation("t").messages(),
    "verify": lambda memory: memory.verify(),
}


def _has_room(room: int, act: Callable[[], object]) -> bool:
    """Act with few calls to spare, and return whether they were enough."""
    frame, depth = sys._getframe(), 1  # pyright: ignore[reportPrivateUsage]
    while (frame := frame.f_back) is not None:  # type: ignore[assignment]
        depth += 1
    try:
        _descend(sys.getrecursionlimit() - depth - room, act)
    except RecursionError:
        return False
    return True


def _descend(count: int, act: Callable[[], object]) -> None:
    if count:
        _descend(count - 1, act)
    else:
        act()


def _say(memory: refold.Memory, text: str) -> None:
    memory.conversation("t").append({"role": "user", "content": text}, author="person")


def _warm_up(memory: refold.Memory) -> None:
    """Import what calls import, because a module that is half imported stays so."""
    _say(memory, "the port is 5433")
    for read in READS.values():
        read(memory)


@pytest.mark.parametrize("name", READS)
def test_too_many_open_calls_are_no_damage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    with refold.open(tmp_path / "a.db") as memory:
        _warm_up(memory)
        ids = {one: one.stat().st_ino for one in tmp_path.glob("a.*.db")}
    is_done = False
    for room in range(20, 100, 4):
        with refold.open(tmp_path / "a.db") as memory:
            is_done = _has_room(room, lambda opened=memory: READS[name](opened))  # type: ignore[misc]
    assert is_done
    assert {one: one.stat().st_ino for one in tmp_path.glob("a.*.db")} == ids
    assert not [one for one in caplog.records if "damaged" in one.getMessage()]


def test_an_append_that_fails_for_too_many_open_calls_is_not_stored(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with refold.open(path) as memory:
        _warm_up(memory)
        outcomes = set[bool]()
        for room in range(12, 60):
            _say(memory, "now the conversation is loaded")
            before = len(rows(path))
            outcomes.add(is_done := _has_room(room, lambda: _say(memory, "hello")))
            assert len(rows(path)) == before + is_done
        assert outcomes == {False, True}
        assert memory.verify().ok


def test_a_memory_goes_on_after_many_calls_that_had_no_room(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db") as memory:
        _warm_up(memory)
        for _ in range(2):
            for room in range(20, 70):
                for read in READS.values():
                    _has_room(room, lambda reading=read: reading(memory))  # type: ignore[misc]
                _has_room(room, lambda: _say(memory, "hello"))
        before = len(memory.conversation("t").messages())
        _say(memory, "one more")
        assert len(memory.conversation("t").messages()) == before + 1
        assert memory.verify().ok


def test_words_are_gone_after_an_erasure_with_too_many_open_calls(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with refold.open(path) as memory:
        _warm_up(memory)
        conversation = memory.conversation("t")
        conversation.erase([0])
        for room in range(20, 130, 6):
            _say(memory, f"secret{room}")
            conversation.recall(f"secret{room}")
            position = len(conversation.messages()) - 1
            _has_room(room, lambda at=position: conversation.erase([at]))  # type: ignore[misc]
            if f"secret{room}" in str(conversation.messages()):
                conversation.erase([position])
            assert not conversation.recall(f"secret{room}").hits
    left = [one for one in tmp_path.iterdir() if b"secret" in one.read_bytes()]
    assert not left

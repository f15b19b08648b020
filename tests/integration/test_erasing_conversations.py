"""Erasing whole conversations, and the copies that forks have."""

from collections.abc import Callable
from pathlib import Path

import pytest

import refold
from refold.application.api.memory import Memory
from refold.domain.errors import ConversationGone
from tests.support.erasing_scenes import SECRET, holding, is_sound, talk


@pytest.mark.slow
def test_its_copies_in_forks_go_with_it_in_whichever_it_is_erased(
    folder: Path, memory: Memory
) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 30, [1, 25])
    early = conversation.fork(at=20, thread_id="early")
    copy = conversation.fork(thread_id="copy")
    copy.append({"role": "user", "content": "only here"})
    deeper = copy.fork(thread_id="deeper")
    report = deeper.erase(2)
    assert report.copies == ("copy", "early", "t")
    assert conversation.erase(50).copies == ("copy", "deeper")
    assert holding(folder) == {}
    for one in (conversation, early, copy, deeper):
        assert one.read(2).erased
        is_sound(memory, one)


def test_nothing_is_left_of_an_erased_conversation(folder: Path, memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 30, [1, 28])
    conversation.append({"role": "user", "content": SECRET}, key="k")
    conversation.label(SECRET)
    other = memory.conversation("other")
    other.append({"role": "user", "content": "hello"})
    report = memory.erase_conversation("t", "asked")
    assert report.conversation
    assert report.complete
    assert holding(folder) == {}
    assert [row.thread_id for row in memory.conversations()] == ["other"]
    assert memory.verify().ok
    assert not memory.erase_conversation("t").changed
    attempts: list[Callable[[], object]] = [
        conversation.context,
        lambda: conversation.context(at=3),
        conversation.compact,
        conversation.revert_compaction,
        conversation.fork,
        lambda: conversation.pin("x"),
        lambda: conversation.unpin("x"),
        lambda: conversation.label("x"),
        lambda: conversation.read(0),
        lambda: conversation.erase(0),
    ]
    for attempt in attempts:
        with pytest.raises(ConversationGone):
            attempt()
    assert conversation.messages() == []
    assert conversation.explain() == ()
    memory.close()
    assert holding(folder) == {}


def test_a_fork_of_an_erased_conversation_keeps_only_what_was_said_there(
    folder: Path, memory: Memory
) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 10, [1])
    fork = conversation.fork(thread_id="f")
    fork.append({"role": "user", "content": "only here"})
    assert memory.erase_conversation("t").copies == ("f",)
    assert holding(folder) == {}
    assert [m.erased for m in fork.messages()] == [True] * 20 + [False]
    is_sound(memory, fork)


def test_erasing_a_fork_leaves_the_original(memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 3, [1])
    conversation.fork(thread_id="f")
    assert memory.erase_conversation("f").copies == ()
    assert not conversation.read(2).erased


def test_nothing_is_left_in_files_that_a_user_moved_and_linked(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "another disk"
    here.mkdir()
    elsewhere.mkdir()
    path = here / "agent.db"
    with refold.open(path) as memory:
        for thread_id in ("t", "u"):
            conversation = memory.conversation(thread_id)
            conversation.append({"role": "user", "content": SECRET})
            assert conversation.recall(SECRET).hits
            assert conversation.messages()
    for name in ("agent.views.db", "agent.recall.db"):
        (here / name).rename(elsewhere / name)
        (here / name).symlink_to(elsewhere / name)
    with refold.open(path) as memory:
        assert memory.erase_conversation("t").complete
        assert len(memory.conversation("u").messages()) == 1
        memory.replay()
        assert memory.conversation("u").erase(0).complete
        assert memory.verify().ok
    assert holding(here) == {}
    assert holding(elsewhere) == {}

"""Erasures reach all copies or none, and copies of an older day know what was erased since."""

import asyncio
from pathlib import Path

import pytest

import refold
from refold.application.api.memory import Memory
from refold.domain.events import WITHDRAWN
from refold.infrastructure.event_store.store import SQLiteLog
from tests.support.dying import traced, watched, write_files
from tests.support.erasing_scenes import SECRET, holding, is_sound, opened, talk


@pytest.mark.slow(but="True")
@pytest.mark.parametrize("whole", [False, True])
def test_a_death_leaves_it_erased_in_all_copies_or_in_none(tmp_path: Path, whole: bool) -> None:
    folder = tmp_path / "first"
    folder.mkdir()
    with traced(), opened(folder) as memory:
        conversation = memory.conversation("t")
        talk(conversation, 20, [1])
        conversation.fork(thread_id="copy").fork(thread_id="deeper")
        with watched(folder, lambda: None) as moments:
            report = memory.erase_conversation("t") if whole else conversation.erase(2)
        assert report.copies == ("copy", "deeper")
    seen: set[bool] = set()
    for number, moment in enumerate(moments):
        write_files(moment.files, tmp_path / str(number))
        with opened(tmp_path / str(number)) as again:
            erased = {again.conversation(t).read(2).erased for t in ("copy", "deeper")}
            gone = {"t"} - {row.thread_id for row in again.conversations()}
            erased.add(bool(gone) if whole else again.conversation("t").read(2).erased)
            assert len(erased) == 1, f"before {moment.before}"
            assert again.verify().ok
        seen |= erased
        assert (holding(tmp_path / str(number)) == {}) == erased.pop()
    assert seen == {False, True}


@pytest.mark.slow
def test_a_copy_of_an_older_day_says_what_was_erased_since(folder: Path, memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 6, [1, 3])
    before = conversation.version
    conversation.pin(2)
    pinned = conversation.version
    conversation.erase([2, 6], "asked")
    versions = (before, pinned, pinned + 1, pinned + 2, conversation.version)
    for at in versions:
        copy = conversation.fork(at=at, thread_id=f"copy-{at}")
        assert [m.position for m in copy.messages() if m.erased] == [2, 6]
        assert [f.position for f in copy.explain() if f.fate == "erased"] == [2, 6]
        assert copy.pins() == ()
        assert copy.context().tokens == conversation.context().tokens
        assert not copy.erase([2, 6]).changed
        is_sound(memory, copy)
    events = list(memory.conversation(f"copy-{before}").export("events"))
    reasons = [e["fields"]["reason"] for e in events if e["name"] == "message_erased"]
    assert reasons == ["asked", "asked"]
    copies = (*sorted(f"copy-{at}" for at in versions), "t")
    assert conversation.fork(at=2, thread_id="early").erase(0).copies == copies
    assert holding(folder) == {}


@pytest.mark.slow
def test_the_withdrawn_summary_of_an_older_day_is_made_anew_in_the_copy(
    folder: Path, memory: Memory
) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 30, [1])
    before = conversation.version
    conversation.erase(2)
    now = conversation.context()
    assert now.summary is not None
    for at in range(before, conversation.version + 1):
        copy = conversation.fork(at=at, thread_id=f"copy-{at}")
        summary = copy.context().summary
        assert summary is not None
        assert WITHDRAWN not in summary.text
        assert "file_0.py" in summary.text + str(summary.leaf)
        assert summary.coverage == now.summary.coverage
        assert [s.is_active for s in copy.summaries()].count(True) == 1
        assert copy.read(2).erased
        is_sound(memory, copy)
        talk(copy, 30)
        is_sound(memory, copy)
    assert holding(folder) == {}


def test_a_copy_of_an_older_day_is_made_beside_a_running_loop(memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 30, [1])
    before = conversation.version
    conversation.erase(2)

    async def inside() -> refold.ConversationMemory:
        return conversation.fork(at=before)

    assert asyncio.run(inside()).read(2).erased


def test_a_copy_of_a_copy_that_was_erased_still_leads_to_the_first(
    folder: Path, memory: Memory
) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 3, [1])
    middle = conversation.fork(thread_id="middle")
    memory.erase_conversation("middle")
    assert memory.verify().ok
    memory.close()
    log = SQLiteLog(folder / "a.db")
    assert [(fork.thread_id, fork.source) for fork in log.forks()] == [("middle", "t")]
    log.close()
    with opened(folder) as again:
        assert again.conversation("t").erase(2).copies == ()
    assert holding(folder) == {}
    assert middle.thread_id == "middle"


def test_what_an_erasure_reaches_is_told_before(memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 6, [1])
    conversation.fork(at=4, thread_id="early")
    copy = conversation.fork(thread_id="copy")
    assert conversation.shared_with(2) == ("copy", "early")
    assert conversation.shared_with([10]) == ("copy",)
    assert copy.shared_with(2) == ("early", "t")
    assert conversation.shared_with() == ("copy", "early")
    assert copy.shared_with() == ()
    assert SECRET in conversation.read(2).text

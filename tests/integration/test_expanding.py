"""``expand``: what a summary stands for, as long as it stands and afterwards."""

from pathlib import Path

import pytest

import refold
from refold.application.api.conversation_memory import Chat

TURNS = 20


@pytest.fixture
def memory(tmp_path: Path) -> refold.Memory:
    return refold.open(tmp_path / "agent.db", window=4_000)


def talked(
    memory: refold.Memory, thread: str = "t", begin: int = 0, *, pinned: int | None = None
) -> Chat:
    chat = memory.conversation(thread)
    for n in range(begin, begin + TURNS):
        chat.append({"role": "user", "content": f"Step {n}: check file_{n}.py. " * 10})
        chat.append({"role": "assistant", "content": f"file_{n}.py is fine. " * 10})
    if pinned is not None:
        chat.pin(pinned)
    chat.compact()
    return chat


def active(chat: Chat) -> str:
    return next(row.summary_id for row in chat.summaries() if row.is_active)


def test_a_summary_leads_to_the_messages_that_it_covers(memory: refold.Memory) -> None:
    with memory:
        chat = talked(memory, pinned=4)
        found = chat.expand(active(chat))
        assert found.state == "active"
        assert found.exclusions == (4,)
        assert (shown := chat.context().summary) is not None
        assert (found.text, found.summary_id) == (shown.text, shown.summary_id)
        assert (found.superseded_by, found.withdrawn) == (None, False)
        covered = [f.position for f in chat.explain() if f.fate == "summarised"]
        seen, page = list[int](), found.page
        while True:
            assert all(chat.read(r.position).text[r.start : r.stop] == r.text for r in page.records)
            seen += [r.position for r in page.records]
            if page.next is None:
                break
            page = chat.expand(active(chat), start=page.next).page
        assert seen == covered
        assert len(seen) == found.count
        assert [(leaf.start, leaf.stop) for leaf in found.leaves] == [(found.start, found.stop)]


def test_a_summary_that_was_superseded_names_the_one_that_took_over(memory: refold.Memory) -> None:
    with memory:
        chat = talked(memory)
        first = active(chat)
        talked(memory, begin=TURNS)
        second = active(chat)
        found = chat.expand(first)
        assert (found.state, found.superseded_by) == ("superseded", second)
        newer = chat.expand(second)
        assert len(newer.leaves) == 2
        assert newer.stop > found.stop
        chat.revert_compaction()
        assert chat.expand(second).state == "undone"
        assert chat.expand(first).state == "active"


def test_what_was_erased_behind_a_summary_is_told(memory: refold.Memory) -> None:
    with memory:
        chat = talked(memory)
        before = active(chat)
        chat.erase(2)
        old, new = chat.expand(before), chat.expand(active(chat))
        assert old.withdrawn
        assert old.superseded_by == new.summary_id
        for found in (old, new):
            assert "file_1.py" not in found.text
            assert all("Step 1:" not in leaf.text for leaf in found.leaves)
            record = next(r for r in found.page.records if r.position == 2)
            assert record.erased
            assert "file_1" not in record.text


def test_an_unknown_summary_is_refused_with_those_there_are(memory: refold.Memory) -> None:
    with memory:
        chat = talked(memory)
        with pytest.raises(refold.UnknownSummary) as caught:
            chat.expand("nothing")
        assert caught.value.newest == (active(chat),)
        with pytest.raises(refold.UnknownSummary) as caught:
            memory.expand("nothing")
        assert caught.value.newest == (active(chat),)
        with pytest.raises(refold.UnknownSummary, match="nothing was compacted"):
            memory.conversation("other").expand(active(chat))


def test_a_summary_is_found_in_whichever_conversation_made_it(memory: refold.Memory) -> None:
    with memory:
        talked(memory, "a")
        chat = talked(memory, "b")
        forked = chat.fork()
        assert memory.expand(active(chat)).thread_id == "b"
        assert forked.expand(active(chat)).thread_id == forked.thread_id
        memory.erase_conversation("b")
        assert memory.expand(active(forked)).thread_id == forked.thread_id

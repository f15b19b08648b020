"""``expand``: what a summary stands for, as long as it stands and afterwards."""

from pathlib import Path

import pytest

import refold
from refold.application.api.conversation_memory import ConversationMemory

TURNS = 20


@pytest.fixture
def memory(tmp_path: Path) -> refold.Memory:
    return refold.open(tmp_path / "agent.db", window=4_000)


def talked(
    memory: refold.Memory, thread: str = "t", begin: int = 0, *, pinned: int | None = None
) -> ConversationMemory:
    conversation = memory.conversation(thread)
    for n in range(begin, begin + TURNS):
        conversation.append({"role": "user", "content": f"Step {n}: check file_{n}.py. " * 10})
        conversation.append({"role": "assistant", "content": f"file_{n}.py is fine. " * 10})
    if pinned is not None:
        conversation.pin(pinned)
    conversation.compact()
    return conversation


def active(conversation: ConversationMemory) -> str:
    return next(row.summary_id for row in conversation.summaries() if row.is_active)


def test_a_summary_leads_to_the_messages_that_it_covers(memory: refold.Memory) -> None:
    with memory:
        conversation = talked(memory, pinned=4)
        found = conversation.expand(active(conversation))
        assert found.state == "active"
        assert found.exclusions == (4,)
        assert (shown := conversation.context().summary) is not None
        assert (found.text, found.summary_id) == (shown.text, shown.summary_id)
        assert (found.superseded_by, found.withdrawn) == (None, False)
        covered = [f.position for f in conversation.explain() if f.fate == "summarised"]
        seen, page = list[int](), found.page
        while True:
            assert all(
                conversation.read(r.position).text[r.start : r.stop] == r.text for r in page.records
            )
            seen += [r.position for r in page.records]
            if page.next is None:
                break
            page = conversation.expand(active(conversation), start=page.next).page
        assert seen == covered
        assert len(seen) == found.count
        assert [(leaf.start, leaf.stop) for leaf in found.leaves] == [(found.start, found.stop)]


def test_a_summary_that_was_superseded_names_the_one_that_took_over(memory: refold.Memory) -> None:
    with memory:
        conversation = talked(memory)
        first = active(conversation)
        talked(memory, begin=TURNS)
        second = active(conversation)
        found = conversation.expand(first)
        assert (found.state, found.superseded_by) == ("superseded", second)
        newer = conversation.expand(second)
        assert len(newer.leaves) == 2
        assert newer.stop > found.stop
        conversation.revert_compaction()
        assert conversation.expand(second).state == "undone"
        assert conversation.expand(first).state == "active"


def test_what_was_erased_behind_a_summary_is_told(memory: refold.Memory) -> None:
    with memory:
        conversation = talked(memory)
        before = active(conversation)
        conversation.erase(2)
        old, new = conversation.expand(before), conversation.expand(active(conversation))
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
        conversation = talked(memory)
        with pytest.raises(refold.UnknownSummary) as caught:
            conversation.expand("nothing")
        assert caught.value.newest == (active(conversation),)
        with pytest.raises(refold.UnknownSummary) as caught:
            memory.expand("nothing")
        assert caught.value.newest == (active(conversation),)
        with pytest.raises(refold.UnknownSummary, match="nothing was compacted"):
            memory.conversation("other").expand(active(conversation))


def test_a_summary_is_found_in_whichever_conversation_made_it(memory: refold.Memory) -> None:
    with memory:
        talked(memory, "a")
        conversation = talked(memory, "b")
        forked = conversation.fork()
        assert memory.expand(active(conversation)).thread_id == "b"
        assert forked.expand(active(conversation)).thread_id == forked.thread_id
        memory.erase_conversation("b")
        assert memory.expand(active(forked)).thread_id == forked.thread_id

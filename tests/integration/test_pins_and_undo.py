"""Pins and undone compactions on a real log: the same after a restart, in the read models too."""

from pathlib import Path

import pytest

import refold
from refold.application.api.conversation_memory import ConversationMemory
from refold.infrastructure.event_store.store import SQLiteLog
from tests.support.log_files import execute

LONG = "a long sentence about the parser and its many cases. " * 12


def open_log(path: Path) -> refold.Memory:
    return refold.open(path, window=8_000)


def talk_on(conversation: ConversationMemory, start: int, turns: int) -> None:
    for n in range(start, start + turns):
        conversation.append({"role": "user", "content": f"question {n}: {LONG}"})
        conversation.append({"role": "assistant", "content": f"answer {n}: {LONG}"})


def shown(conversation: ConversationMemory) -> object:
    context = conversation.context()
    return context.system, context.messages, context.tokens


def same_after_restart(path: Path) -> None:
    log, without = SQLiteLog(path), SQLiteLog(path)
    with_snapshot = log.load("t")
    execute(path, "DELETE FROM stored_snapshots")
    assert without.load("t") == with_snapshot
    log.close()
    without.close()


def test_an_undone_compaction_is_gone_from_the_context_and_kept_in_the_log(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with open_log(path) as memory:
        conversation = memory.conversation("t")
        talk_on(conversation, 0, 8)
        before = shown(conversation)
        assert conversation.compact().outcome == "performed"
        assert shown(conversation) != before
        result = conversation.revert_compaction("the summary missed the point")
        assert (result.outcome, result.success) == ("reverted", True)
        assert result.messages_kept == 16
        assert shown(conversation) == before
        assert [(s.is_active, s.is_reverted) for s in conversation.summaries()] == [(False, True)]
        assert [c.outcome for c in conversation.compactions()] == ["reverted"]
        assert conversation.revert_compaction().outcome == "nothing_to_do"
        assert memory.verify().ok
    with open_log(path) as memory:
        assert shown(memory.conversation("t")) == before
    same_after_restart(path)


def test_the_summary_before_the_undone_one_stands_again_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with open_log(path) as memory:
        conversation = memory.conversation("t")
        talk_on(conversation, 0, 5)
        conversation.compact()
        talk_on(conversation, 5, 2)
        before = shown(conversation)
        version = conversation.version
        assert conversation.compact(focus="the cases").outcome == "performed"
        talk_on(conversation, 7, 1)
        conversation.revert_compaction()
        talk_on(conversation, 8, 1)
        after = shown(conversation)
        assert [s.is_active for s in conversation.summaries()] == [True, False]
        then = conversation.context(at=version)
        assert (then.system, then.messages, then.tokens) == before
    with open_log(path) as memory:
        assert shown(memory.conversation("t")) == after
        assert memory.verify().ok
    same_after_restart(path)


def test_another_process_sees_that_a_compaction_was_undone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with open_log(path) as one, open_log(path) as other:
        conversation, same = one.conversation("t"), other.conversation("t")
        talk_on(conversation, 0, 8)
        conversation.compact()
        assert shown(same) == shown(conversation)
        conversation.revert_compaction()
        assert shown(same) == shown(conversation)


def test_an_undoing_is_read_again_where_the_summary_that_came_back_was_replaced(
    tmp_path: Path,
) -> None:
    """The messages that are left lie before the undoing, the summary that it restored does not."""
    path = tmp_path / "a.db"
    with open_log(path) as memory:
        conversation = memory.conversation("t")
        for start in (0, 8):
            talk_on(conversation, start, 8)
            assert conversation.compact().outcome == "performed"
        talk_on(conversation, 16, 3)
        conversation.revert_compaction()
        assert conversation.compact().outcome == "performed"
        last = shown(conversation)
    with open_log(path) as memory:
        assert shown(memory.conversation("t")) == last
    same_after_restart(path)


def test_pins_are_in_every_context_whatever_is_compacted(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with open_log(path) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "never touch the billing tables"})
        conversation.append({"role": "assistant", "content": "understood"})
        talk_on(conversation, 0, 4)
        conversation.append({"role": "user", "content": "deploy only from the release branch"})
        conversation.append({"role": "assistant", "content": "noted"})
        in_place = conversation.pin(10)
        assert conversation.pin(10) == in_place
        talk_on(conversation, 4, 6)
        conversation.compact()
        covered = conversation.pin(0)
        text = conversation.pin("the budget is 40,000 EUR")
        for n in range(10, 30, 4):
            talk_on(conversation, n, 4)
            context = str(conversation.context().messages)
            assert "deploy only from the release branch" in context
            assert "never touch the billing tables" in context
            assert "the budget is 40,000 EUR" in context
        pins = conversation.pins()
        assert [(p.pin_id, p.position, p.in_place) for p in pins] == [
            (in_place, 10, True),
            (covered, 0, False),
            (text, None, False),
        ]
        assert pins[1].text == "never touch the billing tables"
        last = shown(conversation)
    with open_log(path) as memory:
        conversation = memory.conversation("t")
        assert shown(conversation) == last
        assert conversation.unpin(text)
        assert not conversation.unpin(text)
        assert "the budget is 40,000 EUR" not in str(conversation.context().messages)
        assert memory.verify().ok
    same_after_restart(path)


def test_an_address_is_pinned_as_the_message_that_it_names(tmp_path: Path) -> None:
    with open_log(tmp_path / "a.db") as memory:
        conversation = memory.conversation("t")
        talk_on(conversation, 0, 2)
        assert conversation.pin("refold://t/2") == conversation.pin(2)
        assert [p.position for p in conversation.pins()] == [2]
        with pytest.raises(refold.ForeignAddress):
            conversation.pin("refold://other/2")
        with pytest.raises(refold.InvalidMessage):
            conversation.pin(True)


def test_the_first_message_after_the_summary_is_marked_for_people(tmp_path: Path) -> None:
    with open_log(tmp_path / "a.db") as memory:
        conversation = memory.conversation("t")
        talk_on(conversation, 0, 8)
        assert [m.mark for m in conversation.messages()] == [None] * 16
        summary_id = conversation.compact().summary_id
        [marked] = [m for m in conversation.messages() if m.mark]
        [row] = conversation.summaries()
        assert marked.mark is not None
        assert marked.position == row.compact_up_to_index + 1
        assert marked.mark.summary_id == summary_id
        assert marked.mark.compacted_at == row.compacted_at
        assert marked.mark.compression_triggered
        conversation.revert_compaction()
        assert not any(m.mark for m in conversation.messages())


def test_a_summary_in_the_system_text_is_decided_at_opening(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db", window=8_000, summary_place="system") as memory:
        conversation = memory.conversation("t")
        talk_on(conversation, 0, 20)
        context = conversation.context(system="Be brief.")
        assert context.summary is not None
        assert str(context.system).startswith("Be brief.")
        assert context.summary.text in str(context.system)
        assert context.summary.text not in str(context.messages)
        assert context.tokens <= context.budget.limit


def test_what_is_done_after_closing_is_refused_with_an_error_of_our_own(tmp_path: Path) -> None:
    memory = open_log(tmp_path / "a.db")
    conversation = memory.conversation("t")
    talk_on(conversation, 0, 1)
    memory.close()
    with pytest.raises(refold.LogError, match="was closed"):
        talk_on(conversation, 1, 1)
    with pytest.raises(refold.LogError, match="was closed"):
        conversation.context()

"""What is erased is in no file: not in the log, its write-ahead log, nor in the read models."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from refold.application.api.memory import Memory
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.errors import InvalidThreadId, UnknownMessage
from refold.domain.events import Event
from refold.infrastructure.event_store import codec
from refold.infrastructure.event_store.codec import decode
from tests.support.erasing_scenes import PATH, SECRET, Failing, holding, is_sound, opened, talk

DERIVED = ("read models", "recall index")


def test_a_live_message_is_gone_from_every_file_at_once(folder: Path, memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 3, [1])
    assert holding(folder)
    report = conversation.erase(2, "asked")
    assert holding(folder) == {}
    assert report.complete
    assert report.positions == (2,)
    stub = conversation.read(2)
    assert stub.erased
    assert stub.message.content == "[Content unavailable: refold://t/2]"
    assert "[Content unavailable: refold://t/2]" in str(conversation.context().messages)
    is_sound(memory, conversation)


def test_compactions_before_a_message_are_not_read_to_erase_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Counter[str]()

    def decoded(name: str, *args: Any, **options: Any) -> Event:
        read[name] += 1
        return decode(name, *args, **options)

    with opened(folder, summariser="extractive") as memory:
        conversation = memory.conversation("t")
        talk(conversation, 150, [149])
        made = len(conversation.compactions())
        monkeypatch.setattr(codec, "decode", decoded)
        assert conversation.erase(298).positions == (298,)
        assert read["compaction_requested"] >= made
        # Some are read with the newest snapshot, when the state after the erasure is loaded.
        assert read["compaction_performed"] < made / 2
    assert holding(folder) == {}


@pytest.mark.slow
def test_a_covered_one_is_gone_from_all_that_was_made_from_it(folder: Path, memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 40, [1])
    conversation.pin(2)
    assert conversation.explain(2, 3)[0].fate == "summarised"
    assert len(conversation.summaries()) > 1
    assert any(SECRET in s.summary_text for s in conversation.summaries())
    report = conversation.erase(2)
    assert holding(folder) == {}
    places = {one.place for one in report.removed}
    expected = {
        "message",
        "summary",
        "leaf",
        "ledger",
        "index",
        "topics",
        "notes",
        "attempt",
        "pin",
    }
    assert places == {*expected, *DERIVED}
    assert conversation.pins() == ()
    assert conversation.explain(2, 3)[0].fate == "erased"
    memory.close()
    assert holding(folder) == {}
    with opened(folder) as again:
        is_sound(again, again.conversation("t"))
    assert holding(folder) == {}


def test_the_summary_is_made_anew_from_what_remains(memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 30, [1])
    before = conversation.context()
    assert before.summary is not None
    (rebuilt,) = conversation.erase(2).rebuilt
    after = conversation.context()
    assert after.summary is not None
    assert after.summary.summary_id == rebuilt.summary_id
    assert after.summary.coverage == before.summary.coverage
    assert after.summary.tokens <= before.summary.tokens
    assert after.tokens <= before.tokens
    assert {line.position for line in after.summary.ledger}.isdisjoint({2})
    assert "file_0.py" in str([line.text for line in after.summary.ledger])
    active = [s.summary_id for s in conversation.summaries() if s.is_active]
    assert active == [rebuilt.summary_id]


def test_leaves_that_it_was_not_in_are_kept_as_they_are(memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 40, [1])
    made = (
        conversation.context(at=version).summary for version in range(1, conversation.version + 1)
    )
    leaves = list(dict.fromkeys(one.leaf.text for one in made if one and one.leaf))
    assert len(leaves) > 1
    conversation.erase(2)
    summary = conversation.context().summary
    assert summary is not None
    assert summary.leaf is not None
    assert leaves[0] not in summary.leaf.text
    assert all(leaf in summary.leaf.text for leaf in leaves[1:])


@pytest.mark.slow
def test_the_conversation_goes_on_and_is_compacted_again(folder: Path, memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 30, [1])
    conversation.erase(2)
    talk(conversation, 30)
    assert holding(folder) == {}
    is_sound(memory, conversation)
    assert conversation.revert_compaction().outcome == "reverted"
    is_sound(memory, conversation)


def test_a_summary_made_by_an_erasure_is_not_undone(memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 30, [1])
    conversation.erase(2)
    version = conversation.version
    result = conversation.revert_compaction()
    assert (result.outcome, result.reason) == ("nothing_to_do", "erased")
    assert conversation.version == version


def test_erasing_again_changes_nothing_and_says_so(memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 30, [1])
    conversation.erase([2, 4])
    version = conversation.version
    again = conversation.erase([2, "refold://t/4"])
    assert not again.changed
    assert again.already_erased == (2, 4)
    assert conversation.version == version


def test_what_is_not_there_is_refused_and_nothing_is_erased(memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 2, [1])
    with pytest.raises(UnknownMessage):
        conversation.erase([2, 99])
    assert not conversation.read(2).erased
    with pytest.raises(InvalidThreadId):
        memory.erase_conversation("nobody")


def test_the_words_of_a_failed_attempt_are_gone(folder: Path) -> None:
    with opened(folder, summariser=Failing(), window=100_000) as memory:
        conversation = memory.conversation("t")
        talk(conversation, 20, [1])
        result = conversation.compact()
        assert result.outcome == "failed"
        assert SECRET in result.detail
        conversation.erase(2)
        assert holding(folder) == {}
        is_sound(memory, conversation)


def test_a_withdrawn_superseded_and_reverted_summary_is_gone(folder: Path, memory: Memory) -> None:
    conversation = memory.conversation("t")
    talk(conversation, 30, [1])
    assert conversation.revert_compaction().outcome == "reverted"
    conversation.erase(2)
    assert holding(folder) == {}
    is_sound(memory, conversation)


def test_an_offloaded_result_is_gone_and_its_call_stays_paired(folder: Path) -> None:
    policy = CompactionPolicy(offload_tokens=100, giant_share=0.1)
    with opened(folder, policy=policy, window=8_000) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "read it"})
        for n in range(12):
            call = {"type": "tool_use", "id": f"c{n}", "name": "read", "input": {"path": PATH}}
            told = {
                "type": "tool_result",
                "tool_use_id": f"c{n}",
                "content": SECRET + "word " * 600,
            }
            conversation.append({"role": "assistant", "content": [call]})
            conversation.append({"role": "user", "content": [told]})
            conversation.context()
        assert {"offloaded", "condensed"} & {fate.fate for fate in conversation.explain()}
        conversation.erase(range(1, 25))
        assert holding(folder) == {}
        is_sound(memory, conversation)
        assert conversation.read(1).message.content == (
            {"type": "tool_use", "id": "c0", "name": "read", "input": {}},
        )


def test_a_key_delivered_late_is_not_stored_again(folder: Path, memory: Memory) -> None:
    conversation = memory.conversation("t")
    message = {"role": "user", "content": SECRET}
    conversation.append(message, key="k1")
    conversation.erase(0)
    stored = conversation.append(message, key="k1")
    assert not stored.messages[0].new
    assert holding(folder) == {}

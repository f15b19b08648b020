"""The texts that a summary is rebuilt from are kept from the time they were written, and read only after opening."""

from pathlib import Path

import pytest

import refold
from tests.support.compacted_talks import opened, talk
from tests.support.counted_reads import decoded_events

ROUNDS = 7
"""Number of compactions. The sixth is a rebuild."""


def remembered(conversation: refold.ConversationMemory) -> tuple[str, ...]:
    """Return what the request shows for older messages."""
    return tuple(conversation.context().memory)


def test_a_rebuild_decodes_no_earlier_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded = decoded_events(monkeypatch)
    with opened(tmp_path / "a.db") as memory:
        conversation = memory.conversation("chat")
        made = [talk(conversation, f"Never use port {number}.") for number in range(ROUNDS)]
    assert any(one.rebuilt for one in made)
    assert "compaction_performed" not in decoded


def test_a_rebuild_is_the_same_with_kept_texts_and_with_texts_from_the_log(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as memory:
        conversation = memory.conversation("chat")
        made = [talk(conversation, f"Never use port {number}.") for number in range(ROUNDS)]
        kept = remembered(conversation)
    assert any(one.rebuilt for one in made)
    for number in range(ROUNDS):
        with opened(tmp_path / "b.db") as memory:
            talk(memory.conversation("chat"), f"Never use port {number}.")
    with opened(tmp_path / "b.db") as memory:
        assert remembered(memory.conversation("chat")) == kept


def test_erasing_takes_the_texts_that_a_rebuilt_summary_was_made_of(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as memory:
        conversation = memory.conversation("chat")
        for number in range(ROUNDS):
            said = f"Never use port {number}. My password is Quokka-{number}."
            if talk(conversation, said).rebuilt:
                break
        assert "Quokka-0" in str([*conversation.export("events")])
        assert conversation.erase(0).complete
        assert "Quokka-0" not in str([*conversation.export("events")])
        for number in range(ROUNDS):
            talk(conversation, f"Never use host {number}.")
            assert "Quokka-0" not in str(remembered(conversation))

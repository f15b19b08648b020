"""Notes of earlier compactions are decoded once, and never shown or compared after they were erased."""

import gc
from pathlib import Path

import pytest

import refold
from refold.domain import evolve
from refold.domain.notes import NotesFlushed
from tests.support.compacted_talks import opened, talk
from tests.support.counted_reads import decoded_events

RULE = "Never push to the branch release-7."


def noted(memory: refold.Memory) -> int:
    """The number of notes with the rule."""
    return sum(RULE in note.text for note in memory.conversation("chat").notes())


def test_a_compaction_decodes_no_notes_of_earlier_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded = decoded_events(monkeypatch)
    with opened(tmp_path / "a.db") as memory:
        conversation = memory.conversation("chat")
        for number in range(4):
            decoded.clear()
            talk(conversation, f"Never use port {number}.")
            assert decoded.count("notes_flushed") <= 2


def test_notes_that_no_compaction_reads_any_more_leave_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept() -> int:
        gc.collect()
        return sum(isinstance(one, NotesFlushed) for one in gc.get_objects())

    monkeypatch.setattr(evolve, "NOTES_REMEMBERED", 3)
    before = kept()
    with opened(tmp_path / "a.db") as memory:
        for number in range(7):
            talk(memory.conversation("chat"), f"Never use port {number}.")
        assert kept() - before <= 3


def test_a_rule_is_noted_again_after_another_process_erased_its_note(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with opened(path) as memory, opened(path) as other:
        conversation = memory.conversation("chat")
        talk(conversation, RULE)
        talk(conversation, RULE)
        assert noted(memory) == 1
        for position in [m.position for m in conversation.messages() if RULE in str(m)]:
            other.conversation("chat").erase(position)
        assert noted(memory) == 0
        talk(conversation, RULE)
        assert noted(memory) == 1

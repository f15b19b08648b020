"""The texts that a summary is rebuilt from are kept from the time they were written, and read only after opening."""

from pathlib import Path

import pytest

import refold
from refold.infrastructure.event_store import codec

ROUNDS = 7
"""Number of compactions. The sixth is a rebuild."""


def opened(path: Path) -> refold.Memory:
    return refold.open(path, window=6_000, summariser="extractive", scrub_megabytes=0)


def talk(conversation: refold.ConversationMemory, first: str) -> refold.CompactionResult:
    """Say something and go on until it leaves the context."""
    said = [
        first,
        *(f"Look at part {n}: " + "it is long and says little. " * 20 for n in range(30)),
    ]
    for text in said:
        turn = [{"role": "user", "content": text}, {"role": "assistant", "content": "Done."}]
        conversation.append(turn, recorded=True)
    made = conversation.compact()
    assert made.outcome == "performed"
    return made


def remembered(conversation: refold.ConversationMemory) -> tuple[str, ...]:
    """Return what the request shows for older messages."""
    return tuple(conversation.context().memory)


def test_a_rebuild_decodes_no_earlier_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[str] = []
    decode = codec.decode

    def note(name: str, *args: object) -> object:
        decoded.append(name)
        return decode(name, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(codec, "decode", note)
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

"""Deeds about what lasts: pins, their taking back, and the undoing of a compaction."""

from collections.abc import Iterator

import pytest

from refold.application.api.results import CompactionResult
from refold.domain.errors import InvalidMessage
from refold.domain.notes import MemoriesChosen
from refold.testing.request_parts import blocks_of

from .retold import Retold
from .talk import Spoken
from .witness import Pinned, Witness, as_bytes

MOST = 6
"""Pins at once: more would fill a small window."""


def pin_message(witness: Witness, position: int) -> None:
    """Pin what was said at a position, covered or not; a second time changes nothing."""
    before, said = witness.conversation.version, witness.spoken[position]
    words = said.words or [text for text in _results(said) if text.strip()]
    is_known = any(pin.position == position for pin in witness.pins.values())
    if not is_known and not _stands(witness, position) and not words:
        with pytest.raises(InvalidMessage):
            witness.conversation.pin(position)
        assert witness.conversation.version == before
        return
    pin_id = witness.conversation.pin(position)
    witness.is_stale = True
    version = witness.conversation.version
    assert is_known == (pin_id in witness.pins)
    assert witness.grown(before) == (not is_known)
    if not is_known:
        witness.pins[pin_id] = Pinned(position, tuple(words))
    assert witness.conversation.pin(position) == pin_id
    assert witness.conversation.version == version


def _results(said: Spoken) -> Iterator[str]:
    for block in said.blocks:
        for part in (block, *blocks_of(block.get("content"))):
            yield str(part.get("text", ""))


def _stands(witness: Witness, position: int) -> bool:
    story: Retold = witness.story
    covered = story.active is not None and story.active.coverage.covers(position)
    return not covered and all(at != position for at, _, _ in story.shortened)


def pin_text(witness: Witness, text: str) -> None:
    """Pin a text of one's own; a second time changes nothing."""
    pin_id = witness.conversation.pin(text)
    witness.is_stale = True
    witness.pins[pin_id] = Pinned(None, (text,))
    version = witness.conversation.version
    assert witness.conversation.pin(text) == pin_id
    assert witness.conversation.version == version


def unpin(witness: Witness, number: int) -> None:
    """Take one of the pins back; a second time changes nothing."""
    pin_id = sorted(witness.pins)[number % len(witness.pins)]
    assert witness.conversation.unpin(pin_id)
    witness.is_stale = True
    version = witness.conversation.version
    assert not witness.conversation.unpin(pin_id)
    assert witness.conversation.version == version
    del witness.pins[pin_id]


def revert(witness: Witness) -> CompactionResult:
    """Undo the newest compaction (invariants 3, 8, 22): no model is asked, nothing else is undone."""
    version, before = witness.conversation.version, witness.shown()
    undone, calls = witness.story.active, len(witness.summariser.calls)
    result = witness.conversation.revert_compaction("it was too early", **witness.extras)
    witness.is_stale = True
    assert len(witness.summariser.calls) == calls
    after = witness.shown()
    if undone is None or undone.trigger == "erasure":
        assert result.outcome == "nothing_to_do"
        assert result.reason == ("erased" if undone else "no_summary")
        assert witness.conversation.version == version
        assert as_bytes(after) == as_bytes(before)
        return result
    assert result.outcome == "reverted"
    # Then memories are chosen anew.
    chosen = isinstance(witness.events()[-1].event, MemoriesChosen)
    assert witness.grown(version) == 1 + chosen
    story = witness.story
    assert result.summary_id == (story.active.summary_id if story.active else None)
    [made] = [a.ended_at for a in story.performed if a.ended == undone]
    if all(made < v <= made + 1 for v in range(made + 1, version + 1)):
        # Nothing happened in between: the same messages are shown again, without their thinking.
        was = witness.shown(made - 1)
        assert len(after.messages) == len(was.messages) or story.states[made - 1].tokens
    return result

"""Deeds about what lasts: pins, their taking back, and the undoing of a compaction."""

from collections.abc import Iterator
from typing import Literal

import pytest

from refold.application.api.results import CompactionResult
from refold.domain.errors import InvalidMessage
from refold.domain.notes import MemoriesChosen
from refold.domain.quoted_text import SHORTEST_QUOTE
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


Decision = Literal["at once", "allowed", "refused", "later"]
OWN_NOTE = "The harbour of the quokkas is closed on {number} Mondays."


def edit(witness: Witness, tool: str, position: int, decision: Decision) -> None:
    """Let a model note or pin what was said at a position, or a text of its own, or propose to forget it.

    An edit that is proposed changes nothing that is shown, and a repeated call no event at all.
    """
    name, given = _call(witness, tool, position)
    conversation, before, version = (
        witness.conversation,
        witness.shown(),
        witness.conversation.version,
    )
    tools = conversation.tools(edits="allow" if decision == "at once" else "propose")
    told = tools.call(name, given)
    witness.is_stale = True
    if told.is_error or "already" in told.text:
        assert conversation.version == version, told
        return
    if decision != "at once":
        assert as_bytes(witness.shown()) == as_bytes(before), "proposed, and shown otherwise"
        assert conversation.version == version + 1
        assert "already" in tools.call(name, given).text
        edit_id = conversation.proposals()[-1].edit_id
        if decision == "allowed" and name != "forget":
            assert conversation.allow(edit_id).changed
            assert not conversation.allow(edit_id).changed
        elif decision != "later":
            assert conversation.refuse(edit_id)
    known = {pin.pin_id: pin for pin in conversation.pins()}
    for pin_id in known.keys() - witness.pins.keys():
        pin = known[pin_id]
        said = () if pin.position is None else witness.spoken[pin.position].words
        witness.pins[pin_id] = Pinned(pin.position, tuple(said) or (pin.text,))


def _call(witness: Witness, tool: str, position: int) -> tuple[str, dict[str, str]]:
    """Return the name of the tool and what it is given."""
    words = " ".join(" ".join(witness.spoken[position].words).split())[:40]
    note = words if tool == "quote" and len(words) >= SHORTEST_QUOTE else ""
    match tool:
        case "quote" | "remember":
            return "remember", {"text": note or OWN_NOTE.format(number=position), "kind": "fact"}
        case "pin":
            return "pin", {"message": str(position)}
        case _:
            return "forget", {"target": str(position)}


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

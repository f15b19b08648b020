"""Invariants of quoted memories: word for word, of what is out of sight, measured, chosen after decisions."""

from refold.application.api.results import Context
from refold.application.rendering.turn_builder import FRAME_TOKENS
from refold.domain.messages import readable
from refold.domain.notes import MemoriesChosen
from tests.support.judged_play import CHANGES_THE_PREFIX
from tests.support.witness import Witness, as_message

from .opened import opened


def memories_are_verbatim_and_measured(witness: Witness, shown: Context) -> None:
    """Requirement C4 and invariant 14: what is quoted was said, and counts with all that is around it."""
    state, block = witness.story.states[-1], opened(witness, shown).memories
    size = witness.counter.count_text(block) + FRAME_TOKENS if block else 0
    assert state.memories_tokens == size
    quoted = witness.story.quoted
    if quoted is None:
        return
    assert len(quoted.memories) <= witness.setting.memories
    for memory in quoted.memories:
        assert memory.position not in witness.erased
        said = readable(as_message(witness.spoken[memory.position].message))
        assert memory.text in said, f"{memory.text!r} is not in message {memory.position}"


def memories_are_chosen_after_decisions(witness: Witness) -> None:
    """Invariant 18: between two choices something else was decided that changes the prefix."""
    decided = True
    for event in (logged.event for logged in witness.events()):
        if isinstance(event, MemoriesChosen):
            assert decided or not event.memories, "chosen where nothing was decided"
            decided = decided and not event.memories
        elif isinstance(event, CHANGES_THE_PREFIX):
            decided = True

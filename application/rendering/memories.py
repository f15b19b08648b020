"""Quoted memories as they are rendered into the system text: data, each with its source."""

from collections.abc import Callable, Sequence

from refold.application.addresses import address_of
from refold.domain.remembering import ChosenMemory

from .blocks import copied
from .fences import fenced
from .texts import MEMORIES_GUIDANCE, MEMORIES_HEADING, OWNER_MEMORIES_GUIDANCE
from .turns import FRAME_TOKENS


def memories_text(thread_id: str, memories: Sequence[ChosenMemory]) -> str:
    """The guidance and the block that it speaks of; empty where nothing is quoted.

    A quotation stands between two fences that are longer than any in it, below its address: no text can
    pass for a heading, or for another quotation.
    """
    if not memories:
        return ""
    quoted = (
        f"[{address_of(memory.thread_id or thread_id, memory.position)}] {memory.role}{_when(memory)}\n"
        f"{fenced(copied(memory.text))}"
        for memory in memories
    )
    is_own = all(memory.thread_id is None for memory in memories)
    guidance = MEMORIES_GUIDANCE if is_own else OWNER_MEMORIES_GUIDANCE
    return "\n".join([guidance, "", MEMORIES_HEADING, *quoted])


def _when(memory: ChosenMemory) -> str:
    return f", {memory.at[:16]}Z" if memory.at else ""


def memories_size(
    thread_id: str, memories: Sequence[ChosenMemory], count: Callable[[str], int]
) -> int:
    """What quoting these costs, in tokens; 0 where there are none."""
    text = memories_text(thread_id, memories)
    return count(text) + FRAME_TOKENS if text else 0

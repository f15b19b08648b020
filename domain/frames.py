"""What a request carries besides the conversation: system text, tools, model and layout. Recorded when it
changes, each text once. These names are the storage format, like those in ``events``."""

from typing import Any, Literal

from .value import Value

SummaryPlace = Literal["user", "system"]
"""Where summary and ledger stand: open the first user turn, or close the system text (requirement A7)."""
REMEMBERED_PARTS = 64
"""So many parts of earlier frames are remembered besides those of the present one."""


class FramePart(Value, frozen=True):
    """A piece of system text or instructions, a block of system text, or the definition of a tool."""

    digest: str
    value: str | dict[str, Any]
    """A text, or a block or tool as it is sent."""


class RequestFrameChanged(Value, frozen=True):
    """The next request was made with another frame than the one recorded before.

    Thinking is signed for system text and tools as well: with this event all thinking before it is
    dropped, where the model binds it to them.
    """

    digest: str
    """Of the whole frame."""
    model: str | None
    place: SummaryPlace
    signed: bool
    """Whether the provider's own compaction block is sent in place of a summary's text."""
    binds_thinking: bool
    """Whether the model refuses thinking behind another prefix than the one that it was signed for."""
    asked_at: int
    """The version of the conversation that the first request with this change showed."""
    system: tuple[str, ...] | None
    """The digests of the parts of the caller's system text; None where none was given."""
    system_is_text: bool
    """Whether it was given as one string; else as blocks."""
    instructions: tuple[str, ...]
    """Of the instruction files, in the same way."""
    tools: tuple[str, ...]
    parts: tuple[FramePart, ...]
    """Those of these parts that no earlier event of the conversation has."""


class KnownPart(Value, frozen=True):
    """Where a part of a frame is recorded."""

    digest: str
    version: int
    """Of the event that has it."""


class KnownFrame(Value, frozen=True):
    """What the state remembers of the newest frame: never its texts."""

    digest: str
    version: int
    binds_thinking: bool
    parts: tuple[KnownPart, ...]
    """Of this frame, and the newest of those before it."""


def known_frame(before: KnownFrame | None, event: RequestFrameChanged, version: int) -> KnownFrame:
    """What is remembered after ``event``."""
    older = () if before is None else before.parts
    found = {part.digest: part for part in older}
    found |= {p.digest: KnownPart(digest=p.digest, version=version) for p in event.parts}
    used = dict.fromkeys((*(event.system or ()), *event.instructions, *event.tools))
    others = [part for digest, part in found.items() if digest not in used]
    present = [found[digest] for digest in used if digest in found]
    return KnownFrame(
        digest=event.digest,
        version=version,
        binds_thinking=event.binds_thinking,
        parts=(*others[-REMEMBERED_PARTS:], *present),
    )

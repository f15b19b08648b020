"""Request frames: system text, tools, model and layout. Each change is recorded, and each text only once.

These names are the storage format, like those in ``events``.
"""

from typing import Any, Literal

from .value import Value, build_in_order

SummaryPlace = Literal["user", "system"]
"""Place of summary and ledger: at the start of the first user turn, or at the end of the system text."""
REMEMBERED_PARTS = 64
"""Number of remembered parts of earlier frames, in addition to those of the current one."""


class FramePart(Value, frozen=True):
    """A system text, a block of it, an instruction text, or the definition of a tool."""

    digest: str
    value: str | dict[str, Any]
    """A text, or a block or tool as it is sent."""


class RequestFrameChanged(Value, frozen=True):
    """The next request was built with a different frame.

    Thinking is also signed for system text and tools. If the model binds thinking to them, this event
    drops all earlier thinking.
    """

    digest: str
    """Digest of the whole frame."""
    model: str | None
    place: SummaryPlace
    signed: bool
    """Whether the provider's compaction block is sent instead of the text of a summary."""
    binds_thinking: bool
    """Whether the model rejects thinking whose prefix has changed."""
    asked_at: int
    """Stream version that the first request with this frame showed."""
    system: tuple[str, ...] | None
    """Digests of the parts of the caller's system text, or None if it was not given."""
    system_is_text: bool
    """Whether the system text was given as one string rather than as blocks."""
    instructions: tuple[str, ...]
    """Digests of the instruction files."""
    tools: tuple[str, ...]
    parts: tuple[FramePart, ...]
    """Parts that no earlier event of the conversation contains."""


class KnownPart(Value, frozen=True):
    """The place where a part of a frame is recorded."""

    digest: str
    version: int
    """Version of the event that contains the part."""


class KnownFrame(Value, frozen=True):
    """The newest frame as the state remembers it, without its texts."""

    digest: str
    version: int
    binds_thinking: bool
    parts: tuple[KnownPart, ...]
    """Parts of this frame, and the newest parts of earlier frames."""


def known_frame(before: KnownFrame | None, event: RequestFrameChanged, version: int) -> KnownFrame:
    """Return the remembered frame after ``event``."""
    older = () if before is None else before.parts
    found = {part.digest: part for part in older}
    found |= {
        p.digest: build_in_order(KnownPart, digest=p.digest, version=version) for p in event.parts
    }
    used = dict.fromkeys((*(event.system or ()), *event.instructions, *event.tools))
    others = [part for digest, part in found.items() if digest not in used]
    present = [found[digest] for digest in used if digest in found]
    return build_in_order(
        KnownFrame,
        digest=event.digest,
        version=version,
        binds_thinking=event.binds_thinking,
        parts=(*others[-REMEMBERED_PARTS:], *present),
    )

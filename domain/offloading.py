"""The decision to show large tool results and inputs as previews; their content stays in the log."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from .conversation import Conversation
from .events import ShortenedPart, ToolContentOffloaded


class LargePart(NamedTuple):
    """One side of a tool call of a live message that could be shown as a preview."""

    position: int
    call_id: str
    side: Literal["call", "result"]
    tokens: int
    """Its size as it is shown now."""
    preview_tokens: int

    @property
    def freed(self) -> int:
        """What a preview saves, in tokens."""
        return self.tokens - self.preview_tokens


def over(parts: Sequence[LargePart], limit: float) -> tuple[LargePart, ...]:
    """The parts that are too large to stay whole at any time."""
    return tuple(part for part in parts if part.tokens > limit and part.freed > 0)


def enough(parts: Sequence[LargePart], excess: int) -> tuple[LargePart, ...]:
    """The parts to preview so that ``excess`` tokens are freed: oldest first, as few as needed."""
    chosen: list[LargePart] = []
    for part in sorted(parts, key=lambda p: p.position):
        if excess <= 0:
            break
        if part.freed > 0:
            chosen.append(part)
            excess -= part.freed
    return tuple(chosen)


def offload_parts(
    state: Conversation, parts: Sequence[LargePart], *, head: int, tail: int
) -> tuple[ToolContentOffloaded, ...]:
    """Show ``parts`` as previews from now on; what is no longer live is passed over."""
    live = {m.position for m in state.live}
    chosen = tuple(
        ShortenedPart(
            position=part.position, call_id=part.call_id, side=part.side, tokens_freed=part.freed
        )
        for part in parts
        if part.position in live and part.freed > 0
    )
    return (ToolContentOffloaded(parts=chosen, head=head, tail=tail),) if chosen else ()

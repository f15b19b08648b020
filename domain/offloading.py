"""The decision to show large tool results as previews; their content stays in the log."""

from collections.abc import Sequence

from .conversation import Conversation
from .events import OffloadedResult, ToolResultsOffloaded
from .policy import CompactionPolicy
from .value import Value


class LargeResult(Value, frozen=True):
    """A tool result of a live message that could be shown as a preview."""

    position: int
    call_id: str
    tokens: int
    preview_tokens: int

    @property
    def freed(self) -> int:
        """What a preview saves, in tokens."""
        return self.tokens - self.preview_tokens


def offload_giants(
    candidates: Sequence[LargeResult], room: int, policy: CompactionPolicy
) -> tuple[LargeResult, ...]:
    """The results that are too large to stay whole at any time (policy.giant_share of the room)."""
    limit = room * policy.giant_share
    return tuple(c for c in candidates if c.tokens > limit and c.freed > 0)


def offload_until(candidates: Sequence[LargeResult], excess: int) -> tuple[LargeResult, ...]:
    """The results to preview so that ``excess`` tokens are freed: oldest first, as few as needed."""
    chosen: list[LargeResult] = []
    for candidate in sorted(candidates, key=lambda c: c.position):
        if excess <= 0:
            break
        if candidate.freed > 0:
            chosen.append(candidate)
            excess -= candidate.freed
    return tuple(chosen)


def offload_results(
    state: Conversation, results: Sequence[LargeResult], policy: CompactionPolicy
) -> tuple[ToolResultsOffloaded, ...]:
    """Show ``results`` as previews from now on; what is no longer live is passed over."""
    live = {m.position for m in state.live}
    chosen = tuple(
        OffloadedResult(position=r.position, call_id=r.call_id, tokens_freed=r.freed)
        for r in results
        if r.position in live and r.freed > 0
    )
    if not chosen:
        return ()
    return (
        ToolResultsOffloaded(results=chosen, head=policy.preview_head, tail=policy.preview_tail),
    )

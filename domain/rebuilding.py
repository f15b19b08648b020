"""When a summary is built anew from leaf summaries instead of being carried on (against drift)."""

from .facts import ActiveSummary
from .policy import CompactionPolicy


def must_rebuild(summary: ActiveSummary | None, policy: CompactionPolicy) -> bool:
    """Whether the next summary is made from leaves, not from the one before (requirement B8).

    After ``rebuild_after`` generations, or once the prose is over ``rebuild_over_tokens``; only where
    leaves stand for all that is covered, for what no leaf holds would be lost.
    """
    if summary is None or not summary.leaves:
        return False
    is_worn = summary.generation + 1 >= policy.rebuild_after
    return is_worn or summary.text_tokens > policy.rebuild_over_tokens

"""When a summary is built anew from all texts before it instead of being carried on (against drift)."""

from .facts import ActiveSummary
from .policy import CompactionPolicy


def must_rebuild(
    summary: ActiveSummary | None, policy: CompactionPolicy, target_tokens: int
) -> bool:
    """Whether the next summary, of about ``target_tokens``, is made anew and not from the one before.

    After ``rebuild_after`` generations, or once the prose is far longer than what is asked for; only
    where leaves stand for all that is covered, for what no leaf holds would be lost.
    """
    if summary is None or not summary.leaves:
        return False
    is_worn = summary.generation + 1 >= policy.rebuild_after
    return is_worn or summary.text_tokens > _longest(policy, target_tokens)


def _longest(policy: CompactionPolicy, target_tokens: int) -> float:
    if policy.rebuild_over_tokens is not None:
        return policy.rebuild_over_tokens
    return policy.rebuild_over_share * target_tokens

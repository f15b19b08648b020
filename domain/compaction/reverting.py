"""The decision to revert the newest compaction."""

from refold.domain.conversation import Conversation, LiveMessage
from refold.domain.events import CompactionReverted


def revert_compaction(
    state: Conversation, before: Conversation, reason: str = ""
) -> tuple[CompactionReverted, ...]:
    """Revert the active summary, or do nothing if none exists.

    The covered messages return to the context. ``before`` is the conversation right before the summary was
    made. Messages and decisions since then stay, and the summary stays in the log for audit.
    """
    undone = state.summary
    if undone is None:
        return ()
    back = tuple(m for m in before.live if undone.coverage.covers(m.position))
    counted: tuple[LiveMessage, ...] = ()
    if state.older_live:
        # Newer messages are only counted by now, so these older ones can only be counted too.
        back, counted = (), back
    return (
        CompactionReverted(
            summary_id=undone.summary_id,
            restored=before.summary,
            messages=back,
            older_live=before.older_live + len(counted) + state.older_live,
            older_tokens=before.older_tokens
            + sum(m.tokens - m.thinking for m in counted)
            + state.older_tokens,
            live_from=min(before.live_from, state.live_from),
            reason=reason,
        ),
    )

"""The decision to undo the newest compaction: what it covered comes back into the context."""

from refold.domain.conversation import Conversation, LiveMessage
from refold.domain.events import CompactionReverted


def revert_compaction(
    state: Conversation, before: Conversation, reason: str = ""
) -> tuple[CompactionReverted, ...]:
    """Undo the active summary; nothing happens if there is none.

    ``before``: the conversation as it was right before that summary was made. What was appended
    since stays, and so does every other decision. The summary stays in the log for audit.
    """
    undone = state.summary
    if undone is None:
        return ()
    back = tuple(m for m in before.live if undone.coverage.covers(m.position))
    counted: tuple[LiveMessage, ...] = ()
    if state.older_live:
        # Newer messages are only counted by now: these lie before them.
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

"""Archiving: when a conversation has so many messages that the oldest are summarised, whatever their size."""

from refold.domain.conversation import Conversation

from .policy import CompactionPolicy


def live_messages(state: Conversation) -> int:
    """How many messages no summary covers, those that are only counted among them."""
    return len(state.live) + state.older_live


def archives_over(policy: CompactionPolicy) -> int | None:
    """With more live messages than so many the oldest are archived; None: however many there are."""
    return policy.archive_over


def archiving_leaves(policy: CompactionPolicy) -> int | None:
    """At most so many live messages are left then: the buffer below, so that it is not due again at once."""
    if policy.archive_over is None:
        return None
    return max(1, policy.archive_over - policy.archive_buffer)


def may_archive(state: Conversation, policy: CompactionPolicy) -> bool:
    """Whether there are so many live messages, and enough new ones since the last compaction, or the
    last failure (requirement B7).

    The guard of ``may_compact`` by number: where the cuts that are legal leave more than was asked for,
    or a summariser fails, nothing is tried again before the buffer has filled once more, or five times
    while the circuit breaker is open.
    """
    most = archives_over(policy)
    if most is None or live_messages(state) <= most:
        return False
    return state.length >= archives_again_at(state, policy)


def archives_again_at(state: Conversation, policy: CompactionPolicy) -> int:
    """The length of the conversation from which on it is archived again, if it has too many messages."""
    step = max(1, policy.archive_buffer)
    if state.setbacks.count:
        steps = 5 if state.setbacks.count >= policy.breaker_after else 1
        return state.setbacks.length + steps * step
    return state.summary.at_length + step if state.summary else 0

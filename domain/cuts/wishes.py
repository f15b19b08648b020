"""The keep rules: how much of the newest part a compaction leaves, as far as the target allows."""

from refold.domain.conversation import Conversation
from refold.domain.policy import CompactionPolicy
from refold.domain.turns import turn_beginnings


def latest_cut(
    state: Conversation, policy: CompactionPolicy, nearest: int, *, least: int | None = None
) -> int:
    """The latest cut that keeps as much of what the policy asks for as the target allows.

    ``nearest`` is the first cut that meets the target; this is never before it. The newest messages
    and tokens (D3, E2) are kept as many as fit, the newest turns as many as fit whole. ``least``: so many
    messages, in place of ``keep_last``.
    """
    messages = max(nearest, state.length - (least or policy.keep_last))
    return min(messages, _tokens(state, policy, nearest), _turns(state, policy, nearest))


def _tokens(state: Conversation, policy: CompactionPolicy, nearest: int) -> int:
    cut, missing = state.length, policy.keep_tokens
    for message in reversed(state.live):
        if missing <= 0 or cut <= nearest:
            break
        missing -= message.tokens
        cut = message.position
    return max(cut, nearest)


def _turns(state: Conversation, policy: CompactionPolicy, nearest: int) -> int:
    # The running turn is one of them. A turn that does not fit whole is no reason to keep a part of it.
    newest = turn_beginnings(state)[-policy.keep_turns :] if policy.keep_turns else ()
    return min((begin for begin in newest if begin >= nearest), default=state.length)

"""How much of the newest part is to be kept: the last messages, tokens, whole turns (D3, E2)."""

from refold.domain.conversation import Conversation
from refold.domain.policy import CompactionPolicy
from refold.domain.turns import turn_beginnings


def last_messages(state: Conversation, policy: CompactionPolicy) -> int:
    """The latest cut that keeps the newest ``keep_last`` messages."""
    return state.length - policy.keep_last


def last_tokens(state: Conversation, policy: CompactionPolicy) -> int:
    """The latest cut that keeps ``keep_tokens`` of the newest messages; -1 where there are fewer."""
    cut, missing = state.length, policy.keep_tokens
    for message in reversed(state.live):
        if missing <= 0:
            break
        missing -= message.tokens
        cut = message.position
    return cut if missing <= 0 else -1


def last_turns(state: Conversation, policy: CompactionPolicy) -> int:
    """The latest cut that keeps the newest ``keep_turns`` turns whole; -1 where there are fewer.

    The running turn is one of them.
    """
    if not policy.keep_turns:
        return state.length
    beginnings = turn_beginnings(state)
    return beginnings[-policy.keep_turns] if policy.keep_turns <= len(beginnings) else -1


def latest_cuts(state: Conversation, policy: CompactionPolicy) -> tuple[int, ...]:
    """The latest cut that each of them allows; whatever satisfies the smallest satisfies all."""
    wishes = (last_messages, last_tokens, last_turns)
    return tuple(sorted(wish(state, policy) for wish in wishes))

"""The newest message stays, because a context with only a summary leaves nothing to answer."""

from refold.domain.conversation import Conversation

from .rule import CutRule, Cuts, all_cuts


def legal(state: Conversation) -> Cuts:
    """Return the cuts up to the newest message."""
    return frozenset(p for p in all_cuts(state) if p < state.length)


def blocking_position(state: Conversation) -> int | None:
    """Return the position of the newest message, or None if there are no messages."""
    return state.length - 1 if state.length else None


RULE = CutRule(
    "newest_message", "the newest message must stay in the context", legal, blocking_position
)

"""The newest message stays: a context that is only a summary leaves nothing to answer."""

from refold.domain.conversation import Conversation

from .rule import CutRule, Cuts, all_cuts


def legal(state: Conversation) -> Cuts:
    """The cuts before the newest message or at it."""
    return frozenset(p for p in all_cuts(state) if p < state.length)


def since(state: Conversation) -> int | None:
    """The newest message."""
    return state.length - 1 if state.length else None


RULE = CutRule("newest_message", "the newest message must stay in the context", legal, since)

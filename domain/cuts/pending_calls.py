"""A tool call that waits for its result or for approval is never covered."""

from refold.domain.conversation import Conversation
from refold.domain.turns import pending_position

from .rule import CutRule, Cuts, all_cuts


def legal(state: Conversation) -> Cuts:
    """Return the cuts up to the response with the pending calls.

    A call that can no longer be answered blocks nothing: it stops waiting once the model speaks again.
    """
    pending = pending_position(state)
    if pending is None:
        return all_cuts(state)
    return frozenset(p for p in all_cuts(state) if p <= pending)


RULE = CutRule("pending_calls", "tool calls are waiting for their results", legal, pending_position)

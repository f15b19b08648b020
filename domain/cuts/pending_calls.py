"""A call that waits for its result (or for approval) is never covered (invariant 4)."""

from refold.domain.conversation import Conversation
from refold.domain.turns import pending_position

from .rule import CutRule, Cuts, all_cuts


def legal(state: Conversation) -> Cuts:
    """The cuts before the response with the pending calls, or at it.

    A call that can never be answered blocks nothing: once the model has spoken again, it waits no
    more (adk-python#7236).
    """
    pending = pending_position(state)
    if pending is None:
        return all_cuts(state)
    return frozenset(p for p in all_cuts(state) if p <= pending)


RULE = CutRule("pending_calls", "tool calls wait for their results", legal, pending_position)

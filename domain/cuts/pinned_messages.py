"""A pinned message stays in its position, word for word."""

from refold.domain.conversation import Conversation
from refold.domain.turns import add_companions

from .rule import StayRule


def kept(state: Conversation, allowance: int) -> frozenset[int]:
    """Return the pinned messages, each with its response and tool round, because a result needs its call.

    Pinned messages stay at any size; ``allowance`` is ignored.
    """
    del allowance
    return add_companions(state.live, state.pinned_positions)


RULE = StayRule("pinned_messages", "all messages that could be covered are pinned", kept)

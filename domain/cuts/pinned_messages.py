"""A pinned message stays where it stands, word for word (invariant 14, requirement F6)."""

from refold.domain.conversation import Conversation
from refold.domain.turns import with_companions

from .rule import StayRule


def kept(state: Conversation, allowance: int) -> frozenset[int]:
    """The pinned messages, each with its response and tool round: a result is nothing without its call.

    They stay whatever they cost; ``allowance`` is for what there is a choice about.
    """
    del allowance
    return with_companions(state.live, state.pinned_positions)


RULE = StayRule("pinned_messages", "all that could be covered is pinned", kept)

"""A pinned message stays where it stands, word for word (invariant 14, requirement F6)."""

from refold.domain.conversation import Conversation
from refold.domain.rounds import companions

from .rule import KeepRule


def kept(state: Conversation, allowance: int) -> frozenset[int]:
    """The pinned messages, each with its response and tool round: a result is nothing without its call.

    They stay whatever they cost; ``allowance`` is for what there is a choice about.
    """
    del allowance
    together = companions(state.live)
    pinned = (m for m in state.live if m.position in state.pinned_positions)
    wholes = (together.get(m.position, (m,)) for m in pinned)
    return frozenset(m.position for whole in wholes for m in whole)


RULE = KeepRule("pinned_messages", "all that could be covered is pinned", kept)

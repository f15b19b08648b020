"""What a cut rule is: a name, the reason a person is told, and the legal cuts of a state."""

from collections.abc import Callable
from typing import NamedTuple

from refold.domain.conversation import Conversation

Cuts = frozenset[int]


class CutRule(NamedTuple):
    """One reason why a conversation may not be cut just anywhere."""

    name: str
    because: str
    legal: Callable[[Conversation], Cuts]


def all_cuts(state: Conversation) -> Cuts:
    """Every position that a live message has, and the end."""
    return frozenset(m.position for m in state.live) | {state.length}

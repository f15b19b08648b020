"""Types of cut rules: rules for legal cuts, and rules for messages that always stay."""

from collections.abc import Callable
from typing import NamedTuple

from refold.domain.conversation import Conversation, LiveMessage

Cuts = frozenset[int]
Since = Callable[[Conversation], int | None]


def no_message(state: Conversation) -> int | None:
    """Return None, because no single message blocks the cut."""
    del state
    return None


class CutRule(NamedTuple):
    """A reason why some cuts are not legal."""

    name: str
    because: str
    legal: Callable[[Conversation], Cuts]
    since: Since = no_message
    """Function that returns the position of the blocking message if the rule leaves no cut."""


class StayRule(NamedTuple):
    """A reason why messages stay word for word, before or after the cut."""

    name: str
    because: str
    kept: Callable[[Conversation, int], frozenset[int]]
    """Function that returns the positions to keep. Optional ones must fit the given number of tokens."""


def all_cuts(state: Conversation) -> Cuts:
    """Return all positions of live messages, and the end of the conversation.

    Positions before messages that are only counted are left out, because the remaining size is unknown
    there.
    """
    cuts = {state.length}
    for message in reversed(state.live):
        if state.older_live and message.position + 1 not in cuts:
            break
        cuts.add(message.position)
    return frozenset(cuts)


def uncovered(state: Conversation) -> tuple[LiveMessage, ...]:
    """Return the remembered messages after the coverage and the preamble."""
    start = max(state.covered_to, state.preamble)
    return tuple(m for m in state.live if m.position >= start)

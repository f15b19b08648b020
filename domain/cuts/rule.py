"""What the rules of cutting are: where a cut is legal, and what stays whatever the cut."""

from collections.abc import Callable
from typing import NamedTuple

from refold.domain.conversation import Conversation, LiveMessage

Cuts = frozenset[int]
Since = Callable[[Conversation], int | None]


def nothing(state: Conversation) -> int | None:
    """No message in particular blocks."""
    del state
    return None


class CutRule(NamedTuple):
    """One reason why a conversation may not be cut just anywhere."""

    name: str
    because: str
    legal: Callable[[Conversation], Cuts]
    since: Since = nothing
    """The position of the message that blocks, when the rule leaves no cut."""


class StayRule(NamedTuple):
    """One reason why messages stay word for word, whether a cut lies before or behind them."""

    name: str
    because: str
    kept: Callable[[Conversation, int], frozenset[int]]
    """Their positions, given the tokens that they may take where there is a choice."""


def all_cuts(state: Conversation) -> Cuts:
    """Every position that a live message has, and the end; none before live messages that are only
    counted: what such a cut leaves is not known.
    """
    cuts = {state.length}
    for message in reversed(state.live):
        if state.older_live and message.position + 1 not in cuts:
            break
        cuts.add(message.position)
    return frozenset(cuts)


def uncovered(state: Conversation) -> tuple[LiveMessage, ...]:
    """The remembered messages that no summary reaches, without the preamble."""
    start = max(state.covered_to, state.preamble)
    return tuple(m for m in state.live if m.position >= start)

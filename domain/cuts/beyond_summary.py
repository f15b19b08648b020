"""A cut lies beyond what the active summary covers already: coverage only grows."""

from refold.domain.conversation import Conversation

from .rule import CutRule, Cuts, all_cuts


def legal(state: Conversation) -> Cuts:
    """The cuts that do not lose coverage and have a message before them that is remembered by name."""
    positions = (m.position for m in state.live if m.position >= state.preamble)
    first = next(positions, state.length)
    return frozenset(p for p in all_cuts(state) if p >= state.covered_to and p > first)


RULE = CutRule("beyond_summary", "there is nothing that a summary does not cover already", legal)

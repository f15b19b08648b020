"""A cut may not be before the end of the current coverage, because coverage only grows."""

from refold.domain.conversation import Conversation

from .rule import CutRule, Cuts, all_cuts


def legal(state: Conversation) -> Cuts:
    """Return the cuts that lose no coverage and have a remembered message before them."""
    positions = (m.position for m in state.live if m.position >= state.preamble)
    first = next(positions, state.length)
    return frozenset(p for p in all_cuts(state) if p >= state.covered_to and p > first)


RULE = CutRule("beyond_summary", "a summary already covers all messages that may be covered", legal)

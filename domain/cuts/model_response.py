"""One response of the model shares one fate, also when it comes as several messages (invariant 6)."""

from itertools import pairwise

from refold.domain.conversation import Conversation

from .rule import CutRule, Cuts, all_cuts


def legal(state: Conversation) -> Cuts:
    """The cuts that do not fall between a paused response and its continuation."""
    inside = {
        later.position
        for earlier, later in pairwise(state.live)
        if earlier.paused and earlier.role == later.role == "assistant"
    }
    return all_cuts(state) - inside


RULE = CutRule("model_response", "a response of the model may not be divided", legal)

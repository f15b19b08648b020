"""A cut may not divide a response of the model, even if the response consists of several messages."""

from refold.domain.conversation import Conversation
from refold.domain.turns import rounds

from .rule import CutRule, Cuts, all_cuts


def legal(state: Conversation) -> Cuts:
    """Return the cuts that are not between a paused response and its continuation."""
    inside = {m.position for r in rounds(state.live) for m in r.response[1:]}
    return all_cuts(state) - inside


def blocking_position(state: Conversation) -> int | None:
    """Return the position where the newest response in several messages begins, or None."""
    begun = (r.response[0].position for r in reversed(rounds(state.live)) if len(r.response) > 1)
    return next(begun, None)


RULE = CutRule(
    "model_response", "a response of the model may not be divided", legal, blocking_position
)

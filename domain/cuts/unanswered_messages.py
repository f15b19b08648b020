"""What the user said since the model last spoke is unanswered, and never covered (invariant 4)."""

from refold.domain.conversation import Conversation

from .rule import CutRule, Cuts, all_cuts


def legal(state: Conversation) -> Cuts:
    """The cuts before the first message after the model's last words, or at it."""
    first_unanswered = state.length
    for message in reversed(state.live):
        if message.role == "assistant":
            break
        first_unanswered = message.position
    return frozenset(p for p in all_cuts(state) if p <= first_unanswered)


RULE = CutRule("unanswered_messages", "the model has not answered these messages yet", legal)

"""What the user said since the model last spoke is unanswered, and never covered (invariant 4)."""

from refold.domain.conversation import Conversation

from .rule import CutRule, Cuts, all_cuts, uncovered


def since(state: Conversation) -> int | None:
    """The first message after the model's last words."""
    first = None
    for message in reversed(uncovered(state)):
        if message.role == "assistant":
            break
        first = message.position
    return first


def legal(state: Conversation) -> Cuts:
    """The cuts before the first message after the model's last words, or at it."""
    first = since(state)
    return frozenset(p for p in all_cuts(state) if first is None or p <= first)


RULE = CutRule("unanswered_messages", "the model has not answered these messages yet", legal, since)

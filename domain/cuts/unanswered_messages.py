"""Messages since the model's last response are unanswered and never covered."""

from refold.domain.conversation import Conversation

from .rule import CutRule, Cuts, all_cuts, uncovered


def blocking_position(state: Conversation) -> int | None:
    """Return the position of the first message after the model's last response, or None."""
    first = None
    for message in reversed(uncovered(state)):
        if message.role == "assistant":
            break
        first = message.position
    return first


def legal(state: Conversation) -> Cuts:
    """Return the cuts up to the first message after the model's last response."""
    first = blocking_position(state)
    return frozenset(p for p in all_cuts(state) if first is None or p <= first)


RULE = CutRule(
    "unanswered_messages", "the model has not answered these messages yet", legal, blocking_position
)

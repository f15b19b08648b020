"""The decision to give a conversation a name for people."""

from .conversation import Conversation
from .events import ConversationLabelled

LONGEST_LABEL = 200


def label_conversation(state: Conversation, label: str) -> tuple[ConversationLabelled, ...]:
    """Label the conversation; nothing happens if it has this label already or the label is blank."""
    label = " ".join(label.split())[:LONGEST_LABEL]
    if not label or label == state.label:
        return ()
    return (ConversationLabelled(label=label),)

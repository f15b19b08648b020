"""The decision to give a conversation a name for people."""

from .conversation import Conversation
from .events import ConversationLabelled

LONGEST_LABEL = 200
WITHDRAWN_LABEL = "[Withdrawn: it quoted a message that was erased.]"


def label_as_recorded(state: Conversation, label: str) -> tuple[ConversationLabelled, ...]:
    """The same, for the label of a recording that is imported again: what was withdrawn stays so."""
    return () if state.label == WITHDRAWN_LABEL else label_conversation(state, label)


def label_conversation(state: Conversation, label: str) -> tuple[ConversationLabelled, ...]:
    """Label the conversation; nothing happens if it has this label already or the label is blank."""
    label = " ".join(label.split())[:LONGEST_LABEL]
    if not label or label == state.label:
        return ()
    return (ConversationLabelled(label=label),)

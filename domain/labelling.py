"""The decision to give a conversation a name for people to read."""

from .conversation import Conversation
from .errors import InvalidSetting
from .events import ConversationLabelled

LONGEST_LABEL = 200
WITHDRAWN_LABEL = "[Withdrawn: it quoted a message that was erased.]"


def label_from_recording(state: Conversation, label: str) -> tuple[ConversationLabelled, ...]:
    """Label the conversation as a recording does, unless its label was withdrawn.

    A blank label is ignored.
    """
    if state.label == WITHDRAWN_LABEL or not label.strip():
        return ()
    return label_conversation(state, label)


def label_conversation(state: Conversation, label: str) -> tuple[ConversationLabelled, ...]:
    """Label the conversation, or do nothing if it already has this label.

    Raises:
        InvalidSetting: the label is blank.
    """
    given, label = label, " ".join(label.split())[:LONGEST_LABEL]
    if not label:
        raise InvalidSetting(
            f"label={given[:20]!r} is blank: give a text with at least one visible character",
            setting="label",
            value=given,
        )
    if label == state.label:
        return ()
    return (ConversationLabelled(label=label),)

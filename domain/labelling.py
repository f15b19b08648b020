"""The decision to give a conversation a name for people."""

from .conversation import Conversation
from .errors import InvalidSetting
from .events import ConversationLabelled

LONGEST_LABEL = 200
WITHDRAWN_LABEL = "[Withdrawn: it quoted a message that was erased.]"


def label_as_recorded(state: Conversation, label: str) -> tuple[ConversationLabelled, ...]:
    """The same, for the label of a recording that is imported again: what was withdrawn stays so."""
    if state.label == WITHDRAWN_LABEL or not label.strip():
        return ()
    return label_conversation(state, label)


def label_conversation(state: Conversation, label: str) -> tuple[ConversationLabelled, ...]:
    """Label the conversation; nothing happens if it has this label already.

    Raises:
        InvalidSetting: the label is blank.
    """
    given, label = label, " ".join(label.split())[:LONGEST_LABEL]
    if not label:
        raise InvalidSetting(
            f"label={given[:20]!r} names nothing: give a text of at least one character that can be seen",
            setting="label",
            value=given,
        )
    if label == state.label:
        return ()
    return (ConversationLabelled(label=label),)

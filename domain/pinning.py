"""The decisions to pin a message or a text, to unpin it, and to name a conversation for people to read."""

from .conversation import Conversation
from .errors import InvalidMessage, InvalidSetting, UnknownMessage
from .events import ConversationLabelled, MessagePinned, MessageUnpinned
from .value import build_in_order

MOST_PINS = 256
"""Maximum number of pins, because pinned content costs tokens in every request."""


def stays_in_context(state: Conversation, position: int) -> bool:
    """Return whether a pinned message stays in the context: it is live and shown whole.

    Raises:
        UnknownMessage: there is no message at this position.
    """
    if not 0 <= position < state.length:
        raise UnknownMessage(position, state.length)
    return position < state.preamble or any(
        m.position == position and not m.offloads for m in state.live
    )


def pin(
    state: Conversation, pin_id: str, *, position: int | None, text: str, tokens: int
) -> tuple[MessagePinned, ...]:
    """Pin the message at ``position`` or a separate text, or do nothing if the message is pinned already.

    A live message stays in the context. If a summary covers the message, or if it is shortened, the ledger
    shows ``text`` with its words. ``tokens`` is the size of that line.

    Raises:
        UnknownMessage: there is no message at this position.
        InvalidMessage: there are no words to keep, or there are 256 pins already.
    """
    if position is not None:
        if any(known.position == position for known in state.pins):
            return ()
        if stays_in_context(state, position):
            text, tokens = "", 0
        elif not text.strip():
            raise InvalidMessage(
                "position",
                f"message {position} has no words to pin; use conversation.read({position}) to read it",
            )
    elif not text.strip():
        raise InvalidMessage("text", "is blank: give the text to pin")
    if len(state.pins) >= MOST_PINS:
        raise InvalidMessage("pin", f"there are {MOST_PINS} pins already: unpin one first")
    return (
        build_in_order(MessagePinned, pin_id=pin_id, position=position, text=text, tokens=tokens),
    )


def unpin(state: Conversation, pin_id: str) -> tuple[MessageUnpinned, ...]:
    """Remove a pin, or do nothing if there is no pin with this id."""
    known = any(pin.pin_id == pin_id for pin in state.pins)
    return (MessageUnpinned(pin_id=pin_id),) if known else ()


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

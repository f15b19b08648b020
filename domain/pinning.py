"""The decisions to keep a message or a text word for word, and to stop doing so."""

from .conversation import Conversation
from .errors import InvalidMessage, UnknownMessage
from .events import MessagePinned, MessageUnpinned

MOST_PINS = 256
"""What is always there is also always paid for; a list that only grows is no memory."""


def stands_in_context(state: Conversation, position: int) -> bool:
    """Whether the message stays where it is when it is pinned: it is there, and shown whole.

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
    """Pin the message at ``position``, or a text of its own; nothing happens if it is pinned already.

    A message that is in the context stays there. Of one that a summary covers, or that is shown
    shortened, the ledger shows ``text``, its words; ``tokens`` is the size of that line.

    Raises:
        UnknownMessage: there is no message at this position.
        InvalidMessage: there are no words to keep, or there are 256 pins already.
    """
    if position is not None:
        if any(known.position == position for known in state.pins):
            return ()
        if stands_in_context(state, position):
            text, tokens = "", 0
        elif not text.strip():
            raise InvalidMessage(
                "position",
                f"message {position} has no words that could be kept; conversation.read({position}) still gives it",
            )
    elif not text.strip():
        raise InvalidMessage("text", "is blank: there is nothing to keep")
    if len(state.pins) >= MOST_PINS:
        raise InvalidMessage("pin", f"there are {MOST_PINS} pins already: unpin one first")
    return (MessagePinned(pin_id=pin_id, position=position, text=text, tokens=tokens),)


def unpin(state: Conversation, pin_id: str) -> tuple[MessageUnpinned, ...]:
    """Take a pin back; nothing happens if there is no such pin."""
    known = any(pin.pin_id == pin_id for pin in state.pins)
    return (MessageUnpinned(pin_id=pin_id),) if known else ()

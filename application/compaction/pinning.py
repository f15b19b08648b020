"""Pin a message or a text, unpin it, and list the pins."""

from collections.abc import Sequence
from typing import cast

from refold.application.conversation.addresses import SCHEME, position_in
from refold.application.conversation.entries import PinnedText
from refold.application.conversation.loaded import LoadedConversation
from refold.application.conversation.parsing import is_utf8
from refold.application.conversation.stream_places import missing_message, stored_messages
from refold.application.rendering.render import ledger_text
from refold.application.runtime.core import Core
from refold.domain.errors import InvalidMessage
from refold.domain.events import Event, MessagePinned
from refold.domain.messages import Message, said, text_of
from refold.domain.pinning import pin, stays_in_context, unpin
from refold.domain.value import Value


class PinnedItem(Value, frozen=True):
    """A message or text that is kept word for word."""

    pin_id: str
    position: int | None
    """Position of the pinned message, or None for a pinned text."""
    text: str
    """Text that is kept."""
    in_place: bool
    """True if the message itself stays in the context; otherwise its words are in the ledger."""


def add_pin(core: Core, thread_id: str, what: int | str) -> str:
    """Pin a text or the message at a position. Return the pin's id, even if it is pinned already.

    Raises:
        UnknownMessage: there is no message at this position.
        InvalidAddress, ForeignAddress: the text begins like an address but is not one of this conversation.
        InvalidMessage: there is no text to keep, or there are too many pins.
    """
    if isinstance(what, bool) or not isinstance(cast("object", what), int | str):
        raise InvalidMessage("pin", f"{what!r:.40} is neither a position nor a text")
    if isinstance(what, str) and what.startswith(SCHEME):
        what = position_in(thread_id, what)  # An address copied from a context means the message.
    text = what if isinstance(what, str) else ""
    if not is_utf8(text):
        raise InvalidMessage("text", "has half of a surrogate pair and could never be sent")
    pinned = ""

    def decide(loaded: LoadedConversation) -> Sequence[Event]:
        nonlocal pinned
        pinned = find_pin(loaded.present(), what) or core.new_id()
        return pin_content(core, loaded, what, pinned)

    core.log.transact(thread_id, decide, at=core.clock())
    return pinned


def pin_content(
    core: Core, loaded: LoadedConversation, what: int | str, pin_id: str
) -> tuple[MessagePinned, ...]:
    """Return the event that pins a text or the message at a position, or none if it is pinned already.

    Raises:
        UnknownMessage: there is no message at this position.
        InvalidMessage: there is no text to keep, or there are too many pins.
    """
    if find_pin(loaded, what) is not None:
        return ()
    position, words = (what, "") if isinstance(what, int) else (None, what)
    if position is not None and not stays_in_context(loaded.state, position):
        words = _words(core, loaded.thread_id, position)
    line = ledger_text((), (PinnedText(pin_id, position, words, 0),))
    tokens = core.counter.count_text(line)
    return pin(loaded.state, pin_id, position=position, text=words, tokens=tokens)


def remove_pin(core: Core, thread_id: str, pin_id: str) -> bool:
    """Remove a pin. Return False if there is no such pin."""
    _, events = core.log.transact(
        thread_id, lambda loaded: unpin(loaded.present().state, pin_id), at=core.clock()
    )
    return bool(events)


def list_pins(core: Core, thread_id: str) -> tuple[PinnedItem, ...]:
    """Return all pins, oldest first."""
    loaded = core.log.load(thread_id)
    texts = {p.pin_id: p.text for p in loaded.window.pins}
    items: list[PinnedItem] = []
    for known in loaded.state.pins:
        in_place = known.pin_id not in texts
        if in_place and known.position is not None:
            text = _words(core, thread_id, known.position)
        else:
            text = texts[known.pin_id]
        items.append(
            PinnedItem(pin_id=known.pin_id, position=known.position, text=text, in_place=in_place)
        )
    return tuple(items)


def find_pin(loaded: LoadedConversation, what: int | str) -> str | None:
    """Return the id of the pin of a text, or of the message at a position, or None."""
    for known in loaded.state.pins:
        if known.position is not None and known.position == what:
            return known.pin_id
    same = (p.pin_id for p in loaded.window.pins if p.position is None and p.text == what)
    return next(same, None)


def _words(core: Core, thread_id: str, position: int) -> str:
    # Read the log: a read model may be outdated, and must not decide what is kept.
    found = stored_messages(core, thread_id, position, position + 1)
    if not found:
        raise missing_message(core, thread_id, position)
    return words_to_pin(found[0].message)


def words_to_pin(message: Message) -> str:
    """Return the words that a pin keeps of a message; for one with only tool results, their texts."""
    words = said(message)
    if words.strip():
        return words
    return "\n".join(t for b in message.blocks() if (t := text_of(b)).strip())

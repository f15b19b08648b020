"""Use cases: keep a message or a text word for word, stop doing so, and see what is kept."""

from collections.abc import Sequence

from refold.application.conversation.addresses import SCHEME, position_in
from refold.application.conversation.loaded import LoadedConversation
from refold.application.conversation.parsing import is_utf8
from refold.application.conversation.stream_places import stored_messages
from refold.application.projections.window import PinnedText
from refold.application.rendering.render import ledger_text
from refold.application.runtime.core import Core
from refold.domain.errors import InvalidMessage, UnknownMessage
from refold.domain.events import Event
from refold.domain.messages import Message, said, text_of
from refold.domain.pinning import pin, stays_in_context, unpin
from refold.domain.value import Value


class PinnedItem(Value, frozen=True):
    """Something that is kept word for word."""

    pin_id: str
    position: int | None
    """The message that it comes from, if it comes from one."""
    text: str
    """The words that are kept."""
    in_place: bool
    """Whether the message itself stays in the context; else its words stand in the ledger."""


def pin_down(core: Core, thread_id: str, what: int | str) -> str:
    """Pin the message at a position, or a text; the pin's id, also where it is pinned already.

    Raises:
        UnknownMessage: there is no message at this position.
        InvalidAddress, ForeignAddress: it begins like an address and is none of this conversation.
        InvalidMessage: there are no words to keep, or there are too many pins already.
    """
    if isinstance(what, bool):
        raise InvalidMessage("pin", f"{what} is neither a position nor a text")
    if isinstance(what, str) and what.startswith(SCHEME):
        what = position_in(thread_id, what)  # Copied from a context: the message is meant.
    text = what if isinstance(what, str) else ""
    if not is_utf8(text):
        raise InvalidMessage("text", "holds half of a surrogate pair: it could never be sent")
    pinned = ""

    def decide(loaded: LoadedConversation) -> Sequence[Event]:
        nonlocal pinned
        known = _known(core, loaded.present(), what)
        if known is not None:
            pinned = known
            return ()
        position = what if isinstance(what, int) else None
        words = text
        if position is not None and not stays_in_context(loaded.state, position):
            words = _words(core, thread_id, position)
        pinned = core.new_id()
        line = ledger_text((), (PinnedText(pinned, position, words, 0),))
        tokens = core.counter.count_text(line)
        return pin(loaded.state, pinned, position=position, text=words, tokens=tokens)

    core.log.transact(thread_id, decide, at=core.clock())
    return pinned


def take_back(core: Core, thread_id: str, pin_id: str) -> bool:
    """Unpin; False if there is no such pin."""
    _, events = core.log.transact(
        thread_id, lambda loaded: unpin(loaded.present().state, pin_id), at=core.clock()
    )
    return bool(events)


def pinned_items(core: Core, thread_id: str) -> tuple[PinnedItem, ...]:
    """What is pinned, oldest first."""
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


def _known(core: Core, loaded: LoadedConversation, what: int | str) -> str | None:
    for known in loaded.state.pins:
        if known.position is not None and known.position == what:
            return known.pin_id
    same = (p.pin_id for p in loaded.window.pins if p.position is None and p.text == what)
    return next(same, None)


def _words(core: Core, thread_id: str, position: int) -> str:
    # The log itself is asked: a read model may be behind, and must not decide what is kept.
    found = stored_messages(core, thread_id, position, position + 1)
    if not found:
        raise UnknownMessage(position, core.log.load(thread_id).state.length, lost=True)
    return _words_of(found[0].message)


def _words_of(message: Message) -> str:
    """What a message says in words; of one that only carries tool results, their texts."""
    words = said(message)
    if words.strip():
        return words
    return "\n".join(t for b in message.blocks() if (t := text_of(b)).strip())

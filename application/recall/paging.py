"""Use case: read one long message part by part, such as a tool's output that was offloaded."""

from refold.application.addresses import address_of, position_in
from refold.application.core import Core
from refold.application.projections.seen import Fate
from refold.application.reading import read_back
from refold.domain.value import Value

from .inquiry import whole_number
from .sight import Sight

USUAL_CHARACTERS = 8_000
LEAST_CHARACTERS, MOST_CHARACTERS = 100, 1_000_000


class TextPart(Value, frozen=True):
    """A part of what a message says, word for word."""

    thread_id: str
    position: int
    version: int
    """Of the conversation when the message was appended."""
    message_id: str
    address: str
    role: str
    at: str
    """When it was written, or else logged: ISO 8601, UTC."""
    text: str
    start: int
    stop: int
    """Characters ``start`` up to but not including ``stop`` of all that it says."""
    length: int
    """How many there are."""
    next: int | None
    """Ask again with ``start`` here for what follows; None: this is the end."""
    fate: Fate
    erased: bool


def read_part(
    core: Core,
    thread_id: str,
    where: str | int,
    start: int = 0,
    max_characters: int = USUAL_CHARACTERS,
) -> TextPart:
    """A part of the message at an address or a position, from character ``start`` on: at most
    ``max_characters`` long (100 to 1,000,000), and up to the end of a line where one is near.

    Raises:
        ForeignAddress, InvalidAddress, UnknownMessage: there is no such message in this conversation.
        InvalidSetting: ``start`` or ``max_characters`` cannot be; says how long the message is.
        ConversationGone: the conversation was erased as a whole.
    """
    most = whole_number("max_characters", max_characters, LEAST_CHARACTERS, MOST_CHARACTERS)
    stored = read_back(core, thread_id, position_in(thread_id, where))
    text = stored.text
    whole_number("start", start, 0, max(0, len(text)))
    stop = _end(text, start, most)
    return TextPart(
        thread_id=thread_id,
        position=stored.position,
        version=stored.version,
        message_id=stored.message_id,
        address=address_of(thread_id, stored.position),
        role=stored.message.role,
        at=stored.at,
        text=text[start:stop],
        start=start,
        stop=stop,
        length=len(text),
        next=stop if stop < len(text) else None,
        fate=Sight(core.log.load(thread_id)).fate(stored.position, erased=stored.erased),
        erased=stored.erased,
    )


def _end(text: str, start: int, most: int) -> int:
    stop = min(len(text), start + most)
    if stop == len(text):
        return stop
    line = text.rfind("\n", start + most * 4 // 5, stop)
    return stop if line < 0 else line + 1

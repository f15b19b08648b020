"""The tool ``read_offloaded``: the whole message behind an address, a piece at a time."""

from refold.application.api.results import StoredMessage
from refold.application.conversation.addresses import address_of
from refold.application.conversation.stream_places import read_back
from refold.domain.text_cuts import longest_beginning

from .answers import EMPTY, ERASED, GUIDANCE, moment, named, quoted
from .arguments import ReadArguments
from .names import QUERY_HISTORY, RECALL_MEMORY
from .tool_scope import Reach, ToolRefusal

DESCRIPTION = f"""\
Read one earlier message whole, word for word: the tool result behind a preview, a text that was cut short, a \
message that an answer names. Call it when you see an address, refold://THREAD/POSITION, and need what is not \
shown: the exact lines of a file that was read, all of a command's output.
Comes back: its position, role, time and text; of a long one a piece, and the start to ask for the next. No \
images, no thinking. It shows what was recorded then: a file may have changed since. It cannot search: \
{RECALL_MEMORY} does, and {QUERY_HISTORY} for an exact text."""

FRAME = 80
"""Tokens that stand around the text besides its place, at most."""


def read_offloaded(reach: Reach, arguments: ReadArguments) -> str:
    """The answer to a call.

    Raises:
        ToolRefusal: it is no address, one out of reach, or the message has no such character.
        UnknownMessage: there is no message at this position.
        LogError: the log cannot be read.
    """
    thread = reach.thread_of(arguments.address)
    message = read_back(reach.core, thread, arguments.address.strip())
    if message.position in reach.hidden(thread):
        raise ToolRefusal(f"message {message.position} of that conversation is out of reach.")
    address = address_of(thread, message.position)
    whose = "" if thread == reach.home else f" of conversation {named(thread, 120)}"
    head = f"Message {message.position}{whose}, {message.message.role}, {moment(message.at)}, {address}"
    if message.erased:
        return f"{head}\n{ERASED}"
    return _piece(reach, head, message, arguments.start)


def _piece(reach: Reach, head: str, message: StoredMessage, start: int) -> str:
    text = message.text
    if start and start >= len(text):
        raise ToolRefusal(
            f"the message has {len(text):,} characters: start must be less than that, 0 for its beginning."
        )
    if not text:
        return f"{head}\n{EMPTY}"
    room = max(20, reach.room - reach.count(head) - FRAME)
    piece = longest_beginning(text[start:], room, reach.count) or text[start : start + 1]
    stop = start + len(piece)
    which = f"characters {start:,} to {stop:,} of {len(text):,}"
    more = f"\n\nNext: start {stop} for what follows." if stop < len(text) else ""
    return f"{head}, {which}. {GUIDANCE}\n{quoted(piece)}{more}"

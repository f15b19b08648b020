"""Addresses of messages, ``refold://THREAD/POSITION``, and the streams that hold a thread."""

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

from refold.application.errors import ForeignAddress, InvalidAddress

SCHEME = "refold://"
# Everything else of a thread id is percent-encoded, so that an address has no blank in it and ends
# where it ends, in brackets and quotation marks as well. A change here changes rendered bytes.
_AS_IT_IS = "/:@!$&'*+=~"
_FORM = re.compile(r"refold://(.+)/([0-9]{1,15})", re.DOTALL)


class Address(NamedTuple):
    """A message of a conversation, as an address names it."""

    thread_id: str
    position: int
    as_written: str
    """The thread id as it stands in the address, not decoded."""

    def names(self, thread_id: str) -> bool:
        """Whether it is of this conversation. Ids were once written without encoding."""
        return thread_id in (self.thread_id, self.as_written)


def address_of(thread_id: str, position: int) -> str:
    """The address under which a message can be read back."""
    return f"{SCHEME}{quote(thread_id, safe=_AS_IT_IS)}/{position}"


def parse_address(text: str) -> Address:
    """Take an address apart.

    Raises:
        InvalidAddress: it is none.
    """
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise InvalidAddress(
            f"{text[:80]!r} is no address of a message: these look like {SCHEME}THREAD/POSITION, "
            f"{address_of('thread-42', 17)} say"
        )
    written = found[1]
    return Address(unquote(written), int(found[2]), written)


def position_in(thread_id: str, where: str | int) -> int:
    """The position that an address, or a plain position, names in this conversation.

    Raises:
        ForeignAddress: it is of another conversation.
        InvalidAddress: it is none.
    """
    if isinstance(where, int) and not isinstance(where, bool):
        return where
    text = str(where).strip()
    if text.isdecimal() and text.isascii():
        return int(text[:15])
    address = parse_address(text)
    if not address.names(thread_id):
        raise ForeignAddress(text, address.thread_id, thread_id)
    return address.position


SEPARATOR = "\x1f"
"""Stands between a thread id and the number of its stream; no thread id has it, since those are printable."""


def successor_of(stream: str) -> str:
    """Return the name of the stream that follows when this one was erased."""
    thread_id, _, number = stream.partition(SEPARATOR)
    return f"{thread_id}{SEPARATOR}{int(number or 1) + 1}"


def thread_of(stream: str) -> str:
    """Return the thread id of a stream."""
    return stream.partition(SEPARATOR)[0]

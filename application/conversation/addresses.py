"""Addresses of messages, ``refold://THREAD/POSITION``, and names of the streams of a thread."""

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote

from refold.application.errors import ForeignAddress, InvalidAddress
from refold.domain.lazy_pattern import lazy_pattern

SCHEME = "refold://"
# All other characters of a thread id are percent-encoded, so that an address has no blank in it and
# ends where it should, in brackets and quotation marks too. A change here changes rendered bytes.
_AS_IT_IS = "/:@!$&'*+=~"
_FORM = lazy_pattern(r"refold://(.+)/([0-9]{1,15})", re.DOTALL)


class Address(NamedTuple):
    """A parsed address of a message."""

    thread_id: str
    position: int
    as_written: str
    """Thread id as written in the address, not decoded."""

    def names(self, thread_id: str) -> bool:
        """Return whether the address belongs to a conversation. Old addresses without encoding match as well."""
        return thread_id in (self.thread_id, self.as_written)


def address_of(thread_id: str, position: int) -> str:
    """Return the address of a message."""
    return f"{SCHEME}{_quoted(thread_id)}/{position}"


@lru_cache(maxsize=64)
def _quoted(thread_id: str) -> str:
    return quote(thread_id, safe=_AS_IT_IS)


_MARKER = lazy_pattern(rf"\[Content unavailable: {SCHEME}\S+/[0-9]{{1,15}}\]")


def marker_of(thread_id: str, position: int) -> str:
    """Return the text that replaces the words of an erased message."""
    return f"[Content unavailable: {address_of(thread_id, position)}]"


def is_marker(text: str) -> bool:
    """Return whether a text is that of an erased message, in any conversation."""
    return _MARKER.fullmatch(text) is not None


def parse_address(text: str) -> Address:
    """Parse an address.

    Raises:
        InvalidAddress: the text is not an address.
    """
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise InvalidAddress(
            f"{text[:80]!r} is not the address of a message: addresses look like {SCHEME}THREAD/POSITION, "
            f"for example {address_of('thread-42', 17)}"
        )
    written = found[1]
    return Address(unquote(written), int(found[2]), written)


def position_in(thread_id: str, where: str | int) -> int:
    """Return the position in this conversation of an address or a plain position.

    Raises:
        ForeignAddress: the address belongs to another conversation.
        InvalidAddress: the text is not an address.
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
"""Separator of a thread id and its stream number; not printable, so it is never in a thread id."""


def successor_of(stream: str) -> str:
    """Return the name of the stream that follows this one after its erasure."""
    thread_id, _, number = stream.partition(SEPARATOR)
    return f"{thread_id}{SEPARATOR}{int(number or 1) + 1}"


def thread_of(stream: str) -> str:
    """Return the thread id of a stream."""
    return stream.partition(SEPARATOR)[0]

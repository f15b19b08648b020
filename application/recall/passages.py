"""Passages: the pieces of messages that are indexed, ranked and shown."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from refold.application.agent_tools.tool_names import asks_memory, is_answer_of_memory
from refold.application.ports.conversation_log import LoggedEvent, MessageFields
from refold.application.projections.row_changes import listed_time
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import CALLS, Block, has_words, readable_blocks
from refold.domain.text_cuts import last_mark
from refold.domain.value import is_object

from .tokens import counted_line, digest_of_utf8

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)

VERSION = 5
"""Version of the passages; increase it when they change, so that indexes are rebuilt."""
LONGEST = 2_000
"""Largest number of characters of a passage."""
PAUSE = timedelta(minutes=30)
"""Pause after which a new session begins."""
PARTS = 1 << 16
"""Largest number of passages of one message; further ones cannot be found."""
OPEN_CALLS = 200
"""Number of calls to remember until their results arrive; the oldest are dropped."""

PassageKind = Literal["text", "call", "result"]
"""Kind of a passage: words, a tool call with its input, or the result of one."""

_BREAKS = ("\n\n", "\n", ". ", "。", " ")
"""Preferred breaks of a long message; the first one in the second half of a passage is used."""
_ESCAPED = lazy_pattern(r"(?<!\\)((?:\\\\)*)\\([nrtbf])")
"""White space in a text within JSON, after whole pairs of backslashes."""
_QUESTION = lazy_pattern(r"\?(?![\w=&/%])|？|[吗呢么](?=[\s。！!~～]|$)")


class Passage(NamedTuple):
    """A piece of one message in the index: its place, and the tokens to find it by.

    The words are read from the log: they are the characters from ``start`` up to but not including
    ``stop`` of ``readable(message)``.
    """

    number: int
    """Place in the index, derived from the log position and the part; increasing, with gaps."""
    thread_id: str
    position: int
    version: int
    """Version of the event with the message."""
    part: int
    """Index of the piece in the message."""
    role: str
    """Role of the message; always ``tool`` for the result of a tool call."""
    kind: PassageKind
    tool: str
    """Name of the called tool, or empty for words."""
    at: str
    """Time when the message was written or, if unknown, logged: ISO 8601, UTC."""
    session: int
    """Number of the session in its conversation, from 0; a pause begins a new one."""
    start: int
    stop: int
    is_question: bool
    tokens: str
    """Tokens in order, each between two spaces, as in `` port postgr us ``.

    The tokens of the date follow those of the words.
    """
    token_count: int
    """Number of tokens."""
    digest: str
    """Digest of the words only, so that equal words share a vector."""
    owner: str = ""
    """Owner of the message if it differs from the owner of the conversation, else empty."""


Calls = tuple[tuple[str, str], ...]


class Before(NamedTuple):
    """Facts about earlier messages that the passages of a message depend on."""

    session: int = 0
    at: str = ""
    """Time of the newest message, or empty before the first."""
    calls: Calls = ()
    """Ids and names of tool calls that have no result yet."""


BEGINNING = Before()


_Piece = tuple[PassageKind, str, int, str]
"""One block: kind, tool, start in the text of the message, and text. Tuples without names are made several
times as fast.
"""
Unread = tuple[str, PassageKind, str, int, int, int, bytes, bytes]
"""A passage whose tokens are not read yet: role, kind, tool, start, stop, 1 for a question, words in UTF-8, and the
text of its tokens.
"""


def first_number(logged: LoggedEvent) -> int:
    """Return the number of the first passage of a message, which is the same in every rebuild."""
    return logged.number * PARTS


class UnreadMessage(NamedTuple):
    """The passages of a message whose tokens are not read yet.

    It has none of the blocks of the message, so that their memory is used again at once.
    """

    number: int
    """Number of the first passage."""
    thread_id: str
    position: int
    version: int
    owner: str
    at: str
    session: int
    passages: Sequence[Unread]

    @property
    def texts(self) -> list[tuple[bytes, str]]:
        """Words in UTF-8 and date of each passage. Its tokens are those of both."""
        date = _spoken(self.at[:10])
        return [(passage[-1], date) for passage in self.passages]

    def with_tokens(self, lines: Iterator[tuple[str, int]], last: str) -> list[tuple[Any, ...]]:
        """Return a row for each passage with a token: the fields of ``Passage``, and ``last``."""
        number, thread_id, position, version, owner, at, session, passages = self
        part, found = 0, list[tuple[Any, ...]]()
        for unread, (line, count) in zip(passages, lines, strict=False):
            if line:
                role, kind, tool, start, stop, asks, words, _ = unread
                place = number + part, thread_id, position, version, part
                said = role, kind, tool, at, session, start, stop, asks
                found.append((*place, *said, line, count, digest_of_utf8(words), owner, last))
                part += 1
        return found


def unread_passages(
    logged: LoggedEvent, message: MessageFields, before: Before
) -> tuple[UnreadMessage, Before]:
    """Return the passages of a message without their tokens, and the facts for the next message.

    An erased message has no passages; only its time counts.
    """
    at = listed_time(logged, message)
    session = before.session + (begins_session(before.at, at) if before.at else 0)
    said, calls = message["message"], before.calls
    role, content = said["role"], said["content"]
    pieces: Sequence[_Piece]
    if isinstance(content, str):
        pieces = (("text", "", 0, content),)
    else:
        pieces, calls = _read_blocks(content, calls)
    found: list[Unread] = []
    # Only the marker of an erased message remains.
    for kind, tool, begin, text in () if logged.erased else pieces:
        whose, is_said = "tool" if kind == "result" else role, kind == "text"
        for start, stop in _stretches(text) if len(text) > LONGEST else ((0, len(text)),):
            words = text[start:stop]
            asks = int(is_said and _is_question(words))
            utf8 = words.encode("utf-8", "surrogatepass")
            read = (
                with_white_space(words).encode("utf-8", "surrogatepass") if kind == "call" else utf8
            )
            found.append((whose, kind, tool, begin + start, begin + stop, asks, utf8, read))
    place = first_number(logged), logged.thread_id, message["position"], logged.version
    owner = message.get("owner") or ""
    return UnreadMessage(*place, owner, at, session, found[:PARTS]), Before(session, at, calls)


def passages_of(
    logged: LoggedEvent, message: MessageFields, before: Before, first: int
) -> tuple[list[Passage], Before]:
    """Return the passages of a message, numbered from ``first``, and the facts for the next message."""
    unread, after = unread_passages(logged, message, before)
    lines = iter([counted_line(words, date) for words, date in unread.texts])
    rows = unread._replace(number=first).with_tokens(lines, "")
    return [Passage._make(row[:-1])._replace(is_question=bool(row[12])) for row in rows], after


def with_white_space(words: str) -> str:
    """Return words of a tool call, which is JSON, with blanks for escaped white space, in the same length.

    An escaped line break becomes two line breaks.
    """
    return _ESCAPED.sub(_white_space, words) if "\\" in words else words


def _white_space(found: re.Match[str]) -> str:
    return found[1] + ("\n\n" if found[2] == "n" else "  ")


def _is_question(words: str) -> bool:
    # Most texts are in ASCII and have no question mark, which is found much faster than the pattern.
    return ("?" in words or not words.isascii()) and _QUESTION.search(words) is not None


def begins_session(last: str, at: str) -> bool:
    """Return whether a new session begins between the times ``last`` and ``at``."""
    # Within the same ten minutes it does not.
    return (
        at[:15] != last[:15]
        and abs(datetime.fromisoformat(at) - datetime.fromisoformat(last)) > PAUSE
    )


def _read_blocks(content: Sequence[Block], before: Calls) -> tuple[Sequence[_Piece], Calls]:
    """Return the pieces of a message, and the calls that are open after it."""
    calls, pieces, start = dict(before), list[_Piece](), 0
    for block, text in readable_blocks(content):
        kind, tool, repeats = _kind(block), "", False
        if kind == "call":
            tool = calls[str(block.get("id"))] = str(block.get("name"))
            given = block.get("input")
            repeats = asks_memory(tool, given if is_object(given) else ())
        elif kind == "result":
            tool = calls.pop(str(block.get("tool_use_id")), "")
            repeats = is_answer_of_memory(tool, text)
        # Calls of the memory tools and their results only repeat stored content.
        if not repeats and (kind == "call" or text[0] != "[" or has_words(block, text)):
            pieces.append((kind, tool, start, text))
        start += len(text) + 1
    return pieces, tuple(calls.items())[-OPEN_CALLS:]


def _kind(block: Block) -> PassageKind:
    name = block.get("type")
    if name in CALLS:
        return "call"
    return "result" if str(name).endswith("tool_result") else "text"


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    start, stop = 0, len(text)
    while stop - start > LONGEST:
        end = _end(text, start)
        yield start, end
        start = end
    yield start, stop


def _end(text: str, start: int) -> int:
    """Return the end of a passage that begins at ``start`` and does not reach the end of the text."""
    most = start + LONGEST
    return last_mark(text, _BREAKS, start + LONGEST // 2, most)[1]


@lru_cache(maxsize=4_096)
def _spoken(date: str) -> str:
    """Return a date in the words by which it is found."""
    year, month, day = date.split("-")
    return f"{int(year)} {MONTHS[int(month) - 1]} {int(day)}"

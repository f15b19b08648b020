"""Passages: the pieces of messages that are indexed, ranked and shown."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Literal, NamedTuple

from refold.application.agent_tools.tool_names import asks_memory, is_answer_of_memory
from refold.application.ports.conversation_log import LoggedEvent, MessageFields
from refold.application.projections.row_changes import listed_time
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import CALLS, Block, has_words, readable_blocks
from refold.domain.text_cuts import last_mark
from refold.domain.value import is_object

from .tokens import digest_of, line_of

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)

VERSION = 4
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


_Piece = tuple[PassageKind, str, int, int]
"""The text of one block: kind, tool, and its place in the text of the message. Tuples without names are made
several times as fast.
"""
Unread = tuple[str, PassageKind, str, int, int, str]
"""A passage whose tokens are not read yet: role, kind, tool, start, stop and words."""


def first_number(logged: LoggedEvent) -> int:
    """Return the number of the first passage of a message, which is the same in every rebuild."""
    return logged.number * PARTS


class UnreadMessage(NamedTuple):
    """The passages of a message whose tokens are not read yet."""

    logged: LoggedEvent
    message: MessageFields
    at: str
    session: int
    passages: Sequence[Unread]

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Words and date of each passage. Its tokens are those of both."""
        date = _spoken(self.at[:10])
        return [(passage[-1], date) for passage in self.passages]

    def with_tokens(self, lines: Iterable[str], first: int) -> list[Passage]:
        """Return the passages, numbered from ``first``. A passage has at least one token."""
        logged, message, at, session, passages = self
        position, owner = message["position"], message.get("owner") or ""
        found: list[Passage] = []
        for (role, kind, tool, start, stop, words), line in zip(passages, lines, strict=True):
            if line:
                found.append(
                    Passage(
                        first + len(found),
                        logged.thread_id,
                        position,
                        logged.version,
                        len(found),
                        role,
                        kind,
                        tool,
                        at,
                        session,
                        start,
                        stop,
                        kind == "text" and _is_question(words),
                        line,
                        line.count(" ") - 1,
                        digest_of(words),
                        owner,
                    )
                )
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
        text = content
        pieces = (("text", "", 0, len(content)),)
    else:
        text, pieces, calls = _read_blocks(content, calls)
    found: list[Unread] = []
    # Only the marker of an erased message remains.
    for kind, tool, begin, end in () if logged.erased else pieces:
        whose = "tool" if kind == "result" else role
        if end - begin <= LONGEST:
            found.append((whose, kind, tool, begin, end, text[begin:end]))
            continue
        for start, stop in _stretches(text, begin, end):
            found.append((whose, kind, tool, start, stop, text[start:stop]))
    return UnreadMessage(logged, message, at, session, found[:PARTS]), Before(session, at, calls)


def passages_of(
    logged: LoggedEvent, message: MessageFields, before: Before, first: int
) -> tuple[list[Passage], Before]:
    """Return the passages of a message, numbered from ``first``, and the facts for the next message."""
    unread, after = unread_passages(logged, message, before)
    lines = [line_of(words, date) for words, date in unread.texts]
    return unread.with_tokens(lines, first), after


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


def _read_blocks(content: Sequence[Block], before: Calls) -> tuple[str, Sequence[_Piece], Calls]:
    """Return the readable text of a message, its pieces, and the calls that are open after it."""
    blocks = readable_blocks(content)
    calls, pieces, start = dict(before), list[_Piece](), 0
    for block, text in blocks:
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
            pieces.append((kind, tool, start, start + len(text)))
        start += len(text) + 1
    whole = blocks[0][1] if len(blocks) == 1 else "\n".join([text for _, text in blocks])
    return whole, pieces, tuple(calls.items())[-OPEN_CALLS:]


def _kind(block: Block) -> PassageKind:
    name = block.get("type")
    if name in CALLS:
        return "call"
    return "result" if str(name).endswith("tool_result") else "text"


def _stretches(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
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

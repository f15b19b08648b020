"""Passages: the pieces of messages that are looked up, ranked and shown, and how a message is cut into them."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Literal, NamedTuple

from refold.application.agent_tools.arguments import asks_memory, is_answer_of_memory
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.projections.message_list import CALLS, readable, readable_blocks
from refold.application.projections.row_changes import utc
from refold.domain.blocks import block_words
from refold.domain.events import MessageAppended
from refold.domain.messages import Block, Message
from refold.domain.text_cuts import last_mark
from refold.domain.value import is_object

from .question import MONTHS
from .tokens import padded, tokens_of

VERSION = 4
"""Raised whenever a message gives other passages: an index of another version is folded anew."""
LONGEST = 2_000
"""Characters of a passage."""
PAUSE = timedelta(minutes=30)
"""After a longer one a new session begins."""
PARTS = 1 << 16
"""More passages than so many of one message cannot be found."""
OPEN_CALLS = 200
"""Calls of a conversation whose results are waited for; of more, the oldest are given up."""

PassageKind = Literal["text", "call", "result"]
"""What was said in words; a tool call with its input; the result of one."""

_BREAKS = ("\n\n", "\n", ". ", "。", " ")
"""Where a long message is cut: the first of these that stands in the second half of a passage."""
_QUESTION = re.compile(r"\?(?![\w=&/%])|？|[吗呢么](?=[\s。！!~～]|$)")


class Passage(NamedTuple):
    """A piece of one message, as the index holds it: where it stands, and the tokens it is found by.

    The words themselves are not in it: they are read from the log, characters ``start`` up to but not
    including ``stop`` of ``readable(message)``.
    """

    number: int
    """Its place in the index, which follows from the event's and its part; grows with the log, with gaps."""
    thread_id: str
    position: int
    version: int
    """Of the event that the message is in."""
    part: int
    """Which piece of the message, from 0."""
    role: str
    """Of the message; ``tool`` for the result of a tool call, whatever role brought it."""
    kind: PassageKind
    tool: str
    """The name of the tool that was called or answered; empty for words."""
    at: str
    """When the message was written, or else logged: ISO 8601, UTC."""
    session: int
    """Counts from 0 in its conversation; a new one begins after a pause."""
    start: int
    stop: int
    is_question: bool
    tokens: str
    """The tokens in their order, each between two blanks: `` port postgr us ``; behind those of the words
    stand those of the date."""
    digest: str
    """Of the words and nothing else: equal words have one vector."""
    owner: str = ""
    """Whose the message is, where that is somebody else than the owner of the conversation."""


class Before(NamedTuple):
    """What the passages of a message need to know of the messages before it."""

    session: int = 0
    at: str = ""
    """Of the newest message; empty before the first."""
    calls: tuple[tuple[str, str], ...] = ()
    """Ids and names of tool calls without a result so far."""


BEGINNING = Before()


class _Piece(NamedTuple):
    """What one block says, and where in the text of its message."""

    kind: PassageKind
    tool: str
    start: int
    stop: int


def first_number(logged: LoggedEvent) -> int:
    """The number of a message's first passage: the same however often the log is folded."""
    return logged.number * PARTS


def passages_of(
    logged: LoggedEvent, event: MessageAppended, before: Before, first: int
) -> tuple[list[Passage], Before]:
    """The passages of a message, numbered from ``first``, and what the next message is to know.

    A passage without any token is none: nothing could find it. Of an erased message only its time counts.
    """
    at = utc(event.written_at) if event.written_at else logged.at
    session = before.session + (begins_session(before.at, at) if before.at else 0)
    calls, said, text = dict(before.calls), event.message, readable(event.message)
    found: list[Passage] = []
    for piece in _pieces(said, calls):
        if logged.erased:
            continue  # It is what is left of it.
        for start, stop in _stretches(text, piece.start, piece.stop):
            words = text[start:stop]
            if len(found) < PARTS and (tokens := tokens_of(words)):
                found.append(
                    Passage(
                        first + len(found),
                        logged.thread_id,
                        event.position,
                        logged.version,
                        len(found),
                        "tool" if piece.kind == "result" else said.role,
                        piece.kind,
                        piece.tool,
                        at,
                        session,
                        start,
                        stop,
                        piece.kind == "text" and _QUESTION.search(words) is not None,
                        padded((*tokens, *_date_tokens(at[:10]))),
                        digest_of(words),
                        event.owner or "",
                    )
                )
    left = tuple(calls.items())[-OPEN_CALLS:] if calls else ()
    return found, Before(session, at, left)


def digest_of(words: str) -> str:
    """Names a text: equal texts have equal digests, and no others."""
    return blake2b(words.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def begins_session(last: str, at: str) -> bool:
    """Whether what was written at ``at`` begins a session after what was written at ``last``."""
    return abs(datetime.fromisoformat(at) - datetime.fromisoformat(last)) > PAUSE


def _pieces(message: Message, calls: dict[str, str]) -> Iterator[_Piece]:
    """What each block says; ``calls`` is given those that are made and loses those that are answered."""
    content = message.content
    if isinstance(content, str):
        yield _Piece("text", "", 0, len(content))
        return
    start = 0
    for block, text in readable_blocks(content):
        kind, tool, repeats = _kind(block), "", False
        if kind == "call":
            tool = calls[str(block.get("id"))] = str(block.get("name"))
            given = block.get("input")
            repeats = asks_memory(tool, given if is_object(given) else ())
        elif kind == "result":
            tool = calls.pop(str(block.get("tool_use_id")), "")
            repeats = is_answer_of_memory(tool, text)
        # Questions to the memory and its answers only repeat what is in it.
        if not repeats and (kind == "call" or block_words(block)):
            yield _Piece(kind, tool, start, start + len(text))
        start += len(text) + 1


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
    """Where a passage that begins at ``start`` and cannot reach the end of its text ends."""
    most = start + LONGEST
    return last_mark(text, _BREAKS, start + LONGEST // 2, most)[1]


@lru_cache(maxsize=4_096)
def _date_tokens(date: str) -> tuple[str, ...]:
    year, month, day = date.split("-")
    return tuple(tokens_of(f"{int(year)} {MONTHS[int(month) - 1]} {int(day)}"))

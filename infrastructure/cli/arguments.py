"""What commands begin with: open a log that is there, and find a conversation or a message in it."""

import os
import re
import shlex
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import typer

from refold.application.api.context import Context
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.api.results import StoredMessage
from refold.application.conversation.addresses import SCHEME, parse_address
from refold.application.errors import AmbiguousId, ForeignAddress
from refold.application.history.moments import At
from refold.domain.errors import InvalidThreadId, UnknownMessage

from .options import DB_VARIABLE, DEFAULT_DB, EmbedderChoice

NAMED = 5
"""Conversations that an error names."""

_RANGE = re.compile(r"\s*(-?\d{0,15})\s*(?:\.\.|:|–)\s*(-?\d{0,15})\s*")
_POSITION = re.compile(r"\s*-?\d{1,15}\s*")
_WITH_POSITION = re.compile(r"(.+)/([^/]*\d[^/]*)", re.DOTALL)


class Span(NamedTuple):
    """Positions from ``start`` up to but not including ``stop``, as in a slice."""

    start: int | None
    stop: int | None

    @property
    def is_one(self) -> bool:
        """Whether it is a single position."""
        return self.start is not None and self.stop == (self.start + 1 or None)


class Where(NamedTuple):
    """A conversation, and the positions of it that are meant; none: all of it."""

    thread: str
    spans: tuple[Span, ...]


def shown_span(first: int, last: int) -> str:
    """Positions ``first`` to ``last``, as they can be typed."""
    return f"{first}" if first == last else f"{first}..{last + 1}"


def read_span(text: str) -> Span:
    """A position or a range of them.

    Raises:
        BadParameter: it is neither, or the range ends before it has begun.
    """
    if _POSITION.fullmatch(text):
        position = int(text)
        return Span(position, position + 1 or None)
    if (found := _RANGE.fullmatch(text)) is not None and "-" not in found.groups():
        first, last = (int(part) if part else None for part in found.groups())
        return _not_backwards(Span(first, last))
    raise typer.BadParameter(
        f"{text!r} is no range of positions, such as 10..40, 10.. or -5.., and no position"
    )


def _not_backwards(span: Span) -> Span:
    first, last = span
    # Where only one of them counts from the end, the length of the conversation decides.
    if first is not None and last is not None and (first < 0) == (last < 0) and last <= first:
        raise typer.BadParameter(
            f"{first}..{last} has nothing in it: a range is from the first position up to but not "
            f"including the last, such as {first}..{first + 5 if first >= 0 else ''}"
        )
    return span


def find_thread(memory: Memory, given: str) -> str:
    """The id of the conversation that is meant by an id, or by the beginning of one.

    Raises:
        InvalidThreadId: there is none; says which ones there are.
        AmbiguousId: several begin so; names them.
    """
    if memory.conversation(given).version:
        return given
    known = [row.thread_id for row in memory.conversations()]
    begin_so = [one for one in known if one.startswith(given)]
    if not given or not begin_so:
        more = f" and {len(known) - NAMED:,} more" if known[NAMED:] else ""
        raise InvalidThreadId(
            f"there is no conversation {given!r} in this log; "
            f"there are: {', '.join(known[:NAMED]) or 'none'}{more}"
        )
    if len(begin_so) > 1:
        raise AmbiguousId("conversation", given, begin_so)
    return begin_so[0]


def find_pin(memory: Memory, thread: str, given: str) -> str:
    """The id of the pin that is meant by an id, or by the beginning of one; as given where there is none.

    Raises:
        AmbiguousId: several begin so; names them.
    """
    known = [pin.pin_id for pin in memory.conversation(thread).pins()]
    begin_so = [one for one in known if one.startswith(given)]
    if given in known or not given or not begin_so:
        return given
    if len(begin_so) > 1:
        raise AmbiguousId("pin", given, begin_so)
    return begin_so[0]


def find_place(memory: Memory, given: str, more: Sequence[str] = ()) -> Where:
    """The messages that are meant.

    Raises:
        InvalidThreadId, AmbiguousId: the conversation is not known, or could be several.
        InvalidAddress, ForeignAddress: an address is none, or one of another conversation.
        BadParameter: what should be a position is none.
    """
    thread, first = _begin(memory, given)
    begin = () if first is None else (first,)
    return Where(thread, (*begin, *(_span_in(thread, word) for word in more)))


def _begin(memory: Memory, given: str) -> tuple[str, Span | None]:
    if given.strip().startswith(SCHEME):
        address = parse_address(given)
        for thread in (address.thread_id, address.as_written):
            if memory.conversation(thread).version:
                return thread, read_span(str(address.position))
        return find_thread(memory, address.thread_id), read_span(str(address.position))
    if not memory.conversation(given).version and (found := _WITH_POSITION.fullmatch(given)):
        return find_thread(memory, found[1]), read_span(found[2])
    return find_thread(memory, given), None


def _span_in(thread: str, word: str) -> Span:
    if not word.strip().startswith(SCHEME):
        return read_span(word)
    address = parse_address(word)
    if not address.names(thread):
        raise ForeignAddress(word, address.thread_id, thread)
    return read_span(str(address.position))


def chosen(where: Where, *others: Span | None) -> Span:
    """The one span that is meant, of a place and of options.

    Raises:
        BadParameter: there are several.
    """
    spans = [*where.spans, *(span for span in others if span is not None)]
    if len(spans) > 1:
        raise typer.BadParameter("give positions once: as THREAD/17, THREAD 10..40 or --range")
    return spans[0] if spans else Span(None, None)


def refuse_unknown(conversation: ConversationMemory, span: Span, at: At | None) -> None:
    """Refuse a single position where nothing was found; a range may have nothing in it.

    Raises:
        ConversationGone: nothing is there, for the conversation was erased.
        UnknownMessage: says which positions there are.
    """
    conversation.query(limit=1)
    if span.start is not None and span.is_one:
        raise UnknownMessage(span.start, len(conversation.explain(at=at)))


def given_span(range: str | None, start: int | None, stop: int | None) -> Span | None:
    """What ``--range``, or once ``--start`` and ``--stop``, say."""
    if range is not None:
        return read_span(range)
    return None if start is None and stop is None else _not_backwards(Span(start, stop))


def opened(
    db: Path,
    *,
    window: int | None = None,
    model: str | None = None,
    summariser: str | None = None,
    policy_file: Path | None = None,
    embedder: EmbedderChoice | None = None,
    embedder_model: str | None = None,
    instruction_files: Sequence[Path] | None = None,
    notes_folder: Path | None = None,
    markdown_folder: Path | None = None,
) -> Memory:
    """The memory of a log that exists."""
    # Imported when first used: help and wrong use do not pay for a store.
    from refold.infrastructure.bootstrap import open_memory

    return open_memory(
        db,
        create=False,
        window=window,
        model=model,
        summariser=summariser,
        policy_file=policy_file,
        embedder=embedder,
        embedder_model=embedder_model,
        instruction_files=instruction_files,
        notes_folder=notes_folder,
        markdown_folder=markdown_folder,
    )


def require(memory: Memory, thread: str) -> str:
    """The conversation that is meant by an id, or by the beginning of one.

    Raises:
        InvalidThreadId: there is none; says which ones there are.
        AmbiguousId: several begin so.
    """
    return find_thread(memory, thread)


@contextmanager
def naming_commands(db: Path) -> Generator[None]:
    """Where an address is one of another conversation, name the command that reads it.

    Raises:
        ForeignAddress: in words for who types commands.
    """
    try:
        yield
    except ForeignAddress as error:
        command = next_command("read", error.address, db=db)
        error.args = (
            f"{error.address} is a message of conversation {error.thread_id!r}, and {error.asked!r} "
            f"was asked: `{command}` reads it",
        )
        raise


def next_command(*words: object, db: object) -> str:
    """A command of this program, ready to be typed."""
    named = [] if str(db) == os.environ.get(DB_VARIABLE, str(DEFAULT_DB)) else ["--db", str(db)]
    return f"refold {shlex.join([*map(str, words), *named])}"


def as_request(made: Context) -> dict[str, object]:
    """A context as a JSON line: what goes to the Messages API, with its size."""
    line: dict[str, object] = {
        "model": made.model or "unknown",
        "system": made.system,
        "messages": made.messages,
    }
    if made.tools:
        line["tools"] = made.tools
    line["tokens"] = made.tokens
    line["summary_id"] = made.summary.summary_id if made.summary else None
    return line


def as_json(stored: StoredMessage) -> dict[str, object]:
    """A stored message for programs."""
    return {
        "position": stored.position,
        "version": stored.version,
        "message_id": stored.message_id,
        "role": stored.message.role,
        "author": stored.message.author,
        "content": stored.message.content,
        "at": stored.at,
        "tokens": stored.tokens,
        "summary_id": stored.summary_id,
        "mark": stored.mark.model_dump() if stored.mark else None,
    }

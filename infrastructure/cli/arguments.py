"""Parse arguments of commands: open an existing log, and find a conversation or messages in it."""

import os
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import typer

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.api.results import Context, StoredMessage
from refold.application.conversation.addresses import SCHEME, parse_address
from refold.application.errors import AmbiguousId, ForeignAddress, InvalidAddress
from refold.application.history.moments import At
from refold.domain.errors import InvalidThreadId, UnknownMessage
from refold.domain.lazy_pattern import lazy_pattern
from refold.infrastructure.files.log_place import LogPlace, typed_command

from .options import DB_VARIABLE, DEFAULT_DB, EmbedderChoice

NAMED = 5
"""Number of conversations that an error lists."""

_RANGE = lazy_pattern(r"\s*(-?\d{0,15})\s*(?:\.\.|:|(–))\s*(-?\d{0,15})\s*")
_POSITION = lazy_pattern(r"\s*-?\d{1,15}\s*")
_WITH_POSITION = lazy_pattern(r"(.+)/([^/]*\d[^/]*)", re.DOTALL)


class Span(NamedTuple):
    """Positions from ``start`` up to but not including ``stop``, as in a slice."""

    start: int | None
    stop: int | None

    @property
    def is_one(self) -> bool:
        """True if it is a single position."""
        return self.start is not None and self.stop == (self.start + 1 or None)


class Where(NamedTuple):
    """A conversation, and optionally positions in it. Without positions it means the whole conversation."""

    thread: str
    spans: tuple[Span, ...]


def format_span(first: int, last: int) -> str:
    """Format positions from ``first`` to ``last``, both included. Users can type the result."""
    return f"{first}" if first == last else f"{first}–{last}"


def read_span(text: str) -> Span:
    """Parse a position or a range of positions. ``10–40`` includes 40, ``10..40`` does not.

    Raises:
        BadParameter: the text is neither, or the range is empty.
    """
    if _POSITION.fullmatch(text):
        position = int(text)
        return Span(position, position + 1 or None)
    if (found := _RANGE.fullmatch(text)) is not None and "-" not in found.groups():
        first, last = (int(part) if part else None for part in found.group(1, 3))
        if found[2] and last is not None:
            return _not_backwards(Span(first, last + 1 or None))
        return _not_backwards(Span(first, last))
    raise typer.BadParameter(
        f"invalid range {text!r}: use 10..40, 10.. or -5.., or a single position"
    )


def _not_backwards(span: Span) -> Span:
    first, last = span
    # If only one bound counts from the end, the length of the conversation decides.
    if first is not None and last is not None and (first < 0) == (last < 0) and last <= first:
        raise typer.BadParameter(
            f"{first}..{last} is empty: a range goes from the first position up to but not "
            f"including the last, such as {first}..{first + 5 if first >= 0 else ''}"
        )
    return span


def find_thread(memory: Memory, given: str) -> str:
    """Return the id of the conversation with this id or this beginning of an id.

    Raises:
        InvalidThreadId: none exists; the message lists the existing ones.
        AmbiguousId: several ids have this beginning; the message lists them.
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
    """Return the id of the pin with this id or this beginning of an id, or ``given`` if none exists.

    Raises:
        AmbiguousId: several ids have this beginning; the message lists them.
    """
    known = [pin.pin_id for pin in memory.conversation(thread).pins()]
    return _one_beginning_so("pin", known, given)


def find_edit(memory: Memory, thread: str, given: str) -> str:
    """Return the id of the open proposal with this id or beginning of an id, or ``given`` if none exists.

    Raises:
        AmbiguousId: several ids have this beginning; the message lists them.
    """
    known = [one.edit_id for one in memory.conversation(thread).proposals()]
    return _one_beginning_so("edit", known, given)


def _one_beginning_so(kind: str, known: Sequence[str], given: str) -> str:
    begin_so = [one for one in known if one.startswith(given)]
    if given in known or not given or not begin_so:
        return given
    if len(begin_so) > 1:
        raise AmbiguousId(kind, given, begin_so)
    return begin_so[0]


def find_place(memory: Memory, given: str, more: Sequence[str] = ()) -> Where:
    """Parse the address of messages.

    Raises:
        InvalidThreadId, AmbiguousId: the conversation is unknown or ambiguous.
        InvalidAddress, ForeignAddress: an address is invalid, or belongs to another conversation.
        BadParameter: a position is invalid.
    """
    thread, first = _begin(memory, given, is_alone=not more)
    begin = () if first is None else (first,)
    return Where(thread, (*begin, *(_span_in(thread, word) for word in more)))


def _begin(memory: Memory, given: str, *, is_alone: bool) -> tuple[str, Span | None]:
    if given.strip().startswith(SCHEME):
        try:
            address = parse_address(given)
        except InvalidAddress:
            if _is_thread(memory, given):
                return given, None
            raise
        if not is_alone and _is_thread(memory, given):
            return given, None
        for thread in (address.thread_id, address.as_written):
            if memory.conversation(thread).version:
                return thread, read_span(str(address.position))
        if _is_thread(memory, given):
            return given, None
        return find_thread(memory, address.thread_id), read_span(str(address.position))
    if not memory.conversation(given).version and (found := _WITH_POSITION.fullmatch(given)):
        return find_thread(memory, found[1]), read_span(found[2])
    return find_thread(memory, given), None


def _is_thread(memory: Memory, given: str) -> bool:
    try:
        return bool(memory.conversation(given).version)
    except InvalidThreadId:  # An address can be longer than an id.
        return False


def _span_in(thread: str, word: str) -> Span:
    if not word.strip().startswith(SCHEME):
        return read_span(word)
    address = parse_address(word)
    if not address.names(thread):
        raise ForeignAddress(word, address.thread_id, thread)
    return read_span(str(address.position))


def single_span(where: Where, *others: Span | None) -> Span:
    """Return the only span that was given, in the address or by options.

    Raises:
        BadParameter: several were given.
    """
    spans = [*where.spans, *(span for span in others if span is not None)]
    if len(spans) > 1:
        raise typer.BadParameter("give positions once: as THREAD/17, THREAD 10..40 or --range")
    return spans[0] if spans else Span(None, None)


def refuse_unknown(conversation: ConversationMemory, span: Span, at: At | None) -> None:
    """Refuse a single position that does not exist. A range may be empty.

    Raises:
        ConversationGone: the conversation was erased.
        UnknownMessage: the position does not exist; the message says which ones do.
    """
    conversation.query(limit=1)
    if span.start is not None and span.is_one:
        raise UnknownMessage(span.start, len(conversation.explain(at=at)))


def span_of_options(range: str | None, start: int | None, stop: int | None) -> Span | None:
    """Return the span of ``--range`` or of the former options ``--start`` and ``--stop``."""
    if range is not None:
        return read_span(range)
    return None if start is None and stop is None else _not_backwards(Span(start, stop))


def open_existing(
    db: LogPlace,
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
    """Open the memory of an existing log."""
    # Imported on first use, so that help and usage errors do not load a store.
    from refold.infrastructure.bootstrap import open_memory

    return open_memory(
        db.given,
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
    """Return the id of the conversation with this id or this beginning of an id.

    Raises:
        InvalidThreadId: none exists; the message lists the existing ones.
        AmbiguousId: several ids have this beginning.
    """
    return find_thread(memory, thread)


@contextmanager
def naming_commands(db: LogPlace) -> Generator[None]:
    """Name the command that reads another conversation in errors about addresses of that conversation.

    Raises:
        ForeignAddress: an address belongs to another conversation.
    """
    try:
        yield
    except ForeignAddress as error:
        command = next_command("read", error.address, db=db)
        error.args = (
            f"{error.address} is a message of conversation {error.thread_id!r}, not of {error.asked!r}; "
            f"`{command}` reads it",
        )
        raise


def next_command(*words: object, db: object) -> str:
    """Return a command of this program, ready to be typed. Arguments come before options in ``words``."""
    usual = LogPlace.parse(os.environ.get(DB_VARIABLE) or DEFAULT_DB)
    named = [] if str(db) == str(usual) else ["--db", str(db)]
    return typed_command(*words, more=named)


def as_request(made: Context) -> dict[str, object]:
    """Return a context as JSON for the Messages API, with its size."""
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
    """Return a stored message as JSON."""
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

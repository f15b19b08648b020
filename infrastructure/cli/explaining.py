"""``refold explain`` and ``read``: why the model sees what it sees, and the originals behind it."""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Annotated

import typer

from refold.application.chat import Chat
from refold.application.explaining import MessageFate
from refold.application.time_travel.moments import At as Moment
from refold.domain.messages import Block, text_of

from .looking import as_json
from .opening import naming_commands, next_command, opened
from .options import DEFAULT_DB, At, Db, Json, Place, Positions, Range, Start, Stop
from .output import clean, console, print_json, say, show_table
from .places import Span, chosen, find_place, given_span, refuse_unknown, shown_span
from .times import read_at
from .words import in_words

_LONG_ID = re.compile(r"\b[0-9a-f]{32}\b")

READ_EXAMPLE = "Examples: refold read thread-42/17; refold read thread-42 17; refold read refold://thread-42/17"
EXPLAIN_EXAMPLE = (
    "Example: refold explain thread-42 200.. --db agent.db. Each row is a run of messages "
    "with the same fate; --json has every message."
)
EXAMPLES = {"read": READ_EXAMPLE, "explain": EXPLAIN_EXAMPLE}
WIDE = 100
"""In fewer columns the versions are left out."""


def read(
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="THREAD/POSITION, or as a context shows it: refold://THREAD/POSITION.",
        ),
    ],
    positions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[POSITION]...", help="Where ADDRESS is the thread id alone."),
    ] = None,
    db: Db = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Read back an original message, whatever was compacted or offloaded since."""
    with opened(db) as memory, naming_commands(db):
        where = find_place(memory, address, positions or ())
        chat = memory.conversation(where.thread)
        if not where.spans:
            raise typer.BadParameter(
                f"which message of {where.thread!r}? Give its position: {where.thread}/17, or its "
                "address; these look like refold://THREAD/POSITION"
            )
        messages = [chat.read(at) for span in where.spans for at in _positions(chat, span)]
    if json:
        found = [{"thread_id": where.thread, **as_json(message)} for message in messages]
        print_json(found[0] if len(found) == 1 else {"messages": found})
        return
    for message in messages:
        if len(messages) > 1:
            say(f"[bold]{message.position}[/bold] {message.message.role}")
        for block in message.message.blocks():
            say(clean(_original(block)))


def explain(
    thread: Place,
    positions: Positions = None,
    db: Db = DEFAULT_DB,
    range: Range = None,
    at: At = None,
    start: Start = None,
    stop: Stop = None,
    json: Json = False,
) -> None:
    """Explain why the model sees each message as it does: full, offloaded, summarised, pinned …"""
    moment = None if at is None else read_at(at)
    with opened(db) as memory:
        where = find_place(memory, thread, positions or ())
        span = chosen(where, given_span(range, start, stop))
        chat = memory.conversation(where.thread)
        fates = chat.explain(span.start or 0, span.stop, at=moment)
        if not fates:
            refuse_unknown(chat, span, moment)
        if json:
            print_json({"thread_id": where.thread, "messages": [f.model_dump() for f in fates]})
            return
        if not fates:
            how = clean(next_command("show", where.thread, db=db))
            say(f"No message there. `{how}` has the positions.")
            return
        besides = _besides(chat, fates, moment)
    columns = ["positions", "fate", "tokens#", "shown#", "version", "why…"]
    rows = [_row(list(same)) for _, same in groupby(fates, lambda f: (f.fate, f.why))]
    if console.width < WIDE:
        columns, rows = [*columns[:4], columns[5]], [(*row[:4], row[5]) for row in rows]
    show_table("", columns, rows)
    _tell_sums(fates, besides, db)


def _positions(chat: Chat, span: Span) -> Sequence[int]:
    """The positions that are meant; one that does not exist is named by what reads it."""
    if span.is_one and span.start is not None and span.start >= 0:
        return (span.start,)
    length = len(chat.explain())
    return range(*slice(*span).indices(length))


def _row(same: Sequence[MessageFate]) -> tuple[str | int, ...]:
    """Messages one after the other that share a fate."""
    first, last = same[0], same[-1]
    versions = [f.since_version for f in same]
    why = _LONG_ID.sub(lambda found: found[0][:8], first.why)
    if dropped := sum(f.thinking_dropped_at is not None for f in same):
        why += f" (thinking left out of {dropped:,})"
    least, most = min(versions), max(versions)
    return (
        shown_span(first.position, last.position),
        first.fate,
        sum(f.tokens for f in same),
        sum(f.shown_tokens for f in same),
        f"{least}" if least == most else f"{least} to {most}",
        clean(why),
    )


def _besides(chat: Chat, fates: Sequence[MessageFate], at: Moment | None) -> str:
    """What the context has besides these messages: the summary, ledger lines, pins, previews."""
    made = chat.context(at=chat.version if at is None else at)
    said: list[str] = []
    if made.summary is not None:
        summary = made.summary
        said.append(
            f"summary {summary.summary_id[:8]} for {summary.coverage.count:,} messages "
            f"({summary.tokens:,} tokens with its ledger)"
        )
        said.append(f"{summary.ledger_shown:,} ledger lines")
    if pins := len(chat.pins()):
        said.append(f"{pins:,} pins")
    if previews := sum(f.fate in ("offloaded", "condensed") for f in fates):
        said.append(f"{previews:,} messages with previews")
    return ", ".join(said)


def _tell_sums(fates: Sequence[MessageFate], besides: str, db: object) -> None:
    tokens, shown = sum(f.tokens for f in fates), sum(f.shown_tokens for f in fates)
    more = ", beside the summary" if any(f.summary_id for f in fates) else ""
    say(f"{len(fates):,} messages of {tokens:,} tokens take up {shown:,} in the context{more}.")
    if besides:
        say(f"In the context besides: {clean(besides)}.")
    hidden = next((f for f in fates if f.shown_tokens < f.tokens), None)
    if hidden is not None:
        say(f"Next: {clean(next_command('read', hidden.address, db=db))}")


def _original(block: Block) -> str:
    """A block as it was: what a tool gave back stands by itself, with nothing around it."""
    if block.get("type") == "tool_result":
        return text_of(block)
    return in_words(block)

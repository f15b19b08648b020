"""``refold explain`` and ``read``: why the model sees what it sees, and the originals behind it."""

import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from refold.application.addresses import parse_address
from refold.application.explaining import MessageFate
from refold.application.memory import Memory
from refold.domain.messages import Block, text_of

from .looking import as_json, in_words
from .opening import opened, require
from .options import DEFAULT_DB, Db, Json, Start, Stop, Thread
from .output import clean, print_json, say, show_table

_LONG_ID = re.compile(r"\b[0-9a-f]{32}\b")

READ_EXAMPLE = "Example: refold read refold://thread-42/17 --db agent.db"
EXPLAIN_EXAMPLE = (
    "Example: refold explain thread-42 --db agent.db --start 200. Each row is a run of messages "
    "with the same fate; --json has every message."
)
EXAMPLES = {"read": READ_EXAMPLE, "explain": EXPLAIN_EXAMPLE}


def read(
    address: Annotated[
        str,
        typer.Argument(metavar="ADDRESS", help="As a context shows it: refold://THREAD/POSITION."),
    ],
    db: Db = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Read back an original message, whatever was compacted or offloaded since."""
    with opened(db) as memory:
        thread = _thread_of(memory, address)
        message = memory.conversation(thread).read(address)
    if json:
        print_json({"thread_id": thread, **as_json(message)})
        return
    for block in message.message.blocks():
        say(clean(_original(block)))


def explain(
    thread: Thread,
    db: Db = DEFAULT_DB,
    start: Start = 0,
    stop: Stop = None,
    json: Json = False,
) -> None:
    """Explain why the model sees each message as it does: full, offloaded, summarised, pinned …"""
    with opened(db) as memory:
        thread = require(memory, thread)
        fates = memory.conversation(thread).explain(start, stop)
    if json:
        print_json({"thread_id": thread, "messages": [fate.model_dump() for fate in fates]})
        return
    if not fates:
        say(f"No message there. `refold show {clean(thread)} --db {clean(db)}` has the positions.")
        return
    runs = groupby(fates, lambda f: (f.fate, f.why))
    columns = ["positions", "fate", "tokens#", "shown#", "version", "why"]
    show_table("", columns, [_row(list(same)) for _, same in runs])
    _tell_sums(thread, fates, db)


def _row(same: Sequence[MessageFate]) -> tuple[str | int, ...]:
    """Messages one after the other that share a fate."""
    first, last = same[0], same[-1]
    versions = [f.since_version for f in same]
    why = _LONG_ID.sub(lambda found: found[0][:8], first.why)
    if dropped := sum(f.thinking_dropped_at is not None for f in same):
        why += f" (thinking left out of {dropped:,})"
    return (
        _range(first.position, last.position),
        first.fate,
        sum(f.tokens for f in same),
        sum(f.shown_tokens for f in same),
        _range(min(versions), max(versions)),
        clean(why),
    )


def _range(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first}–{last}"


def _tell_sums(thread: str, fates: Sequence[MessageFate], db: Path) -> None:
    tokens, shown = sum(f.tokens for f in fates), sum(f.shown_tokens for f in fates)
    beside = ", beside the summary" if any(f.summary_id for f in fates) else ""
    say(f"{len(fates):,} messages of {tokens:,} tokens take up {shown:,} in the context{beside}.")
    hidden = next((f for f in fates if f.shown_tokens < f.tokens), None)
    if hidden is not None:
        say(f"Next: refold read {clean(hidden.address)} --db {clean(db)}")


def _thread_of(memory: Memory, address: str) -> str:
    """The conversation that an address is of; once, thread ids were written without encoding."""
    parsed = parse_address(address)
    for thread in (parsed.thread_id, parsed.as_written):
        if memory.conversation(thread).version:
            return thread
    require(memory, parsed.thread_id)
    return parsed.thread_id


def _original(block: Block) -> str:
    """A block as it was: what a tool gave back stands by itself, with nothing around it."""
    if block.get("type") == "tool_result":
        return text_of(block)
    return in_words(block)

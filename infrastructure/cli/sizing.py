"""``refold stats``: how large a log is, and what of."""

from typing import Any

from rich.filesize import decimal

from refold.application.upkeep.housekeeping import ConversationSize, Sizes

from .listing import shown_ids
from .opening import opened
from .options import DEFAULT_DB, Db, Json
from .output import Cell, clean, console, print_json, say, show_table

SHOWN = 30
"""Conversations in the table; all are in the JSON."""
WIDE = 100
"""In fewer columns only the first columns of the table are shown."""


def stats(db: Db = DEFAULT_DB, json: Json = False) -> None:
    """Show how large the log is: by conversation, by kind of event, by file."""
    with opened(db) as memory:
        sizes = memory.stats()
    if json:
        print_json(_for_programs(sizes))
    else:
        _tell(sizes)


def _for_programs(sizes: Sizes) -> dict[str, Any]:
    return {
        **sizes.model_dump(mode="json"),
        "messages": sizes.messages,
        "events": sizes.events,
        "kinds": [kind.model_dump() for kind in sizes.kinds],
    }


def _tell(sizes: Sizes) -> None:
    events = sum(c.bytes for c in sizes.conversations)
    log = next((f.bytes for f in sizes.files), 0)
    files = sum(f.bytes for f in sizes.files)
    say(
        f"[bold]{len(sizes.conversations):,} conversations[/bold], {sizes.messages:,} messages, "
        f"{sizes.events:,} events of {decimal(events)}; the log takes up {decimal(log)}, with what is "
        f"derived from it {decimal(files)}."
    )
    columns = [
        "thread",
        "messages#",
        "events#",
        "size#",
        "a message#",
        "as JSON#",
        "snapshots#",
        "erased#",
    ]
    ids = shown_ids([size.thread_id for size in sizes.conversations])
    rows = [_row(size, ids[size.thread_id]) for size in sizes.conversations[:SHOWN]]
    shown = len(columns) if console.width >= WIDE else 4
    show_table("", columns[:shown], [row[:shown] for row in rows])
    if (more := len(sizes.conversations) - SHOWN) > 0:
        say(f"  and {more:,} smaller ones; --json has all")
    for name, shares in (("kind of event", sizes.kinds), ("stored as", sizes.frames)):
        show_table(
            "",
            [name, "events#", "size#"],
            [(clean(s.name), s.count, decimal(s.bytes)) for s in shares],
        )
    show_table(
        "",
        ["file", "size#", "path"],
        [(f.name, decimal(f.bytes), clean(f.path)) for f in sizes.files],
    )


def _row(size: ConversationSize, shown: str) -> tuple[Cell, ...]:
    return (
        clean(shown),
        size.messages,
        size.events,
        decimal(size.bytes),
        decimal(round(size.bytes_per_message)),
        decimal(size.message_bytes),
        size.snapshots,
        size.erased_events,
    )

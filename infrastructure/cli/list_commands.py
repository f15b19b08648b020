"""``refold list``, ``stats`` and ``summaries``: conversations, sizes and summaries."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Annotated, Any

import typer
from rich.filesize import decimal

from refold.application.maintenance.maintenance_results import ConversationSize, Sizes
from refold.application.ports.read_models import SummaryRow

from .arguments import format_span, next_command, open_existing, require
from .options import (
    DEFAULT_DB,
    TO_SECONDS,
    Db,
    Full,
    Json,
    Thread,
    format_time,
    read_time,
    refuse_wrong_time,
)
from .output import Cell, clean, console, one_line, print_json, say, show_table

WIDE = 100
"""Width in columns from which ids are shown in full. Below it they are shortened to unique beginnings."""
SHORTEST_ID = 8

Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        callback=refuse_wrong_time,
        help="Only conversations with messages since then: 2026-01-02 or a full time.",
    ),
]


OfOwner = Annotated[
    str | None, typer.Option("--owner", metavar="ID", help="Only conversations of this owner.")
]


def list_conversations(
    db: Db = DEFAULT_DB, since: Since = None, owner: OfOwner = None, json: Json = False
) -> None:
    """List the conversations, the latest activity first. Times are those of their messages."""
    begin = None if since is None else read_time(since)
    with open_existing(db) as memory:
        # Page by page: only the rows that are shown are kept.
        every = memory.iter_conversations() if owner is None else memory.conversations(owner=owner)
        found = (row for row in every if begin is None or row.last_activity >= begin)
        rows = sorted(found, key=attrgetter("last_activity"), reverse=True)
    if json:
        print_json({"conversations": [{**r.model_dump(), "title": r.title} for r in rows]})
        return
    if not rows:
        none = "No conversation yet" if begin is None else "No messages since then"
        if owner is not None:
            none = f"No conversation of owner {clean(repr(owner))}"
        say(f"{none}. Next: {clean(next_command('import', 'FILE', db=db))}")
        return
    ids = unique_beginnings([row.thread_id for row in rows])
    show_table(
        "",
        ["thread", "label…", "messages#", "tokens#", "last activity"],
        [
            (
                clean(ids[r.thread_id]),
                one_line(r.title or f"Conversation {number}", 60),
                r.messages,
                f"{r.tokens:,}" + (f" ·{r.compactions}" if r.compactions else ""),
                format_time(r.last_activity).replace(" ", "\N{NO-BREAK SPACE}"),
            )
            for number, r in enumerate(rows, 1)
        ],
    )
    if any(row.compactions for row in rows):
        say("[dim]· after the tokens: number of compactions[/dim]")
    say(f"Next: {clean(next_command('show', ids[rows[0].thread_id], db=db))}")


def unique_beginnings(whole: Sequence[str]) -> dict[str, str]:
    """Return ids as shown: in full, or on a narrow terminal their shortest unique beginnings."""
    if console.width >= WIDE:
        return {one: one for one in whole}
    return {one: _short(one, whole) for one in whole}


def _short(thread: str, others: Sequence[str]) -> str:
    for length in range(SHORTEST_ID, len(thread)):
        if sum(other.startswith(thread[:length]) for other in others) == 1:
            return thread[:length]
    return thread


SHOWN = 30
"""Number of conversations in the table. The JSON has all."""
SIZES_WIDE = 100
"""Width in columns below which only the first columns of the table are shown."""


def stats(db: Db = DEFAULT_DB, json: Json = False) -> None:
    """Show the size of the log by conversation, by event type and by file."""
    with open_existing(db) as memory:
        sizes = memory.stats()
    if json:
        print_json(_as_data(sizes))
    else:
        _print_sizes(sizes)


def _as_data(sizes: Sizes) -> dict[str, Any]:
    return {
        **sizes.model_dump(mode="json"),
        "messages": sizes.messages,
        "events": sizes.events,
        "kinds": [kind.model_dump() for kind in sizes.kinds],
    }


def _print_sizes(sizes: Sizes) -> None:
    events = sum(c.bytes for c in sizes.conversations)
    log = next((f.bytes for f in sizes.files), 0)
    files = sum(f.bytes for f in sizes.files)
    say(
        f"[bold]{len(sizes.conversations):,} conversations[/bold], {sizes.messages:,} messages, "
        f"{sizes.events:,} events of {decimal(events)}; the log takes up {decimal(log)}, with the files "
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
    ids = unique_beginnings([size.thread_id for size in sizes.conversations])
    rows = [_row(size, ids[size.thread_id]) for size in sizes.conversations[:SHOWN]]
    shown = len(columns) if console.width >= SIZES_WIDE else 4
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


SHORT_ID = 8
SUMMARIES_WIDE = 110
"""Width in columns below which only the first columns and the text are shown."""

Last = Annotated[
    int | None,
    typer.Option("--last", metavar="N", min=1, help="Only the newest N.", show_default=False),
]


def summaries(
    thread: Thread, db: Db = DEFAULT_DB, last: Last = None, full: Full = False, json: Json = False
) -> None:
    """List all summaries of a conversation, including replaced ones. With --full their texts as well."""
    with open_existing(db) as memory:
        thread = require(memory, thread)
        every = memory.conversation(thread).summaries()
    rows = every if last is None else every[-last:]
    if json:
        print_json({"thread_id": thread, "summaries": [row.model_dump() for row in rows]})
        return
    if not rows:
        how = clean(next_command("compact", thread, db=db))
        say(f"No summary yet: nothing was compacted. `{how}` compacts now.")
        return
    if full:
        for row in rows:
            _show_whole(row)
        return
    columns = ["summary", "state", "covers", "tokens#", "of messages#", "made", "by", "text…"]
    table = [_summary_row(row) for row in rows]
    if console.width < SUMMARIES_WIDE:
        columns, table = [*columns[:4], columns[-1]], [(*row[:4], row[-1]) for row in table]
    show_table("", columns, table)
    active = next((row for row in rows if row.is_active), rows[-1])
    say(f"Next: {clean(next_command('expand', active.summary_id[:SHORT_ID], db=db))}")


def _summary_row(row: SummaryRow) -> tuple[Cell, ...]:
    split = ", split" if row.is_split_turn else ""
    return (
        clean(row.summary_id[:SHORT_ID]),
        _state(row),
        f"{row.covered_count:,} in {format_span(row.covered_from, row.first_kept_index - 1)}{split}",
        row.tokens,
        row.message_count,
        format_time(row.compacted_at).replace(" ", "\N{NO-BREAK SPACE}"),
        clean(row.model),
        one_line(row.summary_text, 200),
    )


def _state(row: SummaryRow) -> str:
    if row.is_active:
        return "[good]active[/good]"
    return "undone" if row.is_reverted else "superseded"


def _show_whole(row: SummaryRow) -> None:
    split = ", a turn was split" if row.is_split_turn else ""
    say(
        f"[bold]{clean(row.summary_id)}[/bold] {_state(row)}, {format_time(row.compacted_at, TO_SECONDS)}, covers "
        f"{row.covered_count} messages up to position {row.compact_up_to_index}, "
        f"{row.tokens:,} tokens, by {clean(row.model)}{split}"
    )
    say(clean(row.summary_text) + "\n")

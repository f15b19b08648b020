"""``refold summaries``: what was ever written in the place of messages."""

from typing import Annotated

import typer

from refold.application.read_models import SummaryRow

from .opening import next_command, opened, require
from .options import DEFAULT_DB, Db, Full, Json, Thread
from .output import Cell, clean, console, one_line, print_json, say, show_table
from .times import TO_SECONDS, shown_time

SHORT_ID = 8
WIDE = 110
"""In fewer columns only the first ones are shown, and the text."""

Last = Annotated[
    int | None,
    typer.Option("--last", metavar="N", min=1, help="Only the newest N.", show_default=False),
]


def summaries(
    thread: Thread, db: Db = DEFAULT_DB, last: Last = None, full: Full = False, json: Json = False
) -> None:
    """List all summaries that were ever made of a conversation. With --full their texts as well."""
    with opened(db) as memory:
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
    table = [_row(row) for row in rows]
    if console.width < WIDE:
        columns, table = [*columns[:4], columns[-1]], [(*row[:4], row[-1]) for row in table]
    show_table("", columns, table)
    active = next((row for row in rows if row.is_active), rows[-1])
    say(f"Next: {clean(next_command('expand', active.summary_id[:SHORT_ID], db=db))}")


def _row(row: SummaryRow) -> tuple[Cell, ...]:
    split = ", split" if row.is_split_turn else ""
    return (
        clean(row.summary_id[:SHORT_ID]),
        _state(row),
        f"{row.covered_count:,} in {row.covered_from}..{row.first_kept_index}{split}",
        row.tokens,
        row.message_count,
        shown_time(row.compacted_at).replace(" ", "\N{NO-BREAK SPACE}"),
        clean(row.model),
        one_line(row.summary_text, 200),
    )


def _state(row: SummaryRow) -> str:
    if row.is_active:
        return "[green]active[/green]"
    return "undone" if row.is_reverted else "superseded"


def _show_whole(row: SummaryRow) -> None:
    split = ", a turn was divided" if row.is_split_turn else ""
    say(
        f"[bold]{clean(row.summary_id)}[/bold] {_state(row)}, {shown_time(row.compacted_at, TO_SECONDS)}, covers "
        f"{row.covered_count} messages up to position {row.compact_up_to_index}, "
        f"{row.tokens:,} tokens, by {clean(row.model)}{split}"
    )
    say(clean(row.summary_text) + "\n")

"""``refold list``: which conversations there are."""

from collections.abc import Sequence
from typing import Annotated

import typer

from .opening import next_command, opened
from .options import DEFAULT_DB, Db, Json
from .output import clean, console, one_line, print_json, say, show_table
from .times import read_time, shown_time

WIDE = 100
"""From so many columns on, ids are shown whole; below, so much of them as tells them apart."""
SHORTEST_ID = 8

Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        help="Only those in which something was said from then on: 2026-01-02 or a whole time.",
    ),
]


OfOwner = Annotated[
    str | None, typer.Option("--owner", metavar="ID", help="Only those of this owner.")
]


def list_conversations(
    db: Db = DEFAULT_DB, since: Since = None, owner: OfOwner = None, json: Json = False
) -> None:
    """List the conversations, the latest activity first. Times are those of their messages."""
    begin = None if since is None else read_time(since)
    with opened(db) as memory:
        rows = memory.conversations(owner=owner)
    if begin is not None:
        rows = [row for row in rows if row.last_activity >= begin]
    if json:
        found = [{**row.model_dump(), "title": row.title} for row in rows]
        print_json({"conversations": found})
        return
    if not rows:
        none = "No conversation yet" if begin is None else "Nothing was said since then"
        if owner is not None:
            none = f"No conversation of owner {clean(repr(owner))} is listed"
        say(f"{none}. Next: {clean(next_command('import', 'FILE', db=db))}")
        return
    ids = shown_ids([row.thread_id for row in rows])
    show_table(
        "",
        ["thread", "label…", "messages#", "tokens#", "last activity"],
        [
            (
                clean(ids[r.thread_id]),
                one_line(r.title or f"Conversation {number}", 60),
                r.messages,
                f"{r.tokens:,}" + (f" ·{r.compactions}" if r.compactions else ""),
                shown_time(r.last_activity).replace(" ", "\N{NO-BREAK SPACE}"),
            )
            for number, r in enumerate(rows, 1)
        ],
    )
    if any(row.compactions for row in rows):
        say("[dim]· after the tokens: how often it was compacted[/dim]")
    say(f"Next: {clean(next_command('show', ids[rows[0].thread_id], db=db))}")


def shown_ids(whole: Sequence[str]) -> dict[str, str]:
    """Ids as they are shown: whole, or on a narrow terminal as much as names one of them."""
    if console.width >= WIDE:
        return {one: one for one in whole}
    return {one: _short(one, whole) for one in whole}


def _short(thread: str, others: Sequence[str]) -> str:
    for length in range(SHORTEST_ID, len(thread)):
        if sum(other.startswith(thread[:length]) for other in others) == 1:
            return thread[:length]
    return thread

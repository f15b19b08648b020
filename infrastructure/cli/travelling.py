"""``refold fork`` and ``diff``: a conversation as it was, gone on with or compared."""

from collections.abc import Sequence
from itertools import groupby
from typing import Annotated

import typer

from refold.application.time_travel.diffing import ContextDiff, MessageChange

from .opening import opened, require
from .options import DEFAULT_DB, At, Db, Json, ModelName, Thread, read_at
from .output import clean, console, print_json, say, show_table

HEAD, TAIL = 16, 4
"""Lines of a long run that was added or removed that are shown of its beginning and its end."""
COLOURS = {"+": "green", "-": "red", "@": "cyan"}
DIFF_EXAMPLE = (
    "Example: refold diff thread-42 120 164 --db agent.db. What stands for older messages is shown "
    "as it is written (memory:), then each content block as a line of JSON; long lines "
    "and long runs are cut, --full shows them whole."
)
EXAMPLES = {"diff": DIFF_EXAMPLE}


def fork(
    thread: Thread,
    new: Annotated[
        str | None,
        typer.Argument(metavar="NEW", help="The id of the new conversation; made up if missing."),
    ] = None,
    at: At = None,
    db: Db = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Begin a new conversation as a copy of one, as it is or as it was."""
    moment = None if at is None else read_at(at)
    with opened(db) as memory:
        thread = require(memory, thread)
        forked = memory.conversation(thread).fork(at=moment, thread_id=new).thread_id
        row = next(row for row in memory.conversations() if row.thread_id == forked)
    if json:
        print_json(row.model_dump())
        return
    say(
        f"{clean(forked)} begins with {row.messages:,} messages, as {clean(thread)} was at version "
        f"{row.forked_at}. What happens in one does not touch the other. "
        f"Next: refold context {clean(forked)} --db {clean(db)}"
    )


def diff(
    thread: Thread,
    before: Annotated[str, typer.Argument(metavar="V1", help="A version, or a time.")],
    after: Annotated[str, typer.Argument(metavar="V2", help="A version, or a time.")],
    db: Db = DEFAULT_DB,
    model: ModelName = None,
    full: Annotated[
        bool, typer.Option("--full", help="Show every line of the requests, whole.", metavar="")
    ] = False,
    json: Json = False,
) -> None:
    """Show what became of the request between two versions."""
    was, now = read_at(before), read_at(after)
    with opened(db) as memory:
        thread = require(memory, thread)
        found = memory.conversation(thread).diff(was, now, model=model)
    if json:
        print_json({**found.model_dump(), "freed": found.freed})
        return
    _show_summary(found)
    if found.changes:
        _show_changes(found.changes)
    _show_lines(found.unified, full=full)


def _show_summary(found: ContextDiff) -> None:
    say(
        f"[bold]version {found.before} → {found.after}[/bold]: {found.tokens_before:,} → "
        f"{found.tokens_after:,} tokens ({_signed(-found.freed)})"
    )
    summaries = (found.summary_before, found.summary_after)
    if summaries[0] == summaries[1]:
        say(f"summary: {clean(summaries[0] or 'none')}, before and after")
    else:
        say(f"summary: {' → '.join(clean(summary or 'none') for summary in summaries)}")
    happened = ", ".join(f"{event.count:,} × {event.what}" for event in found.events)
    say(f"in between: {happened or 'nothing'}")


def _signed(number: int) -> str:
    return f"{number:+,}".replace("-", "−")


def _show_changes(changes: Sequence[MessageChange]) -> None:
    runs = [
        list(same)
        for _, same in groupby(
            # Runs of messages one after the other that went the same way.
            enumerate(changes),
            lambda n: (n[1].position - n[0], n[1].before, n[1].after, n[1].thinking_dropped),
        )
    ]
    columns = ["positions", "messages#", "was", "is", "tokens before#", "after#"]
    show_table("", columns, [_row([change for _, change in run]) for run in runs])


def _row(run: Sequence[MessageChange]) -> tuple[str | int, ...]:
    first, last = run[0], run[-1]
    return (
        f"{first.position}" if first is last else f"{first.position}–{last.position}",
        len(run),
        first.before or "not yet said",
        _fate_after(first),
        sum(change.tokens_before for change in run),
        sum(change.tokens_after for change in run),
    )


def _fate_after(change: MessageChange) -> str:
    fate = change.after or "not yet said"
    return f"{fate}, without thinking" if change.thinking_dropped and change.after else fate


def _show_lines(unified: str, *, full: bool) -> None:
    if not unified:
        say("The two requests are the same.")
        return
    for sign, run in groupby(unified.split("\n"), lambda line: line[:1]):
        lines = list(run)
        hidden = 0 if full or len(lines) <= HEAD + TAIL + 1 else len(lines) - HEAD - TAIL
        for line in lines[:HEAD] if hidden else lines:
            _show_line(sign, line, full=full)
        if hidden:
            say(f"[dim]  … {hidden:,} more lines like these; --full shows them[/dim]")
            for line in lines[-TAIL:]:
                _show_line(sign, line, full=full)


def _show_line(sign: str, line: str, *, full: bool) -> None:
    width = console.width
    shown = clean(line if full or len(line) <= width else f"{line[: width - 1]}…")
    colour = COLOURS.get(sign)
    say(f"[{colour}]{shown}[/{colour}]" if colour else shown)

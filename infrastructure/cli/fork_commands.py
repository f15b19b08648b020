"""``refold fork`` and ``diff``: a conversation as it was, gone on with or compared."""

from collections.abc import Sequence
from itertools import groupby
from typing import Annotated

import typer

from refold.application.history.diff import ContextDiff, MessageChange

from .arguments import NAMED, next_command, opened, require, shown_span
from .options import DEFAULT_DB, At, AtPosition, Db, Full, Json, ModelName, Thread
from .output import clean, paged, print_json, say, show_table, warn
from .times import read_at

COLOURS = {"+": "green", "-": "red", "@": "cyan"}
DIFF_EXAMPLE = (
    "Example: refold diff thread-42 120 164 --db agent.db. With --full what stands for older messages is "
    "shown as it is written (memory:), then each content block as a line of JSON."
)
EXAMPLES = {"diff": DIFF_EXAMPLE}


def fork(
    thread: Thread,
    new: Annotated[
        str | None,
        typer.Argument(metavar="NEW", help="The id of the new conversation; made up if missing."),
    ] = None,
    at: At = None,
    position: AtPosition = None,
    db: Db = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Begin a new conversation as a copy of one, as it is or as it was."""
    moment = None if at is None else read_at(at)
    if moment is not None and position is not None:
        raise typer.BadParameter("give either --at or --position")
    with opened(db) as memory:
        thread = require(memory, thread)
        chat = memory.conversation(thread)
        forked = chat.fork(at=moment, position=position, thread_id=new).thread_id
        known = memory.conversations()
    row = next(row for row in known if row.thread_id == forked)
    _warn_of_longer(forked, [row.thread_id for row in known])
    if json:
        print_json(row.model_dump())
        return
    say(
        f"{clean(forked)} begins with {row.messages:,} messages, as {clean(thread)} was at version "
        f"{row.forked_at}. What happens in one does not touch the other. "
        f"Next: refold context {clean(forked)} --db {clean(db)}"
    )


def _warn_of_longer(forked: str, known: Sequence[str]) -> None:
    """Say that a beginning of other ids means the new conversation from now on."""
    longer = [one for one in known if one.startswith(forked) and one != forked]
    if longer:
        more = f" and {len(longer) - NAMED:,} more" if longer[NAMED:] else ""
        warn(
            f"[yellow]warning[/yellow]: {clean(repr(forked))} is the beginning of "
            f"{clean(', '.join(longer[:NAMED]))}{more}. It means the new conversation now; give more of "
            "the id for another."
        )


def diff(
    thread: Thread,
    before: Annotated[str, typer.Argument(metavar="V1", help="A version, or a time.")],
    after: Annotated[str, typer.Argument(metavar="V2", help="A version, or a time.")],
    db: Db = DEFAULT_DB,
    model: ModelName = None,
    full: Full = False,
    json: Json = False,
) -> None:
    """Show what became of the request between two versions. With --full every line that differs."""
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
    if full:
        with paged():
            _show_lines(found.unified)
    elif found.unified:
        added, removed = _counted(found.unified)
        words = ["diff", thread, before, after, "--full"]
        say(
            f"{added:,} lines of the request are new, {removed:,} are gone. "
            f"Next: {clean(next_command(*words, db=db))}"
        )
    else:
        say("The two requests are the same.")


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
        shown_span(first.position, last.position),
        len(run),
        first.before or "not yet said",
        _fate_after(first),
        sum(change.tokens_before for change in run),
        sum(change.tokens_after for change in run),
    )


def _fate_after(change: MessageChange) -> str:
    fate = change.after or "not yet said"
    return f"{fate}, without thinking" if change.thinking_dropped and change.after else fate


def _counted(unified: str) -> tuple[int, int]:
    lines = unified.split("\n")
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def _show_lines(unified: str) -> None:
    if not unified:
        say("The two requests are the same.")
        return
    for line in unified.split("\n"):
        colour = COLOURS.get(line[:1])
        shown = clean(line)
        say(f"[{colour}]{shown}[/{colour}]" if colour else shown)

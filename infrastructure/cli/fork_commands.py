"""``refold fork``, ``diff`` and ``erase``: copy, compare and remove."""

import sys
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Annotated

import typer

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.erasure.erasure_report import ErasureReport
from refold.application.history.diff import ContextDiff, MessageChange
from refold.infrastructure.files.log_place import typed_command

from .arguments import (
    NAMED,
    Span,
    Where,
    find_place,
    format_span,
    naming_commands,
    next_command,
    open_existing,
    require,
)
from .options import (
    DEFAULT_DB,
    At,
    AtPosition,
    Db,
    Full,
    Json,
    ModelName,
    Thread,
    read_at,
    refuse_wrong_at,
)
from .output import clean, pager, print_json, say, show_table, warn

STYLES = {"+": "added", "-": "removed", "@": "dim"}
DIFF_EXAMPLE = (
    "Example: refold diff thread-42 120 164 --db agent.db. With --full the text that replaces older messages is "
    "shown verbatim (memory:), then each content block as a line of JSON."
)
EXAMPLES = {"diff": DIFF_EXAMPLE}


def fork(
    thread: Thread,
    new: Annotated[
        str | None,
        typer.Argument(metavar="NEW", help="The id of the new conversation; generated if missing."),
    ] = None,
    at: At = None,
    position: AtPosition = None,
    db: Db = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Copy a conversation, in its current or an earlier state."""
    moment = None if at is None else read_at(at)
    if moment is not None and position is not None:
        raise typer.BadParameter("give either --at or --position")
    with open_existing(db) as memory:
        thread = require(memory, thread)
        conversation = memory.conversation(thread)
        forked = conversation.fork(at=moment, position=position, thread_id=new).thread_id
        known = memory.conversations()
    row = next(row for row in known if row.thread_id == forked)
    _warn_of_longer(forked, [row.thread_id for row in known])
    if json:
        print_json(row.model_dump())
        return
    say(
        f"{clean(forked)} begins with {row.messages:,} messages, as {clean(thread)} was at version "
        f"{row.forked_at}. Later changes to one do not affect the other. "
        f"Next: {clean(typed_command('context', forked, '--db', db))}"
    )


def _warn_of_longer(forked: str, known: Sequence[str]) -> None:
    """Warn if the new id is the beginning of existing ids, which it no longer abbreviates."""
    longer = [one for one in known if one.startswith(forked) and one != forked]
    if longer:
        more = f" and {len(longer) - NAMED:,} more" if longer[NAMED:] else ""
        warn(
            f"[warning]warning[/warning]: {clean(repr(forked))} is the beginning of "
            f"{clean(', '.join(longer[:NAMED]))}{more}. It now means the new conversation; give more of "
            "the id to name another."
        )


def diff(
    thread: Thread,
    before: Annotated[
        str, typer.Argument(metavar="V1", callback=refuse_wrong_at, help="A version, or a time.")
    ],
    after: Annotated[
        str, typer.Argument(metavar="V2", callback=refuse_wrong_at, help="A version, or a time.")
    ],
    db: Db = DEFAULT_DB,
    model: ModelName = None,
    full: Full = False,
    json: Json = False,
) -> None:
    """Show how the request changed between two versions. With --full every line that differs."""
    was, now = read_at(before), read_at(after)
    with open_existing(db) as memory:
        thread = require(memory, thread)
        found = memory.conversation(thread).diff(was, now, model=model)
    if json:
        print_json({**found.model_dump(), "freed": found.freed})
        return
    _show_summary(found)
    if found.changes:
        _show_changes(found.changes)
    if full:
        with pager():
            _show_lines(found.unified)
    elif found.unified:
        added, removed = _count_lines(found.unified)
        words = ["diff", thread, before, after, "--full"]
        say(
            f"{added:,} lines of the request were added, {removed:,} removed. "
            f"Next: {clean(next_command(*words, db=db))}"
        )
    else:
        say("The two requests are the same.")


def _show_summary(found: ContextDiff) -> None:
    say(
        f"[bold]version {found.before} → {found.after}[/bold]: {found.tokens_before:,} → "
        f"{found.tokens_after:,} tokens ({_format_difference(-found.freed)})"
    )
    summaries = (found.summary_before, found.summary_after)
    if summaries[0] == summaries[1]:
        say(f"summary: {clean(summaries[0] or 'none')}, before and after")
    else:
        say(f"summary: {' → '.join(clean(summary or 'none') for summary in summaries)}")
    happened = ", ".join(f"{event.count:,} × {event.what}" for event in found.events)
    say(f"in between: {happened or 'nothing'}")


def _format_difference(number: int) -> str:
    return f"{number:+,}".replace("-", "−")


def _show_changes(changes: Sequence[MessageChange]) -> None:
    runs = [
        list(same)
        for _, same in groupby(
            # Consecutive messages that changed in the same way.
            enumerate(changes),
            lambda n: (n[1].position - n[0], n[1].before, n[1].after, n[1].thinking_dropped),
        )
    ]
    columns = ["positions", "messages#", "was", "is", "tokens before#", "after#"]
    show_table("", columns, [_row([change for _, change in run]) for run in runs])


def _row(run: Sequence[MessageChange]) -> tuple[str | int, ...]:
    first, last = run[0], run[-1]
    return (
        format_span(first.position, last.position),
        len(run),
        first.before or "not yet appended",
        _fate_after(first),
        sum(change.tokens_before for change in run),
        sum(change.tokens_after for change in run),
    )


def _fate_after(change: MessageChange) -> str:
    fate = change.after or "not yet appended"
    return f"{fate}, without thinking" if change.thinking_dropped and change.after else fate


def _count_lines(unified: str) -> tuple[int, int]:
    lines = unified.split("\n")
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def _show_lines(unified: str) -> None:
    if not unified:
        say("The two requests are the same.")
        return
    for line in unified.split("\n"):
        style = STYLES.get(line[:1])
        shown = clean(line)
        say(f"[{style}]{shown}[/{style}]" if style else shown)


_NAMES = {
    "message": "messages",
    "summary": "summaries",
    "leaf": "leaf summaries",
    "ledger": "ledger lines",
    "index": "entries of the index",
    "attempt": "records of compaction attempts",
    "topics": "topics of summaries",
    "notes": "notes about it",
    "notes files": "files of the notes folder, rewritten",
    "pin": "pinned texts",
    "proposal": "edits that a model proposed",
    "label": "labels that quoted it",
    "focus": "focuses of compactions that quoted it",
    "quoted memory": "quotations in system texts",
    "recalled line": "lines recalled for later messages",
    "system text": "recorded system texts that quoted it",
    "event": "events",
    "read models": "read models, rebuilt on the next read",
    "recall index": "recall index, rebuilt on the next search",
    "vectors": "vectors of messages",
    "search backend": "data passed to the search program",
    "tables of followers": "tables that followers fill",
}


Reason = Annotated[
    str, typer.Option("--reason", help="Recorded in the log for audits.", metavar="TEXT")
]
Waits = Annotated[
    bool,
    typer.Option(
        "--wait",
        help="On a server: wait until its write-ahead log has no keys of it.",
        metavar="",
    ),
]
WAIT = 60.0
"""Seconds that ``--wait`` waits."""

OfOwner = Annotated[
    str | None,
    typer.Option(
        "--owner", help="Erase all messages of this owner, in every conversation.", metavar="ID"
    ),
]


def erase(
    thread: Annotated[
        str | None,
        typer.Argument(
            metavar="THREAD",
            help="The thread id or its beginning, THREAD/17, or the address of a message.",
        ),
    ] = None,
    positions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[POSITION]...",
            help="Positions, ranges such as 4..9, or addresses; `refold show` lists the positions.",
        ),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--all", help="Erase the whole conversation.", metavar="")
    ] = False,
    owner: OfOwner = None,
    reason: Reason = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.", metavar="")] = False,
    wait: Waits = False,
    db: Db = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Permanently erase messages, a conversation or all data of an owner, with everything derived from it.

    Exit code 1 if another process was reading: run it again for the rest. 2 if the owner has no data.
    """
    _refuse_crossed(thread, owner, several=bool(positions), whole=whole)
    with open_existing(db) as memory, naming_commands(db):
        if thread is None:
            report = _erase_owner(memory, owner or "", reason, yes=yes)
        else:
            where = find_place(memory, thread, positions or ())
            _refuse_short_id(where, thread, without_asking=whole and yes)
            report = _erase_in_conversation(memory, where, reason, whole=whole, yes=yes)
        if wait:
            report = report.finished(memory.finish_erasures(wait=WAIT))
    print_erasure(report, json=json)
    print_leftovers(report)


def _erase_owner(memory: Memory, owner: str, reason: str, *, yes: bool) -> ErasureReport:
    if not yes:
        confirm_erasure(f"all data of owner {owner!r}", ())
    return memory.erase_owner(owner, reason)


def _refuse_crossed(thread: str | None, owner: str | None, *, several: bool, whole: bool) -> None:
    if owner is not None and (thread or several or whole):
        raise typer.BadParameter("--owner cannot be combined with a thread, positions or --all")
    if owner is None and thread is None:
        raise typer.BadParameter("give a thread with either positions or --all, or --owner")


def _refuse_short_id(where: Where, given: str, *, without_asking: bool) -> None:
    if without_asking and where.thread != given:
        raise typer.BadParameter(f"--all --yes needs the full id: {where.thread}")


def _erase_in_conversation(
    memory: Memory, where: Where, reason: str, *, whole: bool, yes: bool
) -> ErasureReport:
    if whole == bool(where.spans):
        raise typer.BadParameter("give either positions or --all, or --owner without a thread")
    conversation = memory.conversation(where.thread)
    places = [at for span in where.spans for at in _positions(conversation, span)]
    if not yes:
        count = len(places)
        which = f"{count:,} message{'s' * (count > 1)}" if count else "all"
        confirm_erasure(f"{which} of {where.thread!r}", conversation.shared_with(places or None))
    if not places:
        return memory.erase_conversation(where.thread, reason)
    return conversation.erase(places, reason)


def _positions(conversation: ConversationMemory, span: Span) -> Sequence[int]:
    """Return the positions in the span. A single position that does not exist is refused later."""
    if span.is_one and span.start is not None and span.start >= 0:
        return (span.start,)
    found = range(*slice(*span).indices(len(conversation.explain())))
    if not found:
        raise typer.BadParameter("there is no message in that range")
    return found


def print_leftovers(report: ErasureReport) -> None:
    """Warn where erased data may still be. Exit code 1 if there is such a place, 2 if the owner has no data."""
    if not report.known:
        warn(f"This log has no data of owner {clean(repr(report.owner))}: nothing was erased.")
    for copy in report.damaged_copies:
        warn(
            f"{clean(copy)}, a copy of a damaged write-ahead log, may contain the erased data. Delete it if you can."
        )
    for log in report.earlier_logs:
        warn(
            f"{clean(log)}, which was replaced by a backup, may contain the erased data: erase there too, or delete it."
        )
    for place in report.places:
        if place.state == "pending":
            warn(f"It may still be in the {place.place}: {place.detail}.")
    if not (report.complete or report.damaged_copies or report.earlier_logs or report.places):
        warn(
            "Another process was reading, or another program checkpoints the log (REFOLD_CHECKPOINTS=false), so old "
            "bytes remain in a file. Run the same command again when it has stopped."
        )
    if not report.complete:
        raise typer.Exit(1)
    if not report.known:
        raise typer.Exit(2)


def confirm_erasure(what: str, copies: Sequence[str]) -> None:
    """Ask whether to erase; ``copies`` are the conversations that have it as well."""
    if not sys.stdin.isatty():
        raise typer.BadParameter(
            "erasing cannot be undone, and this is not a terminal: confirm with --yes"
        )
    too = ""
    if copies:
        named = ", ".join(map(repr, copies))
        too = f" They are also in {named} because of forks, and are erased there too."
    typer.confirm(
        f"Erase {clean(what)}?{clean(too)} This cannot be undone",
        abort=True,
        err=True,
    )


def print_erasure(report: ErasureReport, *, json: bool) -> None:
    """Print what an erasure removed."""
    if json:
        print_json({**report.model_dump(), "changed": report.changed})
        return
    if not report.known:
        return
    if not report.changed:
        say("Nothing was left to erase." if report.complete else "Nothing new was erased.")
        return
    counts: Counter[tuple[str, str]] = Counter()
    for one in report.removed:
        counts[one.thread_id, one.place] += one.count
    show_table(
        "Removed",
        ["thread", "how many#", "what"],
        [(clean(t), n, _NAMES[place]) for (t, place), n in sorted(counts.items())],
    )
    for made in report.rebuilt:
        say(
            f"Summary {clean(made.summary_id)} of {clean(made.thread_id)} was rebuilt by code from "
            f"the remaining messages: {made.tokens_before:,} → {made.tokens_after:,} tokens."
        )
    if report.places:
        show_table(
            "Where its bytes may be",
            ["place", "state", "why"],
            [(place.place, place.state, place.detail) for place in report.places],
        )
    elif report.complete:
        say("[good]No file of the log contains it any more.[/good] Backups and exports may.")
    if report.notes_elsewhere:
        say(
            "There were notes about it. If a program keeps notes in a folder, its files have them until it "
            "opens the log."
        )

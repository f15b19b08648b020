"""``refold erase``: removing messages, or a conversation, for good."""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from refold.application.api.conversation_memory import Chat
from refold.application.api.memory import Memory
from refold.application.erasure.erasure_report import ErasureReport

from .arguments import Span, Where, find_place, naming_commands, opened
from .options import DEFAULT_DB, Db, Json
from .output import clean, print_json, say, show_table, warn

_NAMES = {
    "message": "messages",
    "summary": "summaries",
    "leaf": "leaf summaries",
    "ledger": "ledger lines",
    "attempt": "records of compaction attempts",
    "topics": "topics of summaries",
    "notes": "notes that were taken of it",
    "notes files": "files of the notes folder, written anew",
    "pin": "pinned texts",
    "label": "labels that quoted it",
    "focus": "focuses of compactions that quoted it",
    "quoted memory": "quotations in system texts",
    "system text": "recorded system texts that quoted it",
    "event": "events",
    "read models": "read models, folded anew when they are read next",
    "recall index": "recall index, folded anew when something is looked up next",
    "vectors": "vectors of what was said",
    "search backend": "what the search program was handed",
}


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
            help="Positions, ranges such as 4..9, or addresses; `refold show` has the positions.",
        ),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--all", help="Erase the whole conversation.", metavar="")
    ] = False,
    owner: OfOwner = None,
    reason: Annotated[
        str, typer.Option("--reason", help="Kept in the log, for audit.", metavar="TEXT")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.", metavar="")] = False,
    db: Db = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Erase messages, a conversation or all that is an owner's, with all that was made from it, for good.

    Exit code 1 if another process was reading: run it again for the rest. 2: nothing is of that owner.
    """
    _refuse_crossed(thread, owner, several=bool(positions), whole=whole)
    with opened(db) as memory, naming_commands(db):
        if thread is None:
            report = _of_owner(memory, owner or "", reason, yes=yes)
        else:
            where = find_place(memory, thread, positions or ())
            _refuse_short_id(where, thread, without_asking=whole and yes)
            report = _in_conversation(memory, where, reason, whole=whole, yes=yes)
    _tell(report, json=json)
    _tell_what_is_left(report)


def _of_owner(memory: Memory, owner: str, reason: str, *, yes: bool) -> ErasureReport:
    if not yes:
        _confirm(f"everything of owner {owner!r}", ())
    return memory.erase_owner(owner, reason)


def _refuse_crossed(thread: str | None, owner: str | None, *, several: bool, whole: bool) -> None:
    if owner is not None and (thread or several or whole):
        raise typer.BadParameter("--owner goes without a thread, positions and --all")
    if owner is None and thread is None:
        raise typer.BadParameter("give a thread with either positions or --all, or --owner")


def _refuse_short_id(where: Where, given: str, *, without_asking: bool) -> None:
    if without_asking and where.thread != given:
        raise typer.BadParameter(f"--all --yes needs the whole id: {where.thread}")


def _in_conversation(
    memory: Memory, where: Where, reason: str, *, whole: bool, yes: bool
) -> ErasureReport:
    if whole == bool(where.spans):
        raise typer.BadParameter("give either positions or --all, or --owner without a thread")
    chat = memory.conversation(where.thread)
    places = [at for span in where.spans for at in _positions(chat, span)]
    if not yes:
        count = len(places)
        which = f"{count:,} message{'s' * (count > 1)}" if count else "all"
        _confirm(f"{which} of {where.thread!r}", chat.shared_with(places or None))
    if not places:
        return memory.erase_conversation(where.thread, reason)
    return chat.erase(places, reason)


def _positions(chat: Chat, span: Span) -> Sequence[int]:
    """The positions that are meant; a single one may not exist, and is refused by what erases."""
    if span.is_one and span.start is not None and span.start >= 0:
        return (span.start,)
    found = range(*slice(*span).indices(len(chat.explain())))
    if not found:
        raise typer.BadParameter("there is no message in that range")
    return found


def _tell_what_is_left(report: ErasureReport) -> None:
    if not report.known:
        warn(f"Nothing in this log is of an owner {clean(repr(report.owner))}: nothing was erased.")
    for copy in report.damaged_copies:
        warn(
            f"{clean(copy)}, a copy of a damaged write-ahead log, may hold it. Delete it if you can."
        )
    for log in report.earlier_logs:
        warn(
            f"{clean(log)}, which was replaced by a backup, may hold it: erase there, or delete it."
        )
    if not (report.complete or report.damaged_copies or report.earlier_logs):
        warn("Another process was reading: older bytes are left in a file. Run the same again.")
    if not report.complete:
        raise typer.Exit(1)
    if not report.known:
        raise typer.Exit(2)


def _confirm(what: str, copies: Sequence[str]) -> None:
    if not sys.stdin.isatty():
        raise typer.BadParameter(
            "erasing cannot be undone, and nobody is here to be asked: add --yes if it is meant"
        )
    too = ""
    if copies:
        named = ", ".join(map(repr, copies))
        too = f" They are in {named} as well, by fork, and are erased there too."
    typer.confirm(
        f"Erase {clean(what)}?{clean(too)} This cannot be undone",
        abort=True,
        err=True,
    )


def _tell(report: ErasureReport, *, json: bool) -> None:
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
            f"Summary {clean(made.summary_id)} of {clean(made.thread_id)} was made anew by code from "
            f"what remains: {made.tokens_before:,} → {made.tokens_after:,} tokens."
        )
    if report.complete:
        say("[green]No file of the log holds it any more.[/green] Backups and exports may.")
    if report.notes_elsewhere:
        say(
            "Notes had been taken of it. If a program keeps them in a folder, its files have them until it "
            "opens the log."
        )

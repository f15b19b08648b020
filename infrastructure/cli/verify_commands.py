"""``refold verify``, ``replay``, ``anchor`` and ``salvage``: is all of it there, and what if not."""

from pathlib import Path
from typing import Annotated

import typer

from refold.application.errors import LogError
from refold.application.maintenance.maintenance_results import AnchorState, Salvaged
from refold.application.maintenance.verifying import Verification

from .arguments import opened
from .options import DEFAULT_DB, Db, Json
from .output import clean, print_json, say, show_table

SHOWN = 100
"""Rows of a table; all are in the JSON."""


def verify(
    db: Db = DEFAULT_DB,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Make read models, snapshots, index of keys and anchor anew where they are damaged; the "
            "events are never touched.",
            metavar="",
        ),
    ] = False,
    anchor: Annotated[
        Path | None,
        typer.Option("--anchor", help="Compare with an exported anchor as well.", metavar="FILE"),
    ] = None,
    json: Json = False,
) -> None:
    """Check every event, and compare every read model with a fresh fold. Exit code 1 on damage."""
    found = _verified(db, repair=repair, anchor=anchor)
    if json:
        print_json(found.model_dump())
    else:
        _tell_verification(found)
    if not found.ok:
        raise typer.Exit(1)


def replay(db: Db = DEFAULT_DB, json: Json = False) -> None:
    """Rebuild every read model and the recall index from the log. Calls no model."""
    with opened(db) as memory:
        replayed = memory.replay()
    if json:
        print_json(replayed.model_dump())
    else:
        say(
            f"Rebuilt every read model from {replayed.events:,} events, and the recall index of "
            f"{replayed.passages:,} passages. No model was called."
        )


def anchor(
    db: Db = DEFAULT_DB,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write the anchor into this new file.", metavar="FILE"),
    ] = None,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept",
            help="Make the anchor anew from the log as it is, even if that lacks what was stored.",
            metavar="",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Show, export or accept the anchor: what the newest event of each conversation was."""
    from refold.infrastructure.maintenance.lost_logs import accept_lost

    if accept and accept_lost(db):
        state = AnchorState(path=None, conversations=0, accepted=True)
    else:
        with opened(db) as memory:
            state = memory.anchor(out, accept=accept)
    if json:
        print_json(state.model_dump(mode="json"))
    else:
        _tell_anchor(state, out)


def salvage(
    to: Annotated[Path, typer.Argument(metavar="NEW.db", help="The new log to make.")],
    db: Db = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Copy every intact event into a new log, and list what was lost. The old one is only read."""
    from refold.infrastructure.maintenance.lost_logs import salvage_file

    salvaged = salvage_file(db, to)
    if json:
        print_json(salvaged.model_dump(mode="json"))
    else:
        _tell_salvage(salvaged, db)


def _verified(db: Path, *, repair: bool, anchor: Path | None) -> Verification:
    from refold.infrastructure.maintenance.lost_logs import verify_file

    try:
        memory = opened(db)
    except LogError as error:
        return verify_file(db, error, anchor=anchor)
    with memory:
        return memory.verify(repair=repair, anchor=anchor)


def _counted(found: Verification) -> str:
    name = "conversation" if found.conversations == 1 else "conversations"
    erased = f", {found.erased:,} of them erased" if found.erased else ""
    return f"{found.conversations:,} {name}{erased}"


def _tell_verification(found: Verification) -> None:
    for line in found.repaired:
        say(f"[yellow]Repaired[/yellow]: {clean(line)}.")
    for line in found.notices:
        say(f"[yellow]Note[/yellow]: {clean(line)}.")
    if found.ok:
        say(
            f"[green]All is well.[/green] {found.events:,} events of {_counted(found)}: every digest "
            "and link holds, every read model equals its fold."
        )
        return
    show_table(
        "",
        ["where", "thread", "event#", "damage", "detail"],
        [
            (d.place, clean(d.thread_id), d.version or None, d.kind, clean(d.detail))
            for d in found.damage[:SHOWN]
        ],
    )
    if len(found.damage) > SHOWN:
        say(f"… and {len(found.damage) - SHOWN:,} more; --json shows all.")
    say(
        "The log itself is damaged. Its events were not changed. What can be done:"
        if found.log_damaged
        else "The log is intact. What can be done:"
    )
    for remedy in dict.fromkeys(d.remedy for d in found.damage):
        say(f"  - {clean(remedy)}")


def _tell_anchor(state: AnchorState, out: Path | None) -> None:
    if state.accepted and not state.conversations:
        say("Accepted: nothing is known any more of a log that is not there.")
    elif state.accepted:
        say(
            f"Accepted: {clean(state.path)} has the log as it is, {state.conversations:,} conversations."
        )
    elif out is not None:
        say(
            f"{clean(state.path)}: the newest event of {state.conversations:,} conversations. Keep it "
            f"elsewhere; later: refold verify --anchor {clean(state.path)}"
        )
    elif state.path is None:
        say("This log keeps no anchor (REFOLD_ANCHOR=false).")
    else:
        say(
            f"{clean(state.path)}: the newest event of {state.conversations:,} conversations; the log "
            "has them all."
        )


def _tell_salvage(salvaged: Salvaged, db: Path) -> None:
    say(
        f"{clean(salvaged.path)}: {salvaged.events:,} events of {salvaged.conversations:,} "
        f"conversations were copied; {clean(db)} was not changed."
    )
    if salvaged.complete:
        say("[green]Nothing was lost.[/green]")
        return
    show_table(
        "Lost",
        ["thread", "event#", "message#", "damage", "detail"],
        [
            (clean(e.thread_id), e.version or None, e.position, e.kind, clean(e.detail))
            for e in salvaged.lost[:SHOWN]
        ],
    )
    say(
        f"{len(salvaged.lost):,} findings; the places of lost events are left, the others keep theirs."
    )

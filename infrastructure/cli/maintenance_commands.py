"""``refold verify``, ``replay``, ``salvage``, ``anchor``, ``backup``, ``restore``, ``compress``."""

from pathlib import Path
from typing import Annotated

import typer

from refold.application.errors import LogError
from refold.application.maintenance.maintenance_results import (
    AnchorState,
    Compressed,
    ErasedAgain,
    Restored,
    Salvaged,
)
from refold.application.maintenance.verifying import Verification
from refold.infrastructure.files.log_place import LogPlace

from .arguments import open_existing
from .options import DEFAULT_DB, Db, Force, Json
from .output import clean, print_json, say, show_table

SHOWN = 100
"""Number of table rows. The JSON has all."""


def verify(
    db: Db = DEFAULT_DB,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Rebuild damaged read models, snapshots, key index and anchor; the "
            "events are never changed.",
            metavar="",
        ),
    ] = False,
    anchor: Annotated[
        Path | None,
        typer.Option("--anchor", help="Also compare with an exported anchor.", metavar="FILE"),
    ] = None,
    json: Json = False,
) -> None:
    """Check every event, and compare every read model with the log. Exit code 1 on damage."""
    found = _verify(db, repair=repair, anchor=anchor)
    if json:
        print_json(found.model_dump())
    else:
        _print_verification(found)
    if not found.ok:
        raise typer.Exit(1)


def replay(db: Db = DEFAULT_DB, json: Json = False) -> None:
    """Rebuild every read model and the recall index from the log. Calls no model."""
    with open_existing(db) as memory:
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
        typer.Option("--out", help="Write the anchor to this new file.", metavar="FILE"),
    ] = None,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept",
            help="Rebuild the anchor from the log as it is, even if stored events are missing from it.",
            metavar="",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Show, export or accept the anchor, which records the newest event of each conversation."""
    from refold.infrastructure.maintenance.restore import accept_lost

    if accept and out is None and accept_lost(db.file_for("anchor")):
        state = AnchorState(path=None, conversations=0, accepted=True)
    else:
        with open_existing(db) as memory:
            state = memory.anchor(out, accept=accept)
    if json:
        print_json(state.model_dump(mode="json"))
    else:
        _print_anchor(state, out)


def salvage(
    to: Annotated[Path, typer.Argument(metavar="NEW.db", help="The new log to create.")],
    db: Db = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Copy every intact event into a new log, and list what was lost. The old log is only read."""
    from refold.infrastructure.maintenance.restore import salvage_file

    salvaged = salvage_file(db.file_for("salvage"), to)
    if json:
        print_json(salvaged.model_dump(mode="json"))
    else:
        _print_salvage(salvaged, db)


def _verify(db: LogPlace, *, repair: bool, anchor: Path | None) -> Verification:
    from refold.infrastructure.maintenance.restore import verify_file

    try:
        memory = open_existing(db)
    except LogError as error:
        if db.path is None:
            raise
        return verify_file(db.path, error, anchor=anchor)
    with memory:
        return memory.verify(repair=repair, anchor=anchor)


def _format_count(found: Verification) -> str:
    name = "conversation" if found.conversations == 1 else "conversations"
    erased = f", {found.erased:,} of them erased" if found.erased else ""
    return f"{found.conversations:,} {name}{erased}"


def _print_verification(found: Verification) -> None:
    for line in found.repaired:
        say(f"[warning]Repaired[/warning]: {clean(line)}.")
    for line in found.notices:
        say(f"[warning]Note[/warning]: {clean(line)}.")
    if found.ok:
        say(
            f"[good]All is well.[/good] {found.events:,} events of {_format_count(found)}: every digest "
            "and link is valid, and every read model matches the log."
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
    say(f"{_state_of_log(found)} What can be done:")
    for remedy in dict.fromkeys(d.remedy for d in found.damage):
        say(f"  - {clean(remedy)}")


def _state_of_log(found: Verification) -> str:
    kinds = {d.kind for d in found.damage if d.place == "log"}
    if kinds == {"newer"}:
        return "The log has events of a newer refold, which this one cannot check. They were not changed."
    if kinds:
        return "The log itself is damaged. Its events were not changed."
    return "The log is intact."


def _print_anchor(state: AnchorState, out: Path | None) -> None:
    if state.accepted and not state.conversations:
        say("Accepted: the anchor of the missing log was removed.")
    elif state.accepted:
        say(
            f"Accepted: {clean(state.path)} now matches the log, {state.conversations:,} conversations."
        )
    elif out is not None:
        say(
            f"{clean(state.path)}: the newest event of {state.conversations:,} conversations. Keep it "
            f"elsewhere; later: refold verify --anchor {clean(state.path)}"
        )
    elif state.path is None:
        say("This log has no anchor (REFOLD_ANCHOR=false).")
    else:
        say(
            f"{clean(state.path)}: the newest event of {state.conversations:,} conversations; the log "
            "has them all."
        )


def _print_salvage(salvaged: Salvaged, db: LogPlace) -> None:
    say(
        f"{clean(salvaged.path)}: {salvaged.events:,} events of {salvaged.conversations:,} "
        f"conversations were copied; {clean(db)} was not changed."
    )
    if salvaged.complete:
        say("[good]Nothing was lost.[/good]")
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
        f"{len(salvaged.lost):,} findings; positions of lost events stay empty, the others are unchanged."
    )


def backup(
    to: Annotated[Path, typer.Argument(metavar="TO", help="The file to create.")],
    db: Db = DEFAULT_DB,
    force: Force = False,
    json: Json = False,
) -> None:
    """Back up the log to a file and check the copy. Other programs can use the log meanwhile."""
    with open_existing(db) as memory:
        made = memory.backup(to, replace=force)
    if json:
        print_json(made.model_dump(mode="json"))
        return
    say(
        f"{clean(made.path)}: {made.events:,} events of {made.conversations:,} conversations, "
        f"{made.bytes:,} bytes. Every digest and link is valid. "
        f"To restore it: refold restore {clean(made.path)} --db {clean(db)}"
    )


def restore(
    source: Annotated[
        Path, typer.Argument(metavar="FROM", help="A file created by `refold backup`.")
    ],
    db: Db = DEFAULT_DB,
    force: Annotated[
        bool,
        typer.Option("--force", help="Move an existing log to another name first.", metavar=""),
    ] = False,
    json: Json = False,
) -> None:
    """Replace the log by a backup, after checking every event of the backup.

    An existing log is moved to another name. Data erased in it is erased in the backup as well.
    """
    from refold.infrastructure.maintenance.restore import restore_log

    restored = restore_log(source, db.file_for("restore"), force=force)
    if json:
        print_json(restored.model_dump(mode="json"))
    else:
        _print_restore(restored)


def _print_restore(restored: Restored) -> None:
    say(
        f"{clean(restored.path)} is now the backup: {restored.events:,} events of "
        f"{restored.conversations:,} conversations, and every digest and link is valid."
    )
    if restored.erased_again:
        say(
            f"Erased again, because the backup was older: "
            f"{', '.join(map(_erased_name, restored.erased_again))}"
        )
    if restored.moved_aside is not None:
        say(
            f"The previous log is now {clean(restored.moved_aside)}, with all its "
            "content: delete it when it is no longer needed. Programs that had it open must reopen the log."
        )
    for path in restored.unread:
        say(
            f"[warning]Not every erasure could be read from {clean(path)}[/warning]: content erased "
            "after the backup may be back. Look for it, and erase it again."
        )


def _erased_name(erased: ErasedAgain) -> str:
    place = "" if erased.position is None else f" at {erased.position}"
    return f"{clean(erased.thread_id)}{place}"


Keep = Annotated[
    int,
    typer.Option(
        "--keep",
        min=0,
        metavar="N",
        help="Number of newest events of each conversation that always stay uncompressed.",
    ),
]


def compress(db: Db = DEFAULT_DB, keep: Keep = 0, json: Json = False) -> None:
    """Compress the events before the live part of each conversation; they read as before.

    Other programs can use the log meanwhile. If the command is stopped, the next run continues there.
    """
    with open_existing(db) as memory:
        done = memory.compress(keep=keep)
    if json:
        print_json(done.model_dump())
    else:
        _print_compressed(done)


def _print_compressed(done: Compressed) -> None:
    if not done.events:
        say("Nothing to compress: all events before the live parts are compressed already.")
        return
    say(
        f"{done.events:,} events: {done.bytes_before:,} → {done.bytes_after:,} bytes "
        f"({done.bytes_after / done.bytes_before:.0%}). Everything reads as before."
    )
    say(
        f"The file keeps its size: {done.reusable_bytes:,} bytes of it, and free space "
        "in its pages, will be reused. A copy by `refold backup` has no such free space."
    )

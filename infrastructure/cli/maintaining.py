"""``refold compact``, ``verify`` and ``replay``: acting on what is stored."""

from typing import Annotated

import typer

from refold.application.results import CompactionResult
from refold.application.verifying import Verification

from .opening import opened, require
from .options import DEFAULT_DB, Db, Json, ModelName, PolicyFile, SummariserName, Thread, Window
from .output import clean, print_json, say, show_table


def compact(
    thread: Thread,
    db: Db = DEFAULT_DB,
    focus: Annotated[
        str | None,
        typer.Option("--focus", help="What the summary should keep above all.", metavar="TEXT"),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Try even after several failures in a row.", metavar="")
    ] = False,
    window: Window = None,
    model: ModelName = None,
    summariser: SummariserName = None,
    policy: PolicyFile = None,
    json: Json = False,
) -> None:
    """Compact a conversation now. Exit code 1 if that failed; then nothing has changed."""
    with opened(
        db,
        window=window,
        model=model,
        summariser=summariser,
        policy_file=policy,
    ) as memory:
        require(memory, thread)
        result = memory.conversation(thread).compact(focus=focus, force=force)
    if json:
        print_json({**result.model_dump(), "success": result.success, "freed": result.freed})
    else:
        _tell_compaction(result)
    if not result.success:
        raise typer.Exit(1)


def verify(db: Db = DEFAULT_DB, json: Json = False) -> None:
    """Check every event, and compare every read model with a fresh fold. Exit code 1 on damage."""
    with opened(db) as memory:
        found = memory.verify()
    if json:
        print_json(found.model_dump())
    else:
        _tell_verification(found)
    if not found.ok:
        raise typer.Exit(1)


def replay(db: Db = DEFAULT_DB, json: Json = False) -> None:
    """Rebuild every read model from the log. Calls no model."""
    with opened(db) as memory:
        replayed = memory.replay()
    if json:
        print_json(replayed.model_dump())
    else:
        say(f"Rebuilt every read model from {replayed.events:,} events. No model was called.")


def _tell_compaction(result: CompactionResult) -> None:
    match result.outcome:
        case "performed":
            say(
                f"Compacted: {result.tokens_before:,} → {result.tokens_after:,} tokens "
                f"({result.freed:,} freed). The summary stands for {result.messages_covered:,} "
                f"messages; {result.messages_kept:,} are kept word for word."
            )
        case "nothing_to_do":
            say(f"Nothing to do: {result.detail} ({result.reason}). 0 tokens freed.")
        case "failed" | "in_flight":
            say(
                f"[red]Not compacted[/red] ({result.reason}): {clean(result.detail.rstrip('.'))}. "
                "The conversation is as it was."
            )
        case "shortened" | "reverted":
            pass  # No outcome of a compaction on demand.


def _tell_verification(found: Verification) -> None:
    if found.ok:
        say(
            f"[green]All is well.[/green] {found.events:,} events of {found.conversations:,} "
            "conversations: every digest and link holds, every read model equals its fold."
        )
        return
    show_table(
        "",
        ["where", "thread", "event#", "damage", "detail"],
        [(d.place, clean(d.thread_id), d.version, d.kind, clean(d.detail)) for d in found.damage],
    )
    if found.log_damaged:
        say("The log itself is damaged: restore it from a backup. Nothing was changed.")
    else:
        say("The log is intact. `refold replay` rebuilds the read models from it.")

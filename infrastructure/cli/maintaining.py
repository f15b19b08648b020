"""``refold compact``: acting on what is stored."""

from typing import Annotated

import typer

from refold.application.results import CompactionResult

from .opening import opened, require
from .options import DEFAULT_DB, Db, Json, PolicyFile, SummariserName, Thread, Window
from .output import clean, print_json, say

Focus = Annotated[
    str | None,
    typer.Option("--focus", help="What the summary should keep above all.", metavar="TEXT"),
]
Force = Annotated[
    bool, typer.Option("--force", help="Try even after several failures in a row.", metavar="")
]
Target = Annotated[
    int | None,
    typer.Option(
        "--target",
        metavar="TOKENS",
        min=1,
        help="The size of the request to aim at; else that of an automatic compaction.",
    ),
]
KeepLast = Annotated[
    int | None,
    typer.Option(
        "--keep-last", metavar="N", min=1, help="Keep just the newest N messages word for word."
    ),
]
All = Annotated[
    bool, typer.Option("--all", help="Summarise all but the newest messages.", metavar="")
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="The model that would answer: gives the window, and writes the summary.",
    ),
]


def compact(
    thread: Thread,
    db: Db = DEFAULT_DB,
    focus: Focus = None,
    force: Force = False,
    target: Target = None,
    keep_last: KeepLast = None,
    all: All = False,
    window: Window = None,
    model: Model = None,
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
        thread = require(memory, thread)
        result = memory.conversation(thread).compact(
            focus=focus, force=force, target=target, keep_last=keep_last, model=model, all=all
        )
    if json:
        print_json({**result.model_dump(), "success": result.success, "freed": result.freed})
    else:
        _tell_compaction(result)
    if not result.success:
        raise typer.Exit(1)


def _tell_compaction(result: CompactionResult) -> None:
    match result.outcome:
        case "performed":
            say(
                f"Compacted: {result.tokens_before:,} → {result.tokens_after:,} tokens "
                f"({result.freed:,} freed). The summary stands for {result.messages_covered:,} "
                f"messages; {result.messages_kept:,} are kept word for word."
            )
        case "shortened":
            say(
                f"Shown shorter: {result.tokens_before:,} → {result.tokens_after:,} tokens "
                f"({result.freed:,} freed). No message could be summarised."
            )
        case "nothing_to_do":
            say(f"Nothing to do: {result.detail} ({result.reason}). 0 tokens freed.")
        case "failed" | "in_flight":
            say(
                f"[red]Not compacted[/red] ({result.reason}): {clean(result.detail.rstrip('.'))}. "
                "The conversation is as it was."
            )
        case "waiting":
            say(
                f"[red]Not written[/red] ({result.reason}): {clean(result.detail.rstrip('.'))}. "
                "The summary is lost where the log stays so until this command ends."
            )
        case "reverted":
            pass  # No outcome of a compaction on demand.

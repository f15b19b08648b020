"""``refold backup``, ``restore``, ``stats`` and ``export``: taking care of what is stored."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from refold.application.errors import TargetExists
from refold.application.exporting import ExportFormat, lost_messages
from refold.application.housekeeping import ConversationSize, Restored, Sizes

from .opening import opened, require
from .options import DEFAULT_DB, Db, Json, Thread
from .output import clean, json_line, print_json, say, show_table, warn

SHOWN = 30
"""Conversations in the table; all are in the JSON."""

Force = Annotated[
    bool, typer.Option("--force", help="Replace what is there already.", metavar="")
]


def backup(
    to: Annotated[Path, typer.Argument(metavar="TO", help="The file to make.")],
    db: Db = DEFAULT_DB,
    force: Force = False,
    json: Json = False,
) -> None:
    """Copy the log into a file and check the copy. Programs that use the log go on meanwhile."""
    with opened(db) as memory:
        made = memory.backup(to, replace=force)
    if json:
        print_json(made.model_dump(mode="json"))
        return
    say(
        f"{clean(made.path)}: {made.events:,} events of {made.conversations:,} conversations, "
        f"{made.bytes:,} bytes. Every digest and link of it holds. "
        f"Next, if need be: refold restore {clean(made.path)} --db {clean(db)}"
    )


def restore(
    source: Annotated[Path, typer.Argument(metavar="FROM", help="A file of `refold backup`.")],
    db: Db = DEFAULT_DB,
    force: Annotated[
        bool,
        typer.Option("--force", help="Move a log that is there aside, and go ahead.", metavar=""),
    ] = False,
    json: Json = False,
) -> None:
    """Put a backup in the place of the log, once every event of it was found whole.

    A log that is there is moved aside, and what was erased in it is erased again.
    """
    from refold.infrastructure.restoring import restore_log

    restored = restore_log(source, db, force=force)
    if json:
        print_json(restored.model_dump(mode="json"))
    else:
        _tell_restored(restored)


def stats(db: Db = DEFAULT_DB, json: Json = False) -> None:
    """Show how large the log is: by conversation, by kind of event, by file."""
    with opened(db) as memory:
        sizes = memory.stats()
    if json:
        print_json(_sizes_for_programs(sizes))
    else:
        _tell_sizes(sizes)


def export(
    thread: Thread,
    db: Db = DEFAULT_DB,
    format: Annotated[
        ExportFormat,
        typer.Option(
            "--format",
            metavar="NAME",
            help="jsonl (a message a line), anthropic (one object with messages) or events.",
        ),
    ] = "jsonl",
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write to a file; else to standard output."),
    ] = None,
    force: Force = False,
) -> None:
    """Write the original messages of a conversation, or its events, as JSON."""
    with opened(db) as memory:
        require(memory, thread)
        chat = memory.conversation(thread)
        lines = chat.export(format)
        if out is None:
            for line in lines:
                print_json(line)
        else:
            _write(out, lines, force=force)


def _write(out: Path, lines: Iterator[dict[str, Any]], *, force: bool) -> None:
    count = 0
    with _new_file(out, force=force) as file:
        for line in lines:
            file.write(json_line(line, "utf-8").encode() + b"\n")
            count += 1
    say(f"{clean(out)}: {count:,} lines.")

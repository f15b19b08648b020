"""``refold fork`` and ``diff``: a conversation as it was, gone on with or compared."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated, NamedTuple

import typer

from refold.application.diffing import ContextDiff, MessageChange

from .opening import opened, require
from .options import DEFAULT_DB, AtOption, Db, Json, ModelName, Moment, Thread, read_at
from .output import clean, console, one_line, print_json, say, show_table

WIDEST_LINE = 2_000
"""Characters of a line that are shown where the output is no terminal and has no width."""


def fork(
    thread: Thread,
    new: Annotated[
        str | None,
        typer.Argument(metavar="NEW", help="The id of the new conversation; made up if missing."),
    ] = None,
    at: AtOption = None,
    db: Db = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Begin a new conversation as a copy of one, as it is or as it was."""
    moment = read_at(at)
    with opened(db) as memory:
        require(memory, thread)
        forked = memory.conversation(thread).fork(at=moment, thread_id=new)
        source = next(f for f in memory.forks() if f.thread_id == forked.thread_id)
        length = len(forked.messages())
    if json:
        print_json(
            {
                "thread_id": forked.thread_id,
                "source": source.source,
                "version": source.version,
                "messages": length,
            }
        )
        return
    say(
        f"{clean(forked.thread_id)} begins with {length:,} messages, as {clean(thread)} was at "
        f"version {source.version}. What happens in one does not touch the other. "
        f"Next: refold show {clean(forked.thread_id)} --db {clean(db)}"
    )


def diff(
    thread: Thread,
    before: Annotated[Moment, typer.Argument(metavar="V1", help="A version or a time.")],
    after: Annotated[Moment, typer.Argument(metavar="V2", help="A version or a time.")],
    db: Db = DEFAULT_DB,
    model: ModelName = None,
    full: Annotated[
        bool, typer.Option("--full", help="Show long lines of the requests whole.", metavar="")
    ] = False,
    json: Json = False,
) -> None:
    """Show what became of the request between two versions."""
    was, now = read_at(before), read_at(after)
    assert was is not None
    assert now is not None
    with opened(db) as memory:
        require(memory, thread)
        found = memory.conversation(thread).diff(was, now, model=model)
    if json:
        print_json({**found.model_dump(), "freed": found.freed})
        return
    _show_summary(found)
    if found.changes:
        _show_changes(found.changes)
    _show_lines(found.unified, full=full)

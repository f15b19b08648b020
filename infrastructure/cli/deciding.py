"""``refold pin``, ``unpin``, ``pins`` and ``revert``: what a person decides about a conversation."""

from typing import Annotated

import typer

from refold.application.memory import Memory

from .opening import naming_commands, opened, require
from .options import DEFAULT_DB, Db, Json, ModelName, PinId, Place, PolicyFile, Thread, Window
from .output import clean, one_line, print_json, say, show_table, warn
from .places import Where, chosen, find_pin, find_place


def pin(
    thread: Place,
    position: Annotated[
        str | None,
        typer.Argument(metavar="[POSITION]", help="The message to keep; `refold show` has them."),
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", help="A text of its own to keep.", metavar="TEXT")
    ] = None,
    db: Db = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Keep a message or a text word for word, whatever is compacted."""
    with opened(db) as memory, naming_commands(db):
        where = find_place(memory, thread, [] if position is None else [position])
        thread = where.thread
        if bool(where.spans) == (text is not None):
            raise typer.BadParameter("give either a position or --text TEXT")
        what = text if text is not None else _one_position(memory, where)
        pin_id = memory.conversation(thread).pin(what)
    if json:
        print_json({"thread_id": thread, "pin_id": pin_id})
    else:
        undo = f"refold unpin {clean(thread)} {clean(pin_id)} --db {clean(db)}"
        say(f"Pinned as {clean(pin_id)}. `{undo}` takes it back.")


def _one_position(memory: Memory, where: Where) -> int:
    span = chosen(where)
    if not span.is_one or span.start is None:
        raise typer.BadParameter("give one position, such as 17")
    length = 0 if span.start >= 0 else len(memory.conversation(where.thread).explain())
    return span.start + length


def unpin(
    thread: Thread,
    pin_id: PinId,
    db: Db = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Take a pin back. Exit code 1 if there is no such pin."""
    with opened(db) as memory:
        thread = require(memory, thread)
        pin_id = find_pin(memory, thread, pin_id)
        done = memory.conversation(thread).unpin(pin_id)
    if json:
        print_json({"thread_id": thread, "pin_id": pin_id, "unpinned": done})
    elif done:
        say(f"{clean(pin_id)} is no longer pinned.")
    if not done:
        warn(f"There is no pin {clean(pin_id)} in {clean(thread)}; `refold pins` shows them.")
        raise typer.Exit(1)


def pins(thread: Thread, db: Db = DEFAULT_DB, json: Json = False) -> None:
    """Show what is kept word for word."""
    with opened(db) as memory:
        thread = require(memory, thread)
        items = memory.conversation(thread).pins()
    if json:
        print_json({"thread_id": thread, "pins": [item.model_dump() for item in items]})
        return
    if not items:
        how = f"refold pin {clean(thread)} POSITION --db {clean(db)}"
        say(f"Nothing is pinned in {clean(thread)}. `{how}` pins a message.")
        return
    show_table(
        "",
        ["pin", "position#", "stands in", "text…"],
        [
            (
                clean(item.pin_id),
                item.position,
                "its place" if item.in_place else "the ledger",
                one_line(item.text, 200),
            )
            for item in items
        ],
    )


def revert(
    thread: Thread,
    db: Db = DEFAULT_DB,
    reason: Annotated[
        str, typer.Option("--reason", help="Kept in the log, for audit.", metavar="TEXT")
    ] = "",
    window: Window = None,
    model: ModelName = None,
    policy: PolicyFile = None,
    json: Json = False,
) -> None:
    """Undo the newest compaction. Exit code 1 if there is none to undo."""
    with opened(db, window=window, model=model, policy_file=policy) as memory:
        thread = require(memory, thread)
        result = memory.conversation(thread).revert_compaction(reason)
    if json:
        print_json({**result.model_dump(), "success": result.outcome == "reverted"})
    elif result.outcome == "reverted":
        active = f"summary {clean(result.summary_id)}" if result.summary_id else "no summary"
        say(
            f"Undone: {result.tokens_before:,} → {result.tokens_after:,} tokens; "
            f"{result.messages_kept:,} messages are in the context word for word, {active} is active."
        )
    else:
        say(f"Nothing to undo: {clean(result.detail)}.")
    if result.outcome != "reverted":
        raise typer.Exit(1)

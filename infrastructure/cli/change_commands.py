"""``refold pin``, ``unpin``, ``pins``, ``proposals``, ``allow``, ``refuse``, ``revert``, ``label`` and ``compact``."""

from typing import Annotated

import typer

from refold.application.agent_tools.memory_edits import EditProposal
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.api.results import CompactionResult
from refold.domain.errors import UnknownMessage
from refold.infrastructure.files.log_place import typed_command

from .arguments import (
    Where,
    find_edit,
    find_pin,
    find_place,
    naming_commands,
    open_existing,
    require,
    single_span,
)
from .options import (
    DEFAULT_DB,
    Db,
    EditId,
    Json,
    ModelName,
    PinId,
    Place,
    PolicyFile,
    SummariserName,
    Thread,
    Window,
)
from .output import clean, one_line, print_json, say, show_table, warn


def pin(
    thread: Place,
    position: Annotated[
        str | None,
        typer.Argument(
            metavar="[POSITION]", help="The position of the message; `refold show` lists them."
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("--text", help="A text to pin instead of a message.", metavar="TEXT"),
    ] = None,
    db: Db = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Pin a message or a text, so that it is always kept verbatim."""
    with open_existing(db) as memory, naming_commands(db):
        where = find_place(memory, thread, [] if position is None else [position])
        thread = where.thread
        if bool(where.spans) == (text is not None):
            raise typer.BadParameter("give either a position or --text TEXT")
        what = text if text is not None else _one_position(memory, where)
        pin_id = memory.conversation(thread).pin(what)
    if json:
        print_json({"thread_id": thread, "pin_id": pin_id})
    else:
        undo = clean(typed_command("unpin", thread, pin_id, "--db", db, count=2))
        say(f"Pinned as {clean(pin_id)}. `{undo}` unpins it.")


def _one_position(memory: Memory, where: Where) -> int:
    span = single_span(where)
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
    """Unpin a message or a text. Exit code 1 if there is no such pin."""
    with open_existing(db) as memory:
        thread = require(memory, thread)
        pin_id = find_pin(memory, thread, pin_id)
        done = memory.conversation(thread).unpin(pin_id)
    if json:
        print_json({"thread_id": thread, "pin_id": pin_id, "unpinned": done})
    elif done:
        say(f"{clean(pin_id)} is no longer pinned.")
    if not done:
        warn(f"There is no pin {clean(pin_id)} in {clean(thread)}; `refold pins` lists them.")
        raise typer.Exit(1)


def pins(thread: Thread, db: Db = DEFAULT_DB, json: Json = False) -> None:
    """List the pinned messages and texts."""
    with open_existing(db) as memory:
        thread = require(memory, thread)
        items = memory.conversation(thread).pins()
    if json:
        print_json({"thread_id": thread, "pins": [item.model_dump() for item in items]})
        return
    if not items:
        how = clean(typed_command("pin", thread, "POSITION", "--db", db, count=2))
        say(f"Nothing is pinned in {clean(thread)}. `{how}` pins a message.")
        return
    show_table(
        "",
        ["pin", "position#", "shown in", "text…"],
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


def proposals(thread: Thread, db: Db = DEFAULT_DB, json: Json = False) -> None:
    """List the edits that a model asked for and that wait for a decision."""
    with open_existing(db) as memory:
        thread = require(memory, thread)
        conversation = memory.conversation(thread)
        items = conversation.proposals()
        about = {item.edit_id: _describe_edit(conversation, item) for item in items}
    if json:
        print_json({"thread_id": thread, "proposals": [item.model_dump() for item in items]})
        return
    if not items:
        say(f"No edit waits for a decision in {clean(thread)}.")
        return
    show_table(
        "",
        ["edit", "by", "proposed", "what", "about…"],
        [
            (
                clean(item.edit_id),
                clean(item.author),
                item.proposed_at[:10],
                item.action if item.kind is None else f"{item.action} {item.kind}",
                one_line(about[item.edit_id], 200),
            )
            for item in items
        ],
    )


def _describe_edit(conversation: ConversationMemory, item: EditProposal) -> str:
    """Return the text of a proposal, or that of what it is about."""
    if item.position is not None:
        try:
            return f"message {item.position}: {conversation.read(item.position).text}"
        except UnknownMessage as error:  # Damage lost it.
            return str(error)
    if item.target is None:
        return item.text
    pins = [f"pin {pin.pin_id}: {pin.text}" for pin in conversation.pins()]
    notes = [f"note {note.flush_id}: {note.text}" for note in conversation.notes()]
    named = (
        text for text in (*pins, *notes) if f" {item.target}: " in text[: len(item.target) + 8]
    )
    return next(named, f"{item.target}, which is gone already")


def allow(
    thread: Thread,
    edit_id: EditId,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before erasing.", metavar="")
    ] = False,
    db: Db = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Carry out an edit that a model proposed. Allowing it again changes nothing."""
    from .fork_commands import confirm_erasure, print_erasure, print_leftovers

    with open_existing(db) as memory:
        thread = require(memory, thread)
        edit_id, conversation = find_edit(memory, thread, edit_id), memory.conversation(thread)
        erased = [
            one.position
            for one in conversation.proposals()
            if one.edit_id == edit_id and one.action == "forget" and one.position is not None
        ]
        if erased and not yes:
            copies = conversation.shared_with(erased)
            confirm_erasure(f"message {erased[0]} of {thread!r}", copies)
        done = conversation.allow(edit_id, by="person")
    if json:
        print_json({"thread_id": thread, **done.model_dump()})
    elif done.erasure is not None:
        print_erasure(done.erasure, json=False)
    else:
        outcome = "is carried out" if done.changed else "was done already: nothing changed"
        say(f"{done.action} {clean(done.edit_id)} {outcome}.")
    if done.erasure is not None:
        print_leftovers(done.erasure)


def refuse(
    thread: Thread,
    edit_id: EditId,
    reason: Annotated[
        str, typer.Option("--reason", help="Recorded in the log for audits.", metavar="TEXT")
    ] = "",
    db: Db = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Refuse an edit that a model proposed. Refusing it again changes nothing."""
    with open_existing(db) as memory:
        thread = require(memory, thread)
        edit_id = find_edit(memory, thread, edit_id)
        changed = memory.conversation(thread).refuse(edit_id, reason, by="person")
    if json:
        print_json({"thread_id": thread, "edit_id": edit_id, "changed": changed})
    else:
        say(f"{clean(edit_id)} {'is' if changed else 'was'} refused.")


def revert(
    thread: Thread,
    db: Db = DEFAULT_DB,
    reason: Annotated[
        str, typer.Option("--reason", help="Recorded in the log for audits.", metavar="TEXT")
    ] = "",
    window: Window = None,
    model: ModelName = None,
    policy: PolicyFile = None,
    json: Json = False,
) -> None:
    """Revert the newest compaction. Exit code 1 if none exists."""
    with open_existing(db, window=window, model=model, policy_file=policy) as memory:
        thread = require(memory, thread)
        result = memory.conversation(thread).revert_compaction(reason)
    if json:
        print_json({**result.model_dump(), "success": result.outcome == "reverted"})
    elif result.outcome == "reverted":
        active = f"summary {clean(result.summary_id)}" if result.summary_id else "no summary"
        say(
            f"Reverted: {result.tokens_before:,} → {result.tokens_after:,} tokens; "
            f"{result.messages_kept:,} messages are in the context verbatim, {active} is active."
        )
    else:
        say(f"Nothing to revert: {clean(result.detail)}.")
    if result.outcome != "reverted":
        raise typer.Exit(1)


def label(
    thread: Thread,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The label; `refold list` shows it.")],
    db: Db = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Give a conversation a label for people."""
    with open_existing(db) as memory:
        thread = require(memory, thread)
        memory.conversation(thread).label(text)
    if json:
        print_json({"thread_id": thread, "label": text})
    else:
        say(f"{clean(thread)} is now labelled {clean(text)}.")


Focus = Annotated[
    str | None,
    typer.Option("--focus", help="What the summary should preserve above all.", metavar="TEXT"),
]
Force = Annotated[
    bool, typer.Option("--force", help="Try even after several consecutive failures.", metavar="")
]
Target = Annotated[
    int | None,
    typer.Option(
        "--target",
        metavar="TOKENS",
        min=1,
        help="Target size of the request; by default that of an automatic compaction.",
    ),
]
KeepLast = Annotated[
    int | None,
    typer.Option(
        "--keep-last", metavar="N", min=1, help="Keep only the newest N messages verbatim."
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
        help="The answering model: determines the window and writes the summary.",
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
    with open_existing(
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
        _print_compaction(result)
    if not result.success:
        raise typer.Exit(1)


def _print_compaction(result: CompactionResult) -> None:
    match result.outcome:
        case "performed":
            say(
                f"Compacted: {result.tokens_before:,} → {result.tokens_after:,} tokens "
                f"({result.freed:,} freed). The summary covers {result.messages_covered:,} "
                f"messages; {result.messages_kept:,} are kept verbatim."
            )
        case "shortened":
            say(
                f"Shortened: {result.tokens_before:,} → {result.tokens_after:,} tokens "
                f"({result.freed:,} freed). No message could be summarised."
            )
        case "nothing_to_do":
            say(f"Nothing to do: {clean(result.detail)} ({result.reason}). 0 tokens freed.")
        case "failed" | "in_flight":
            say(
                f"[damage]Not compacted[/damage] ({result.reason}): {clean(result.detail.rstrip('.'))}. "
                "The conversation is unchanged."
            )
        case "waiting":
            say(
                f"[damage]Not written[/damage] ({result.reason}): {clean(result.detail.rstrip('.'))}. "
                "The summary is lost unless the log recovers before this command ends."
            )
        case "reverted":
            pass  # Compactions on demand have no other outcome.

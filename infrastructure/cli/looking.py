"""``refold list``, ``show``, ``context`` and ``summaries``: looking at what is stored."""

import json as jsonlib
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from refold.application.context import Context
from refold.application.results import StoredMessage
from refold.domain.budget import InstructionFileSize
from refold.domain.messages import text_of

from .opening import opened, require
from .options import (
    DEFAULT_DB,
    At,
    Db,
    Instructions,
    Json,
    ModelName,
    PolicyFile,
    Start,
    Stop,
    Thread,
    Window,
    read_at,
)
from .output import clean, one_line, print_json, say, show_table


def list_conversations(db: Db = DEFAULT_DB, json: Json = False) -> None:
    """List the conversations, the latest activity first."""
    with opened(db) as memory:
        rows = memory.conversations()
    if json:
        print_json({"conversations": [row.model_dump() for row in rows]})
        return
    if not rows:
        say(f"No conversation yet. Next: refold import FILE --db {clean(db)}")
        return
    show_table(
        "",
        ["thread", "label…", "messages#", "tokens#", "compactions#", "last activity"],
        [
            (
                clean(r.thread_id),
                one_line(r.label or "", 60),
                r.messages,
                r.tokens,
                r.compactions,
                r.last_activity[:16].replace("T", "\N{NO-BREAK SPACE}"),
            )
            for r in rows
        ],
    )


def show(
    thread: Thread,
    db: Db = DEFAULT_DB,
    start: Start = 0,
    stop: Stop = None,
    json: Json = False,
) -> None:
    """Show the original messages of a conversation, compacted or not."""
    with opened(db) as memory:
        require(memory, thread)
        chat = memory.conversation(thread)
        messages = chat.messages(start, stop)
        length = len(messages) or len(chat.messages())
        summary = next((s for s in chat.summaries() if s.is_active), None)
    if json:
        print_json({"thread_id": thread, "messages": [as_json(m) for m in messages]})
        return
    if not messages:
        say(
            f"No message there: positions 0 to {length - 1} exist."
            if length
            else "No message there."
        )
        return
    reaches = -1 if summary is None else summary.compact_up_to_index
    show_table(
        "",
        ["position#", "", "role", "tokens#", "text…"],
        [
            (m.position, "·" if m.position <= reaches else "", m.message.role, m.tokens, _gist(m))
            for m in messages
        ],
    )
    if summary is not None:
        say(
            f"· up to position {reaches}: summary {summary.summary_id} stands for these in the "
            f"context. Next: refold summaries {clean(thread)} --db {clean(db)}"
        )


def context(
    thread: Thread,
    db: Db = DEFAULT_DB,
    window: Window = None,
    model: ModelName = None,
    policy: PolicyFile = None,
    at: At = None,
    instructions: Instructions = None,
    text: Annotated[
        bool, typer.Option("--text", help="The conversation as one string.", metavar="")
    ] = False,
    json: Json = False,
) -> None:
    """Show the request that an agent would send next, without changing anything."""
    moment = None if at is None else read_at(at)
    with opened(
        db, window=window, model=model, policy_file=policy, instruction_files=instructions or None
    ) as memory:
        require(memory, thread)
        chat = memory.conversation(thread)
        made = chat.context(at=chat.version if moment is None else moment)
    if text:
        say(clean(made.as_text()))
        return
    if json:
        files = [file.model_dump() for file in made.budget.instruction_files]
        more = {"budget": made.budget.limit, "instruction_files": files}
        print_json({**as_request(made), "version": made.version, **more})
        return
    show_request(made)
    _show_instructions(made)
    size = f"{made.tokens:,} of {made.budget.limit:,} tokens, version {made.version}"
    say(f"[dim]{size}[/dim]")
    if made.tokens > made.budget.limit:
        say(
            "[yellow]Larger than the budget[/yellow]: before a request an agent's memory compacts "
            f"this by itself; `refold compact {clean(thread)} --db {clean(db)}` does it now."
        )


def _show_instructions(made: Context) -> None:
    for file in made.budget.instruction_files:
        say(f"[dim]{clean(_instruction_line(file))}[/dim]")


def _instruction_line(file: InstructionFileSize) -> str:
    if file.skipped:
        return f"instruction file {file.name} is skipped: {file.skipped}"
    cut = f", {file.cut:,} characters cut" if file.cut else ""
    return f"instruction file {file.name}: {file.tokens:,} tokens{cut}"


def summaries(thread: Thread, db: Db = DEFAULT_DB, json: Json = False) -> None:
    """List all summaries that were ever made of a conversation."""
    with opened(db) as memory:
        require(memory, thread)
        rows = memory.conversation(thread).summaries()
    if json:
        print_json({"thread_id": thread, "summaries": [row.model_dump() for row in rows]})
        return
    if not rows:
        how = f"refold compact {clean(thread)} --db {clean(db)}"
        say(f"No summary yet: nothing was compacted. `{how}` compacts now.")
    for row in rows:
        was = "undone" if row.is_reverted else "superseded"
        state = "[green]active[/green]" if row.is_active else was
        say(
            f"[bold]{row.summary_id}[/bold] {state}, {row.compacted_at[:19]}, covers "
            f"{row.covered_count} messages up to position {row.compact_up_to_index}, "
            f"{row.tokens:,} tokens, by {clean(row.model)}"
        )
        if row.is_active:
            say(clean(row.summary_text) + "\n")


def show_request(made: Context) -> None:
    """Print a request as a person would read it."""
    if made.system:
        say("[bold]system[/bold]")
        texts = [made.system] if isinstance(made.system, str) else map(text_of, made.system)
        say(clean("\n".join(texts)) + "\n")
    for message in made.messages:
        say(f"[bold]{clean(message['role'])}[/bold]")
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            say(clean(in_words(block)))
        say()


def in_words(block: Mapping[str, Any]) -> str:
    """What a content block says: its text, or which tool was called with what."""
    match block.get("type"):
        case "text":
            return text_of(block)
        case "tool_use":
            return f"→ {block.get('name')} {jsonlib.dumps(block.get('input'), ensure_ascii=False)}"
        case "tool_result":
            return f"← {text_of(block)}"
        case "thinking":
            return f"<thinking> {block.get('thinking')}"
        case kind:
            return f"<{kind}> {text_of(block)}".rstrip()


def as_request(made: Context) -> dict[str, object]:
    """A context as a JSON line: what goes to the Messages API, with its size."""
    line: dict[str, object] = {
        "model": made.model or "unknown",
        "system": made.system,
        "messages": made.messages,
    }
    if made.tools:
        line["tools"] = made.tools
    line["tokens"] = made.tokens
    line["summary_id"] = made.summary.summary_id if made.summary else None
    return line


def _gist(stored: StoredMessage) -> str:
    return one_line(" ".join(map(in_words, stored.message.blocks())), 400)


def as_json(stored: StoredMessage) -> dict[str, object]:
    """A stored message for programs."""
    return {
        "position": stored.position,
        "message_id": stored.message_id,
        "role": stored.message.role,
        "content": stored.message.content,
        "at": stored.at,
        "tokens": stored.tokens,
        "mark": stored.mark.model_dump() if stored.mark else None,
    }

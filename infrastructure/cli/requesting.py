"""``refold context``: the request that a model would be sent, and where its tokens go."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer

from refold.application.context import Context
from refold.application.explaining import MessageFate
from refold.application.request_parts import RequestPart
from refold.domain.budget import InstructionFileSize
from refold.domain.messages import text_of

from .looking import as_request
from .opening import next_command, opened, require
from .options import (
    DEFAULT_DB,
    At,
    AtPosition,
    Db,
    Instructions,
    Json,
    ModelName,
    PolicyFile,
    Thread,
    Window,
)
from .output import clean, console, paged, print_json, say, show_table
from .times import read_at
from .words import COLOURS, in_words

LARGEST = 3
"""Messages that are named as the largest."""
BAR = 20
"""Columns of the longest bar."""

AsText = Annotated[bool, typer.Option("--text", help="The conversation as one string.", metavar="")]
SizesOnly = Annotated[bool, typer.Option("--sizes", help="Only where its tokens go.", metavar="")]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit", metavar="N", min=0, help="With --text: so many newest messages at most."
    ),
]


def context(
    thread: Thread,
    db: Db = DEFAULT_DB,
    window: Window = None,
    model: ModelName = None,
    policy: PolicyFile = None,
    at: At = None,
    position: AtPosition = None,
    instructions: Instructions = None,
    text: AsText = False,
    limit: Limit = None,
    sizes: SizesOnly = False,
    json: Json = False,
) -> None:
    """Show the request that an agent would send next, without changing anything."""
    moment = _moment(at, position)
    if limit is not None and not text:
        raise typer.BadParameter("--limit needs --text")
    with opened(
        db, window=window, model=model, policy_file=policy, instruction_files=instructions or None
    ) as memory:
        thread = require(memory, thread)
        chat = memory.conversation(thread)
        now = chat.version if position is None else None
        made = chat.context(at=now if moment is None else moment, position=position)
        if text:
            say(clean(made.as_text(limit)))
            return
        parts = chat.request_parts(made)
        if json:
            print_json(_as_json(made, parts))
            return
        largest = sorted(chat.explain(at=made.version), key=lambda f: -f.shown_tokens)[:LARGEST]
    with paged():
        _say_sizes(made, parts, largest, _how_to_compact(made, db, window, model))
        if not sizes:
            say()
            _show_request(made)
        _say_size(made)


def _as_json(made: Context, parts: Sequence[RequestPart]) -> dict[str, object]:
    return {
        **as_request(made),
        "version": made.version,
        "budget": made.budget.limit,
        "compacted_first": _is_too_large(made),
        "parts": [part.model_dump() for part in parts],
        "instruction_files": [file.model_dump() for file in made.budget.instruction_files],
    }


def _is_too_large(made: Context) -> bool:
    """Whether an agent's memory makes it smaller before it is sent: looking changes nothing."""
    return made.tokens > made.budget.limit or made.bytes > made.budget.byte_limit


def _moment(at: str | None, position: int | None) -> int | datetime | None:
    if at is not None and position is not None:
        raise typer.BadParameter("give either --at or --position")
    return None if at is None else read_at(at)


def _how_to_compact(made: Context, db: object, window: int | None, model: str | None) -> str:
    asked: list[object] = [] if window is None else ["--window", window]
    asked += [] if model is None else ["--model", model]
    return next_command("compact", made.thread_id, *asked, db=db)


def _say_sizes(
    made: Context, parts: Sequence[RequestPart], largest: Sequence[MessageFate], how: str
) -> None:
    most = max((part.tokens for part in parts), default=1)
    total = max(made.tokens, 1)
    named = made.summary.summary_id[:8] if made.summary else "none"
    say(
        f"[bold]{clean(made.thread_id)}[/bold], version {made.version}: {made.tokens:,} of "
        f"{made.budget.limit:,} tokens ({made.tokens / made.budget.limit:.0%}), "
        f"{max(0, made.budget.limit - made.tokens):,} free; compacted from {made.budget.trigger:,} on; "
        f"summary: {named}"
    )
    if _is_too_large(made):
        say(
            "[yellow]Larger than the budget[/yellow]: an agent's next request would be compacted first; "
            f"this command changes nothing, `{clean(how)}` does it now."
        )
    show_table(
        "",
        ["part", "tokens#", "share#", "how many#", "…"],
        [
            (
                part.kind,
                part.tokens,
                f"{part.tokens / total:.0%}",
                part.count,
                ("#" if console.options.ascii_only else "█") * max(1, BAR * part.tokens // most),
            )
            for part in parts
        ],
    )
    for file in made.budget.instruction_files:
        say(clean(_of_instructions(file)))
    if large := [fate for fate in largest if fate.shown_tokens]:
        said = ", ".join(f"{f.position} ({f.role}, {f.shown_tokens:,})" for f in large)
        say(f"The largest messages in it: {said}.")


def _of_instructions(file: InstructionFileSize) -> str:
    if file.skipped:
        return f"Instruction file {file.name} is skipped: {file.skipped}."
    cut = f", {file.cut:,} characters cut" if file.cut else ""
    return f"Instruction file {file.name}: {file.tokens:,} tokens{cut}."


def _show_request(made: Context) -> None:
    """Print a request as a person would read it."""
    if made.system:
        say("[bold magenta]system[/bold magenta]")
        texts = [made.system] if isinstance(made.system, str) else map(text_of, made.system)
        say(clean("\n".join(texts)) + "\n")
    for message in made.messages:
        role = str(message["role"])
        colour = COLOURS.get(role, "")
        say(f"[bold {colour}]{clean(role)}[/]" if colour else f"[bold]{clean(role)}[/bold]")
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            say(clean(in_words(block)))
        say()


def _say_size(made: Context) -> None:
    size = f"{made.tokens:,} of {made.budget.limit:,} tokens, version {made.version}"
    say(f"[dim]{size}[/dim]")

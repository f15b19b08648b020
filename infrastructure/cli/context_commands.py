"""``refold context``, ``explain`` and ``read``: the request, the reasons for it, and the original messages."""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import Annotated

import typer

from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.results import Context
from refold.application.history.explain import MessageFate
from refold.application.history.moments import At as Moment
from refold.application.rendering.request_parts import RequestPart
from refold.domain.compaction.budget import InstructionFileSize
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.messages import Block, text_of
from refold.infrastructure.palette import FATES, PARTS

from .arguments import (
    Span,
    as_json,
    as_request,
    find_place,
    format_span,
    naming_commands,
    next_command,
    open_existing,
    refuse_unknown,
    require,
    single_span,
    span_of_options,
)
from .options import (
    DEFAULT_DB,
    At,
    AtPosition,
    Db,
    Instructions,
    Json,
    ModelName,
    Place,
    PolicyFile,
    Positions,
    Range,
    Start,
    Stop,
    Thread,
    Window,
    read_at,
)
from .output import clean, console, describe_block, pager, print_json, say, show_table
from .part_colours import SPEAKERS, coloured

LARGEST = 3
"""Number of largest messages that are listed."""
BAR = 20
"""Width of the longest bar in columns."""

AsText = Annotated[
    bool, typer.Option("--text", help="Print the conversation as one text.", metavar="")
]
SizesOnly = Annotated[
    bool, typer.Option("--sizes", help="Only show how the tokens are distributed.", metavar="")
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", min=0, help="With --text: the newest N messages at most."),
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
    """Show the next request of the agent, without changing anything."""
    moment = _moment(at, position)
    if limit is not None and not text:
        raise typer.BadParameter("--limit needs --text")
    if text and sizes:
        raise typer.BadParameter("give either --text or --sizes")
    with open_existing(
        db, window=window, model=model, policy_file=policy, instruction_files=instructions or None
    ) as memory:
        thread = require(memory, thread)
        conversation = memory.conversation(thread)
        now = conversation.version if position is None else None
        made = conversation.context(at=now if moment is None else moment, position=position)
        if text:
            _print_text(made, made.as_text(limit), json=json)
            return
        parts = conversation.request_parts(made)
        if json:
            print_json(_as_json(made, parts))
            return
        fates = _largest(conversation, made)
    with pager():
        _print_sizes(made, parts, fates, _how_to_compact(made, db, window, model))
        if not sizes:
            say()
            _show_request(made)
            _print_size(made)


def _print_text(made: Context, text: str, *, json: bool) -> None:
    if json:
        print_json({"thread_id": made.thread_id, "version": made.version, "text": text})
    else:
        say(clean(text))


def _as_json(made: Context, parts: Sequence[RequestPart]) -> dict[str, object]:
    return {
        **as_request(made),
        "version": made.version,
        "budget": made.budget.limit,
        "compacted_first": _is_too_large(made),
        "parts": [part.model_dump() for part in parts],
        "instruction_files": [file.model_dump() for file in made.budget.instruction_files],
    }


def _largest(conversation: ConversationMemory, made: Context) -> Sequence[MessageFate]:
    """Return the messages that take the most tokens of a request. Those under the summary are not read."""
    runs: list[tuple[int, int | None]] = [(0, None)]
    if made.summary is not None:
        covered = made.summary.coverage
        left = ((position, position + 1) for position in covered.exclusions)
        runs = [(0, covered.start), *left, (covered.stop, None)]
    fates = (f for start, stop in runs for f in conversation.explain(start, stop, at=made.version))
    return sorted(fates, key=lambda fate: -fate.shown_tokens)[:LARGEST]


def _is_too_large(made: Context) -> bool:
    """Return whether an agent would first compact this context."""
    return made.tokens > made.budget.limit or made.bytes > made.budget.byte_limit


def _moment(at: str | None, position: int | None) -> int | datetime | None:
    if at is not None and position is not None:
        raise typer.BadParameter("give either --at or --position")
    return None if at is None else read_at(at)


def _how_to_compact(made: Context, db: object, window: int | None, model: str | None) -> str:
    asked: list[object] = [] if window is None else ["--window", window]
    asked += [] if model is None else ["--model", model]
    return next_command("compact", made.thread_id, *asked, db=db)


def _print_sizes(
    made: Context, parts: Sequence[RequestPart], largest: Sequence[MessageFate], how: str
) -> None:
    named = made.summary.summary_id[:8] if made.summary else "none"
    say(
        f"[bold]{clean(made.thread_id)}[/bold], version {made.version}: {made.tokens:,} of "
        f"{made.budget.limit:,} tokens ({made.tokens / made.budget.limit:.0%}), "
        f"{max(0, made.budget.limit - made.tokens):,} free; compacted from {made.budget.trigger:,} on; "
        f"summary: {named}"
    )
    if _is_too_large(made):
        say(
            "[warning]Larger than the budget[/warning]: an agent would compact before its next request; "
            f"this command changes nothing, `{clean(how)}` compacts now."
        )
    _print_parts(parts, max(made.tokens, 1))
    for file in made.budget.instruction_files:
        say(clean(_describe_instructions(file)))
    if large := [fate for fate in largest if fate.shown_tokens]:
        said = ", ".join(f"{f.position} ({f.role}, {f.shown_tokens:,})" for f in large)
        say(f"The largest messages in it: {said}.")


def _print_parts(parts: Sequence[RequestPart], total: int) -> None:
    most = max((part.tokens for part in parts), default=1)
    block = "#" if console.options.ascii_only else "█"
    rows = [
        (
            coloured(part.kind, PARTS[part.kind]),
            part.tokens,
            f"{part.tokens / total:.0%}",
            part.count,
            coloured(block * max(1, BAR * part.tokens // most), PARTS[part.kind]),
        )
        for part in parts
    ]
    show_table("", ["part", "tokens#", "share#", "how many#", "…"], rows)


def _describe_instructions(file: InstructionFileSize) -> str:
    if file.skipped:
        return f"Instruction file {file.name} is skipped: {file.skipped}."
    cut = f", {file.cut:,} characters cut" if file.cut else ""
    return f"Instruction file {file.name}: {file.tokens:,} tokens{cut}."


def _show_request(made: Context) -> None:
    """Print a request for people."""
    if made.system:
        say(f"[bold]{coloured('system', 'system')}[/bold]")
        texts = [made.system] if isinstance(made.system, str) else map(text_of, made.system)
        say(clean("\n".join(texts)) + "\n")
    for message in made.messages:
        role = str(message["role"])
        say(f"[bold]{coloured(clean(role), SPEAKERS.get(role))}[/bold]")
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            say(clean(describe_block(block)))
        say()


def _print_size(made: Context) -> None:
    size = f"{made.tokens:,} of {made.budget.limit:,} tokens, version {made.version}"
    say(f"[dim]{size}[/dim]")


_LONG_ID = lazy_pattern(r"\b(?:[0-9a-f]{20}|[0-9a-f]{32})\b")
"""An id that refold made; those of version 0.8 and before have 32 digits."""

READ_EXAMPLE = "Examples: refold read thread-42/17; refold read thread-42 17; refold read refold://thread-42/17"
EXPLAIN_EXAMPLE = (
    "Example: refold explain thread-42 200.. --db agent.db. Each row is a series of messages "
    "with the same fate; --json has every message."
)
EXAMPLES = {"read": READ_EXAMPLE, "explain": EXPLAIN_EXAMPLE}
WIDE = 100
"""Width in columns below which the versions are left out."""


def read(
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="THREAD/POSITION, or the address in a context: refold://THREAD/POSITION.",
        ),
    ],
    positions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[POSITION]...", help="The position, if ADDRESS is only a thread id."
        ),
    ] = None,
    db: Db = DEFAULT_DB,
    json: Json = False,
) -> None:
    """Read an original message, even if it was compacted or offloaded since."""
    with open_existing(db) as memory, naming_commands(db):
        where = find_place(memory, address, positions or ())
        conversation = memory.conversation(where.thread)
        if not where.spans:
            raise typer.BadParameter(
                f"which message of {where.thread!r}? Give its position: {where.thread}/17, or its "
                "address, such as refold://THREAD/POSITION"
            )
        messages = [
            conversation.read(at) for span in where.spans for at in _positions(conversation, span)
        ]
    if json:
        found = [{"thread_id": where.thread, **as_json(message)} for message in messages]
        print_json(found[0] if len(found) == 1 else {"messages": found})
        return
    for message in messages:
        if len(messages) > 1:
            say(f"[bold]{message.position}[/bold] {message.message.role}")
        for block in message.message.blocks():
            say(clean(_original(block)))


def explain(
    thread: Place,
    positions: Positions = None,
    db: Db = DEFAULT_DB,
    range: Range = None,
    at: At = None,
    start: Start = None,
    stop: Stop = None,
    json: Json = False,
) -> None:
    """Explain how the model sees each message and why: full, offloaded, summarised, pinned …"""
    moment = None if at is None else read_at(at)
    with open_existing(db) as memory:
        where = find_place(memory, thread, positions or ())
        span = single_span(where, span_of_options(range, start, stop))
        conversation = memory.conversation(where.thread)
        fates = conversation.explain(span.start or 0, span.stop, at=moment)
        if not fates:
            refuse_unknown(conversation, span, moment)
        if json:
            print_json({"thread_id": where.thread, "messages": [f.model_dump() for f in fates]})
            return
        if not fates:
            how = clean(next_command("show", where.thread, db=db))
            say(f"No message there. `{how}` lists the positions.")
            return
        rest = _rest_of_context(conversation, fates, moment)
    columns = ["positions", "fate", "tokens#", "shown#", "version", "why…"]
    rows = [_row(list(same)) for _, same in groupby(fates, lambda f: (f.fate, f.why))]
    if console.width < WIDE:
        columns, rows = [*columns[:4], columns[5]], [(*row[:4], row[5]) for row in rows]
    show_table("", columns, rows)
    _print_totals(fates, rest, db)


def _positions(conversation: ConversationMemory, span: Span) -> Sequence[int]:
    """Return the positions in the span. A position that does not exist is refused later by its reader."""
    if span.is_one and span.start is not None and span.start >= 0:
        return (span.start,)
    length = len(conversation.explain())
    return range(*slice(*span).indices(length))


def _row(same: Sequence[MessageFate]) -> tuple[str | int, ...]:
    """Return a table row for consecutive messages with the same fate."""
    first, last = same[0], same[-1]
    versions = [f.since_version for f in same]
    why = _LONG_ID.sub(lambda found: found[0][:8], first.why)
    if dropped := sum(f.thinking_dropped_at is not None for f in same):
        why += f" (thinking left out of {dropped:,})"
    least, most = min(versions), max(versions)
    return (
        format_span(first.position, last.position),
        coloured(first.fate, FATES.get(first.fate)),
        sum(f.tokens for f in same),
        sum(f.shown_tokens for f in same),
        f"{least}" if least == most else f"{least} to {most}",
        clean(why),
    )


def _rest_of_context(
    conversation: ConversationMemory, fates: Sequence[MessageFate], at: Moment | None
) -> str:
    """Describe the rest of the context: the summary, ledger lines, pins and previews."""
    made = conversation.context(at=conversation.version if at is None else at)
    said: list[str] = []
    if made.summary is not None:
        summary = made.summary
        said.append(
            f"summary {summary.summary_id[:8]} for {summary.coverage.count:,} messages "
            f"({summary.tokens:,} tokens with its ledger)"
        )
        said.append(f"{summary.ledger_shown:,} ledger lines")
    if pins := len(conversation.pins()):
        said.append(f"{pins:,} pins")
    if previews := sum(f.fate in ("offloaded", "condensed") for f in fates):
        said.append(f"{previews:,} messages with previews")
    return ", ".join(said)


def _print_totals(fates: Sequence[MessageFate], rest: str, db: object) -> None:
    tokens, shown = sum(f.tokens for f in fates), sum(f.shown_tokens for f in fates)
    more = ", in addition to the summary" if any(f.summary_id for f in fates) else ""
    say(f"{len(fates):,} messages of {tokens:,} tokens take up {shown:,} in the context{more}.")
    if rest:
        say(f"Also in the context: {clean(rest)}.")
    hidden = next((f for f in fates if f.shown_tokens < f.tokens), None)
    if hidden is not None:
        say(f"Next: {clean(next_command('read', hidden.address, db=db))}")


def _original(block: Block) -> str:
    """Return the text of an original block. A tool result is printed without decoration."""
    if block.get("type") == "tool_result":
        return text_of(block)
    return describe_block(block)

"""``refold recall`` and ``search``: search one conversation or all of them."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import typer

from refold.application.recall.hits import Neighbour, Recalled, RecallHit, excerpt, spans_of
from refold.application.recall.recall_query import RecallOptions, ask
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.text_cuts import beginning
from refold.infrastructure.files.log_place import LogPlace, typed_command
from refold.infrastructure.palette import FATES
from refold.infrastructure.shown_text import strip_control

from .arguments import open_existing, require
from .options import (
    DEFAULT_DB,
    Db,
    EmbedderName,
    Json,
    Thread,
    format_time,
    read_time,
    refuse_wrong_time,
)
from .output import clean, indexing, print_json, say, say_parts, warn
from .part_colours import SPEAKERS

SHOWN_CHARACTERS = 700
"""Characters of a hit that are shown. ``--json`` and ``refold read`` have all of them."""
NEIGHBOUR_CHARACTERS = 110
_ESCAPED = lazy_pattern(r'\\([nt"])')

RECALL_EXAMPLE = (
    'Example: refold recall thread-42 "which port did postgres use?" --role tool --db agent.db. '
    "Exit code 1: nothing was found."
)
SEARCH_EXAMPLE = 'Example: refold search "retry policy" --since 2026-01-01T00:00:00Z --db agent.db'
EXAMPLES = {"recall": RECALL_EXAMPLE, "search": SEARCH_EXAMPLE}

QuestionText = Annotated[
    str,
    typer.Argument(metavar="QUESTION", help="The question in your own words."),
]
QuestionOrNone = Annotated[
    str,
    typer.Argument(
        metavar="[QUESTION]",
        show_default=False,
        help="The question in your own words.",
    ),
]
Mode = Annotated[
    Literal["keyword", "vector", "hybrid"] | None,
    typer.Option(
        "--mode",
        metavar="NAME",
        help="keyword (by words), vector (by meaning) or hybrid (both: the default with an embedder).",
    ),
]
Limit = Annotated[
    int, typer.Option("--limit", help="Maximum number of hits.", min=1, max=50, metavar="N")
]
MinScore = Annotated[
    float,
    typer.Option(
        "--min-score",
        help="Only hits with at least this share of the best score.",
        min=0,
        max=1,
        metavar="SHARE",
    ),
]
Roles = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        metavar="ROLE",
        help="Only messages by user, assistant, system or tool; repeatable.",
    ),
]
ToolNames = Annotated[
    list[str] | None,
    typer.Option("--tool", metavar="NAME", help="Only calls and results of this tool; repeatable."),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", metavar="KIND", help="Only text, call or result; repeatable."),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        callback=refuse_wrong_time,
        help="Since then: 2026-01-02, or a full time. Without a zone it is local.",
    ),
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", callback=refuse_wrong_time, help="Before then."),
]
TopicName = Annotated[
    str | None,
    typer.Option(
        "--topic",
        metavar="NAME",
        help="Only messages of this topic, as refold topics lists it; QUESTION is then optional.",
    ),
]
LeaveOut = Annotated[
    bool,
    typer.Option(
        "--leave-out-context", help="Leave out messages that the context shows in full.", metavar=""
    ),
]

ScopeName = Annotated[
    Literal["conversation", "owner", "all"],
    typer.Option(
        "--scope",
        metavar="NAME",
        help="conversation (the default), owner (all conversations of its owner) or all.",
    ),
]
OfOwner = Annotated[
    str | None,
    typer.Option("--owner", metavar="ID", help="Only data of this owner, such as user-7."),
]


def recall(
    thread: Thread,
    question: QuestionOrNone = "",
    db: Db = DEFAULT_DB,
    topic: TopicName = None,
    mode: Mode = None,
    limit: Limit = 5,
    min_score: MinScore = 0.0,
    role: Roles = None,
    tool: ToolNames = None,
    kind: Kinds = None,
    since: Since = None,
    until: Until = None,
    leave_out: LeaveOut = False,
    scope: ScopeName = "conversation",
    embedder: EmbedderName = None,
    json: Json = False,
) -> None:
    """Search a conversation, compacted or not."""
    if topic is None and not question:
        raise typer.BadParameter("give a QUESTION, or a topic with --topic NAME")
    how = _options(mode, limit, min_score, role, tool, kind, since, until, leave_out=leave_out)
    with open_existing(db, embedder=embedder) as memory:
        thread = require(memory, thread)
        within: RecallOptions = {**how, "topic": topic, "scope": scope}
        with indexing(db, quiet=json):
            found = memory.conversation(thread).recall(question, **within)
    _answer(found, db, thread if scope == "conversation" else None, json=json)


def search(
    question: QuestionText,
    db: Db = DEFAULT_DB,
    mode: Mode = None,
    limit: Limit = 5,
    min_score: MinScore = 0.0,
    role: Roles = None,
    tool: ToolNames = None,
    kind: Kinds = None,
    since: Since = None,
    until: Until = None,
    leave_out: LeaveOut = False,
    owner: OfOwner = None,
    embedder: EmbedderName = None,
    json: Json = False,
) -> None:
    """Search all conversations of all owners."""
    how = _options(mode, limit, min_score, role, tool, kind, since, until, leave_out=leave_out)
    # Anyone who can read the file can read all of it.
    everywhere: RecallOptions = {**how, "scope": "owner" if owner else "all"}
    with open_existing(db, embedder=embedder) as memory, indexing(db, quiet=json):
        found = memory.search(question, owner=owner, **everywhere)
    _answer(found, db, None, json=json)


def _options(
    mode: Literal["keyword", "vector", "hybrid"] | None,
    limit: int,
    min_score: float,
    roles: Sequence[str] | None,
    tools: Sequence[str] | None,
    kinds: Sequence[str] | None,
    since: str | None,
    until: str | None,
    *,
    leave_out: bool,
) -> RecallOptions:
    return {
        "mode": mode,
        "limit": limit,
        "min_score": min_score,
        "roles": roles or (),
        "tools": tools or (),
        "kinds": kinds or (),
        "since": None if since is None else read_time(since),
        "until": None if until is None else read_time(until),
        "in_context": "leave_out" if leave_out else "mark",
    }


def _answer(found: Recalled, db: LogPlace, thread: str | None, *, json: bool) -> None:
    if json:
        print_json(
            {
                "query": found.query,
                "topic": found.topic,
                "mode": found.mode,
                "notice": found.notice,
                "left_out": found.left_out,
                "tokens": found.tokens,
                "hits": [hit.model_dump() for hit in found],
            }
        )
    else:
        _show(found, db, thread)
    if not found:
        raise typer.Exit(1)


def _show(found: Recalled, db: LogPlace, thread: str | None) -> None:
    if found.notice:
        warn(f"[warning]note[/warning]: {clean(found.notice)}")
    tokens = ask(found.query or found.topic or "").tokens
    for number, hit in enumerate(found, 1):
        _show_hit(number, hit, tokens, name_thread=thread is None)
    if found.left_out:
        say(f"{found.left_out} more are already shown in full by the context.")
    if found:
        say("[dim]> the hit, (…) the messages before and after it[/dim]")
        how = shlex.join(["refold", "read", found[0].address, "--db", str(db)])
        say(f"Next: {clean(how)}")
        return
    say("Nothing was found.")
    tips = ["other words, as they may appear in the conversation"]
    if thread is not None:
        tips.append(f"all conversations: `refold search QUESTION --db {clean(db)}`")
        query = clean(typed_command("query", thread, "--text", "TEXT", "--db", db))
        tips.append(f"an exact text: `{query}`")
    say(f"Try {'; '.join(tips)}; fewer filters, if there are any.")


def _show_hit(number: int, hit: RecallHit, tokens: Sequence[str], *, name_thread: bool) -> None:
    where = f"{hit.thread_id}  " if name_thread else ""
    who = hit.role if hit.tool is None else f"{hit.role} ({hit.tool})"
    when = format_time(hit.at)
    say_parts(
        [
            (f"{number}.  ", "bold"),
            (f"{where}message {hit.position}  ", "bold"),
            (who, SPEAKERS.get(hit.role, "") if hit.tool is None else "tool"),
            (f"  {when}  score {hit.score:.2f}  ", ""),
            (hit.fate, FATES.get(hit.fate, "")),
            (", in the context" if hit.in_context else "", ""),
            (f"\n   found by: {'; '.join(hit.why)}", "italic"),
        ]
    )
    before = [n for n in hit.neighbours if n.position < hit.position]
    after = [n for n in hit.neighbours if n.position > hit.position]
    for neighbour in before:
        _show_neighbour(neighbour)
    say_parts([*_words(hit, tokens)])
    for neighbour in after:
        _show_neighbour(neighbour)
    say()


def _words(hit: RecallHit, tokens: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the text around the matching words, which are bold."""
    if not hit.text:
        yield "   [erased]", "dim"
        return
    start, stop = excerpt(hit.text, tokens, SHOWN_CHARACTERS, len, hit.kind)
    text = hit.text[start:stop]
    shown = _indent_json if hit.kind == "call" else _indent
    yield " > … " if start else " > ", "bold"
    place = 0
    for span in spans_of(text, tokens, hit.kind):
        yield shown(text[place : span.start]), ""
        yield shown(text[span.start : span.stop]), "found"
        place = span.stop
    yield shown(text[place:].rstrip()), ""
    if stop < len(hit.text):
        yield " …", "dim"


def _indent(text: str) -> str:
    return text.replace("\n", "\n   ")


def _indent_json(text: str) -> str:
    """Unescape line breaks in the JSON of a tool call."""
    return _indent(_ESCAPED.sub(lambda found: {"n": "\n", "t": "    ", '"': '"'}[found[1]], text))


def _show_neighbour(neighbour: Neighbour) -> None:
    is_call = neighbour.text.startswith("→")
    said = " ".join((_indent_json if is_call else str)(neighbour.text).split())
    text = beginning(said, NEIGHBOUR_CHARACTERS)
    shown = "[erased]" if neighbour.erased else strip_control(text)
    say_parts([(f"   ({neighbour.position} {neighbour.role}: {shown})", "dim")])

"""``refold query`` and ``expand``: the original records, and what a summary stands for."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import typer

from refold.application.recall.expanding import ExpandedSummary
from refold.application.recall.history import HistoryPage
from refold.application.recall.records import HistoryRecord, begin_of

from .opening import naming_commands, next_command, opened, require
from .options import DEFAULT_DB, Db, Json, Start, Thread
from .output import clean, print_json, say, say_parts

QUERY_EXAMPLE = (
    'Example: refold query thread-42 --range 10..40 --text "postgres" --db agent.db. '
    "Exit code 1: nothing is there."
)
EXPAND_EXAMPLE = (
    "Example: refold expand 3f2c… --db agent.db; `refold summaries THREAD` and the context itself name "
    "the ids."
)
EXAMPLES = {"query": QUERY_EXAMPLE, "expand": EXPAND_EXAMPLE}
_RANGE = re.compile(r"\s*(-?\d{0,15})\s*(?:\.\.|:|–)\s*(-?\d{0,15})\s*")
LIMIT = 20
"""Records of a page, where no limit is given."""
SHOWN_CHARACTERS = 1_500
"""Of a record; ``--json`` and ``refold read`` have all of it."""

Range = Annotated[
    str | None,
    typer.Option(
        "--range",
        metavar="A..B",
        help="Positions A up to but not including B; 10.. is from 10 on, -5.. the last five.",
    ),
]
Containing = Annotated[
    str | None, typer.Option("--text", metavar="TEXT", help="What they contain, in any case.")
]
Ids = Annotated[
    list[str] | None,
    typer.Option("--id", metavar="ID", help="Of a message, or its address; repeatable."),
]
Limit = Annotated[
    int, typer.Option("--limit", help="How many records at most.", min=1, max=200, metavar="N")
]
SummaryId = Annotated[
    str, typer.Argument(metavar="SUMMARY_ID", help="As `refold summaries THREAD` shows it.")
]


def query(
    thread: Thread,
    db: Db = DEFAULT_DB,
    range: Range = None,
    text: Containing = None,
    id: Ids = None,
    limit: Limit = LIMIT,
    json: Json = False,
) -> None:
    """Show the original records of a conversation, by range, text or id."""
    start, stop = (None, None) if range is None else _read_range(range)
    with opened(db) as memory, naming_commands(db):
        thread = require(memory, thread)
        page = memory.conversation(thread).query(
            ids=id or (), start=start, stop=stop, text=text, limit=limit
        )
    if json:
        print_json(page.model_dump())
    else:
        _show_page(page, text)
        if page.next is not None:
            where = f"{page.next}..{'' if stop is None else stop}"
            words = ["query", thread, "--range", where, *_given(text, id or (), limit)]
            say(f"Next: {clean(next_command(*words, db=db))}")
    if not page.records:
        raise typer.Exit(1)


def expand(
    summary_id: SummaryId,
    db: Db = DEFAULT_DB,
    start: Start = 0,
    limit: Limit = LIMIT,
    json: Json = False,
) -> None:
    """Show what a summary stands for: its text, and the original messages behind it."""
    with opened(db) as memory:
        found = memory.expand(summary_id, start=start, limit=limit)
    if json:
        print_json(found.model_dump())
        return
    _show_summary(found)
    _show_page(found.page)
    if found.page.next is not None:
        words = ["expand", summary_id, "--start", found.page.next, *_given(limit=limit)]
        say(f"Next: {clean(next_command(*words, db=db))}")


def _given(text: str | None = None, ids: Sequence[str] = (), limit: int = LIMIT) -> Iterator[str]:
    """The options that were given, as the next command has them again."""
    for one in ids:
        yield from ("--id", one)
    if text:
        yield from ("--text", text)
    if limit != LIMIT:
        yield from ("--limit", str(limit))


def _read_range(text: str) -> tuple[int | None, int | None]:
    """Start and stop of what somebody wrote.

    Raises:
        BadParameter: it is no range.
    """
    if (found := _RANGE.fullmatch(text)) is not None and "-" not in found.groups():
        first, last = (int(part) if part else None for part in found.groups())
        return first, last
    raise typer.BadParameter(f"{text!r} is no range of positions, such as 10..40, 10.. or -5..")


def _show_summary(found: ExpandedSummary) -> None:
    kept = f" but {', '.join(map(str, found.exclusions[:20]))}" if found.exclusions else ""
    by = f" by {found.superseded_by}" if found.superseded_by else ""
    say(
        f"[bold]{clean(found.summary_id)}[/bold] {found.state}{clean(by)}, conversation "
        f"{clean(found.thread_id)}, {found.made_at[:19]}, by {clean(found.model)}"
    )
    say(
        f"It covers {found.count:,} messages, {found.start}..{found.stop}{kept}; "
        f"{len(found.leaves):,} leaf summaries."
    )
    say(f"\n{clean(found.text)}\n")
    if found.withdrawn:
        say("Its text is gone: something that it was made from was erased.")


def _show_page(page: HistoryPage, wanted: str | None = None) -> None:
    for record in page.records:
        say_parts(_record(record, begin_of(record.text, wanted)))
    if page.notice:
        say(f"[dim]{clean(page.notice)}[/dim]")


def _record(record: HistoryRecord, begin: int) -> Iterable[tuple[str, str]]:
    """A record, of a long one the part from ``begin`` on."""
    begin = begin if record.length > SHOWN_CHARACTERS else 0
    when = record.at[:16].replace("T", " ")
    yield f"{record.position}", "bold cyan"
    yield f"  {record.role}  {when}  {record.tokens:,} tokens  {record.fate}", ""
    text = record.text[begin : begin + SHOWN_CHARACTERS]
    yield "\n   … " if record.start + begin else "\n   ", "dim"
    yield text.replace("\n", "\n   "), "dim" if record.erased else ""
    if len(text) < record.length:
        yield f" … ({record.length:,} characters: refold read {record.address})", "dim"
    yield "\n", ""

"""``refold query`` and ``expand``: the original records, and what a summary stands for."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import typer

from refold.application.memory import Memory
from refold.application.recall.expanding import ExpandedSummary
from refold.application.recall.history import HistoryPage
from refold.application.recall.records import HistoryRecord, begin_of
from refold.domain.errors import InvalidSetting, InvalidThreadId, UnknownSummary

from .completing import threads
from .opening import naming_commands, next_command, opened
from .options import DEFAULT_DB, Db, Json, Place, Positions, Range, Start
from .output import clean, print_json, say, say_parts
from .places import Span, chosen, find_place, given_span
from .times import TO_SECONDS, shown_time

QUERY_EXAMPLE = (
    'Example: refold query thread-42 --range 10..40 --text "postgres" --db agent.db. '
    "Exit code 1: nothing is there."
)
EXPAND_EXAMPLE = (
    "Example: refold expand 3f2c… --db agent.db; `refold summaries THREAD` and the context itself name "
    "the ids."
)
EXAMPLES = {"query": QUERY_EXAMPLE, "expand": EXPAND_EXAMPLE}
LIMIT = 20
"""Records of a page, where no limit is given."""
SHOWN_CHARACTERS = 1_500
"""Of a record; ``--json`` and ``refold read`` have all of it."""

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
    str,
    typer.Argument(
        metavar="SUMMARY",
        help="Its id or the beginning of it, as `refold summaries` shows it; THREAD for the active "
        "one; THREAD/17 for what covers that message, from there on.",
        autocompletion=threads,
    ),
]
FromPosition = Annotated[
    str | None, typer.Argument(metavar="[POSITION]", help="Where SUMMARY is a thread id.")
]


def query(
    thread: Place,
    positions: Positions = None,
    db: Db = DEFAULT_DB,
    range: Range = None,
    text: Containing = None,
    id: Ids = None,
    limit: Limit = LIMIT,
    json: Json = False,
) -> None:
    """Show the original records of a conversation, by range, text or id."""
    with opened(db) as memory, naming_commands(db):
        where = find_place(memory, thread, positions or ())
        thread, (start, stop) = where.thread, chosen(where, given_span(range, None, None))
        page = memory.conversation(thread).query(
            ids=id or (), start=start, stop=stop, text=text, limit=limit
        )
    if json:
        print_json(page.model_dump())
    else:
        _show_page(page, text)
        if page.next is not None:
            rest = f"{page.next}..{'' if stop is None else stop}"
            words = ["query", thread, "--range", rest, *_given(text, id or (), limit)]
            say(f"Next: {clean(next_command(*words, db=db))}")
    if not page.records:
        raise typer.Exit(1)


def expand(
    summary: SummaryId,
    position: FromPosition = None,
    db: Db = DEFAULT_DB,
    range: Range = None,
    start: Start = None,
    limit: Limit = LIMIT,
    json: Json = False,
) -> None:
    """Show what a summary stands for: its text, and the original messages behind it."""
    with opened(db) as memory:
        named, begin = _named(memory, summary, position)
        span = given_span(range, start, None)
        if span is not None and span.start is not None:
            begin = span.start
        found = memory.expand(named, start=begin, limit=_of(span, begin, limit))
    if json:
        print_json(found.model_dump())
        return
    _show_summary(found)
    _show_page(found.page)
    if found.page.next is not None and (span is None or span.stop is None):
        rest = f"{found.page.next}.."
        words = ["expand", found.summary_id, "--range", rest, *_given(limit=limit)]
        say(f"Next: {clean(next_command(*words, db=db))}")


def _of(span: Span | None, begin: int, limit: int) -> int:
    """How many records, where a range ends as well."""
    return limit if span is None or span.stop is None else max(1, min(limit, span.stop - begin))


def _named(memory: Memory, given: str, position: str | None) -> tuple[str, int]:
    """The summary that is meant, and the position from which on it is expanded.

    Raises:
        UnknownSummary: there is none.
        UnknownMessage: no summary covers the message.
    """
    try:
        where = find_place(memory, given, [] if position is None else [position])
    except (InvalidThreadId, typer.BadParameter):
        if position is not None:
            raise
        return given, 0
    chat = memory.conversation(where.thread)
    begin = (where.spans[0].start or 0) if where.spans else 0
    active = next((row for row in chat.summaries() if row.is_active), None)
    if active is None:
        raise UnknownSummary(given, where.thread, [])
    if where.spans and not active.covers(begin):
        raise InvalidSetting(
            f"message {begin} of {where.thread!r} is in the context: the active summary covers "
            f"{active.covered_from}..{active.first_kept_index}"
        )
    return active.summary_id, begin


def _given(text: str | None = None, ids: Sequence[str] = (), limit: int = LIMIT) -> Iterator[str]:
    """The options that were given, as the next command has them again."""
    for one in ids:
        yield from ("--id", one)
    if text:
        yield from ("--text", text)
    if limit != LIMIT:
        yield from ("--limit", str(limit))


def _show_summary(found: ExpandedSummary) -> None:
    kept = f" but {', '.join(map(str, found.exclusions[:20]))}" if found.exclusions else ""
    by = f" by {found.superseded_by}" if found.superseded_by else ""
    say(
        f"[bold]{clean(found.summary_id)}[/bold] {found.state}{clean(by)}, conversation "
        f"{clean(found.thread_id)}, {shown_time(found.made_at, TO_SECONDS)}, by {clean(found.model)}"
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
    when = shown_time(record.at)
    yield f"{record.position}", "bold cyan"
    yield (
        f"  {record.role}  {when}  {record.tokens:,} tokens  version {record.version}  {record.fate}",
        "",
    )
    text = record.text[begin : begin + SHOWN_CHARACTERS]
    yield "\n   … " if record.start + begin else "\n   ", "dim"
    yield text.replace("\n", "\n   "), "dim" if record.erased else ""
    if len(text) < record.length:
        yield f" … ({record.length:,} characters: refold read {record.address})", "dim"
    yield "\n", ""

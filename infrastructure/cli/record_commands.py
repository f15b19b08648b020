"""``refold query``, ``expand``, ``topics`` and ``notes``: records, covered messages and notes."""

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from refold.application.api.memory import Memory
from refold.application.history.expand import ExpandedSummary
from refold.application.history.query import HistoryPage, HistoryRecord, excerpt_start
from refold.application.notes.markdown_search import NotesFound, NotesStatus
from refold.application.notes.note_files import MEMORY, OWNERS, files_of, localise_times
from refold.application.ports.read_models import NoteRow
from refold.domain.errors import InvalidSetting, InvalidThreadId, UnknownSummary
from refold.infrastructure.bootstrap import configuration_of
from refold.infrastructure.files.log_place import typed_command
from refold.infrastructure.palette import FATES

from .arguments import (
    Span,
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
    TO_SECONDS,
    Db,
    Json,
    Place,
    Positions,
    Range,
    Start,
    Thread,
    format_time,
    threads,
)
from .output import clean, one_line, print_json, say, say_parts, show_table
from .part_colours import SPEAKERS
from .recall_commands import Limit, MinScore, Mode

QUERY_EXAMPLE = (
    'Example: refold query thread-42 --range 10..40 --text "postgres" --db agent.db. '
    "Exit code 1: nothing was found."
)
EXPAND_EXAMPLE = (
    "Example: refold expand 3f2c… --db agent.db; `refold summaries THREAD` and the context itself name "
    "the ids."
)
EXAMPLES = {"query": QUERY_EXAMPLE, "expand": EXPAND_EXAMPLE}
LIMIT = 20
"""Default number of records per page."""
SHOWN_CHARACTERS = 1_500
"""Characters of a record that are shown. ``--json`` and ``refold read`` have all of them."""

Containing = Annotated[
    str | None,
    typer.Option(
        "--text", metavar="TEXT", help="Only records that contain this text; case is ignored."
    ),
]
Ids = Annotated[
    list[str] | None,
    typer.Option("--id", metavar="ID", help="A message id or address; repeatable."),
]
RecordLimit = Annotated[
    int, typer.Option("--limit", help="Maximum number of records.", min=1, max=200, metavar="N")
]
SummaryId = Annotated[
    str,
    typer.Argument(
        metavar="SUMMARY",
        help="The summary id or its beginning, from `refold summaries`; THREAD for the active "
        "summary; THREAD/17 for the summary that covers this message, from there on.",
        autocompletion=threads,
    ),
]
FromPosition = Annotated[
    str | None,
    typer.Argument(metavar="[POSITION]", help="The position, if SUMMARY is a thread id."),
]


def query(
    thread: Place,
    positions: Positions = None,
    db: Db = DEFAULT_DB,
    range: Range = None,
    text: Containing = None,
    id: Ids = None,
    limit: RecordLimit = LIMIT,
    json: Json = False,
) -> None:
    """Show the original records of a conversation, by range, text or id."""
    with open_existing(db) as memory, naming_commands(db):
        where = find_place(memory, thread, positions or ())
        thread, (start, stop) = where.thread, single_span(where, span_of_options(range, None, None))
        page = memory.conversation(thread).query(
            ids=id or (), start=start, stop=stop, text=text, limit=limit
        )
    if json:
        print_json(page.model_dump())
    else:
        _show_page(page, text)
        if page.next is not None:
            rest = f"{page.next}..{'' if stop is None else stop}"
            words = ["query", thread, "--range", rest, *_given_options(text, id or (), limit)]
            say(f"Next: {clean(next_command(*words, db=db))}")
    if not page.records:
        raise typer.Exit(1)


def expand(
    summary: SummaryId,
    position: FromPosition = None,
    db: Db = DEFAULT_DB,
    range: Range = None,
    start: Start = None,
    limit: RecordLimit = LIMIT,
    json: Json = False,
) -> None:
    """Show the text of a summary and the original messages that it covers."""
    with open_existing(db) as memory:
        named, begin = _resolve_summary(memory, summary, position)
        span = span_of_options(range, start, None)
        if span is not None and span.start is not None:
            begin = span.start
        found = memory.expand(named, start=begin, limit=_limit_records(span, begin, limit))
    if json:
        print_json(found.model_dump())
        return
    _show_summary(found)
    _show_page(found.page)
    if found.page.next is not None and (span is None or span.stop is None):
        rest = f"{found.page.next}.."
        words = ["expand", found.summary_id, "--range", rest, *_given_options(limit=limit)]
        say(f"Next: {clean(next_command(*words, db=db))}")


def _limit_records(span: Span | None, begin: int, limit: int) -> int:
    """Return the limit of records, reduced to the end of the range."""
    return limit if span is None or span.stop is None else max(1, min(limit, span.stop - begin))


def _resolve_summary(memory: Memory, given: str, position: str | None) -> tuple[str, int]:
    """Return the summary and the position from which it is expanded.

    Raises:
        UnknownSummary: there is no such summary.
        UnknownMessage: no summary covers the message.
    """
    try:
        where = find_place(memory, given, [] if position is None else [position])
    except (InvalidThreadId, typer.BadParameter):
        if position is not None:
            raise
        return given, 0
    conversation = memory.conversation(where.thread)
    begin = (where.spans[0].start or 0) if where.spans else 0
    active = next((row for row in conversation.summaries() if row.is_active), None)
    if active is None:
        raise UnknownSummary(given, where.thread, [])
    if where.spans and not active.covers(begin):
        if not conversation.explain(begin, begin + 1):
            refuse_unknown(conversation, where.spans[0], None)
        raise InvalidSetting(
            f"message {begin} of {where.thread!r} is in the context: the active summary covers "
            f"{format_span(active.covered_from, active.first_kept_index - 1)}"
        )
    return active.summary_id, begin


def _given_options(
    text: str | None = None, ids: Sequence[str] = (), limit: int = LIMIT
) -> Iterator[str]:
    """Yield the given options for the next command."""
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
        f"{clean(found.thread_id)}, {format_time(found.made_at, TO_SECONDS)}, by {clean(found.model)}"
    )
    say(
        f"It covers {found.count:,} messages, {format_span(found.start, found.stop - 1)}{kept}; "
        f"{len(found.leaves):,} leaf summaries."
    )
    say(f"\n{clean(found.text)}\n")
    if found.withdrawn:
        say("Its text is gone, because some of its sources were erased.")


def _show_page(page: HistoryPage, wanted: str | None = None) -> None:
    for record in page.records:
        say_parts(_record(record, excerpt_start(record.text, wanted)))
    if page.notice:
        say(f"[dim]{clean(page.notice)}[/dim]")


def _record(record: HistoryRecord, begin: int) -> Iterable[tuple[str, str]]:
    """Yield a record, from ``begin`` on if it is long."""
    begin = begin if record.length > SHOWN_CHARACTERS else 0
    when = format_time(record.at)
    yield f"{record.position}  ", "bold"
    yield record.role, SPEAKERS.get(record.role, "")
    yield f"  {when}  {record.tokens:,} tokens  version {record.version}  ", ""
    yield record.fate, FATES.get(record.fate, "")
    text = record.text[begin : begin + SHOWN_CHARACTERS]
    yield "\n   … " if record.start + begin else "\n   ", "dim"
    yield text.replace("\n", "\n   "), "dim" if record.erased else ""
    if len(text) < record.length:
        how = shlex.join(["refold", "read", record.address])
        yield f" … ({record.length:,} characters: {how})", "dim"
    yield "\n", ""


NOTES_EXAMPLE = "Example: refold notes --write ~/agent --db agent.db"
NOTES_EXAMPLES = {"notes": NOTES_EXAMPLE}


def topics(thread: Thread, db: Db = DEFAULT_DB, json: Json = False) -> None:
    """List the topics of summarised messages, the most important first."""
    with open_existing(db) as memory:
        thread = require(memory, thread)
        rows = memory.conversation(thread).topics()
    if json:
        print_json({"thread_id": thread, "topics": [row.model_dump() for row in rows]})
        return
    if not rows:
        how = clean(typed_command("compact", thread, "--db", db))
        say(f"No topics yet: compaction extracts them. `{how}` compacts now.")
        return
    show_table(
        "",
        ["topic…", "messages#", "last position#", "last seen", "named"],
        [
            (
                one_line(row.topic, 80),
                row.count,
                row.last_position,
                format_time(row.last_seen).replace(" ", "\N{NO-BREAK SPACE}"),
                row.is_shown,
            )
            for row in rows
        ],
    )


def notes(
    thread: Annotated[
        str | None,
        typer.Argument(metavar="[THREAD]", help="The thread id; by default all conversations."),
    ] = None,
    db: Db = DEFAULT_DB,
    write: Annotated[
        str | None,
        typer.Option(
            "--write",
            metavar="FOLDER",
            help="Also update MEMORY.md and memory/YYYY-MM-DD.md in this folder, for all conversations.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show the durable notes that were taken before messages left the context."""
    folder = None if write is None else _folder(write)
    zone = configuration_of({}).settings.notes_timezone
    with open_existing(db, notes_folder=folder) as memory:
        if thread is not None:
            thread = require(memory, thread)
        rows = memory.notes() if thread is None else memory.conversation(thread).notes()
        written = folder is None or memory.write_notes()
        files = (
            tuple(files_of(localise_times(memory.notes(), zone), memory.conversations()))
            if folder
            else ()
        )
    if not written:
        raise OSError(None, "the files of notes cannot be written", str(folder))
    if json:
        place = str(folder) if files else None
        print_json({"thread_id": thread, "written_to": place, "notes": list(map(_as_json, rows))})
        return
    _show(rows, of_all=thread is None)
    if folder is not None:
        say(
            _written_files(folder, files) if files else "Nothing was written: the log has no notes."
        )


Question = Annotated[
    str, typer.Argument(metavar="[QUESTION]", help="The question in your own words.")
]
SearchedFolder = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        metavar="FOLDER",
        help="The folder with MEMORY.md; by default that of the settings.",
    ),
]
OfOwner = Annotated[
    str | None, typer.Option("--owner", metavar="ID", help="Only the notes of this owner.")
]


def search_notes(
    question: Question = "",
    folder: SearchedFolder = None,
    db: Db = DEFAULT_DB,
    owner: OfOwner = None,
    limit: Limit = 5,
    min_score: MinScore = 0.0,
    mode: Mode = None,
    json: Json = False,
) -> None:
    """Search MEMORY.md and memory/*.md, your own edits included; without a question list the files.

    Exit code 1: nothing was found.
    """
    with open_existing(db, markdown_folder=folder) as memory:
        if not question.strip():
            _show_status(memory.notes_status(owner=owner), json=json)
            return
        found = memory.search_notes(
            question, owner=owner, limit=limit, min_score=min_score, mode=mode
        )
    if json:
        print_json(found.model_dump())
    else:
        _show_found(found)
    if not found.hits:
        raise typer.Exit(1)


def _show_found(found: NotesFound) -> None:
    for hit in found.hits:
        below = f"  {one_line(hit.heading, 120)}" if hit.heading else ""
        say(f"[bold]{clean(hit.path)}:{hit.line}[/bold]  {hit.score:.2f}{below}")
        say(clean(hit.text))
        say()
    if not found.hits:
        say(f"Nothing was found{': ' + clean(found.notice) if found.notice else ''}.")


def _show_status(status: NotesStatus, *, json: bool) -> None:
    if json:
        print_json(status.model_dump())
        return
    if status.folder is None:
        say("No folder is configured: give --folder, or set markdown_folder or notes_folder.")
        return
    rows = [(clean(f.path), f.sections, f.characters) for f in status.files]
    show_table(clean(status.folder), ["file", "sections#", "characters#"], rows)
    for one in status.skipped:
        say(f"Skipped: {clean(one.path)}: {clean(one.why)}.")


def _folder(name: str) -> Path:
    if not name.strip():
        raise typer.BadParameter("--write needs a folder, such as . for the current one")
    return Path(name)


def _written_files(folder: Path, files: Collection[str]) -> str:
    owners = len({name.split("/")[1] for name in files if name.startswith(f"{OWNERS}/")})
    of_all = [name for name in files if not name.startswith(f"{OWNERS}/")]
    days = len(of_all) - (MEMORY in files)
    named = [*([MEMORY] if MEMORY in files else []), f"{days} file{'s' * (days != 1)} below memory"]
    owner_folders = (
        f", and a folder for each of {owners} owner{'s' * (owners != 1)}" if owners else ""
    )
    return f"Written: {clean(folder)}: {' and '.join(named)}{owner_folders}."


def _show(rows: Sequence[NoteRow], *, of_all: bool) -> None:
    if not rows:
        say("No notes yet: they are taken when compacted messages contain something lasting.")
        return
    show_table(
        "",
        [*(["thread"] if of_all else []), "positions", "kind", "taken", "by", "note…"],
        [
            (
                *([clean(row.thread_id)] if of_all else []),
                _positions(row),
                row.kind,
                row.taken_at[:10],
                clean(row.taken_by),
                one_line(row.text, 400),
            )
            for row in rows
        ],
    )


def _positions(row: NoteRow) -> str:
    """Return the positions of the sources of a note; a model that asked for one names none."""
    if row.is_on_demand:
        return "–"
    return ", ".join(map(str, row.source_positions)) or format_span(row.start, row.stop - 1)


def _as_json(row: NoteRow) -> dict[str, object]:
    return {**row.model_dump(), "positions": list(row.source_positions)}

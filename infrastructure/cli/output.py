"""What commands print: tables and sentences for people, or one JSON object for programs."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

Cell: TypeAlias = str | int | float | None

# Everything that could move a cursor, ring a bell or colour a screen, and what hides or turns text.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]")

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


def clean(text: object) -> str:
    """Text of a transcript, made safe for a terminal: no control characters, no markup."""
    return escape(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(text)).replace("\t", "    "))


def one_line(text: str, width: int) -> str:
    """The beginning of a text on one line."""
    folded = " ".join(text.split())
    return clean(folded if len(folded) <= width else folded[: width - 1] + "…")


def print_json(value: Any) -> None:
    """Print one JSON object, and nothing else, on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")


def say(text: str = "") -> None:
    """Print a sentence with markup; texts of transcripts in it must be cleaned."""
    console.print(text)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Table:
    """A table; columns whose name ends with ``#`` hold numbers."""
    made = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left")
    for column in columns:
        number = column.endswith("#")
        made.add_column(column.rstrip("#"), justify="right" if number else "left")
    for row in rows:
        made.add_row(*(_cell(value) for value in row))
    return made


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Print a table."""
    console.print(table(title, columns, rows))


def _cell(value: Cell) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.2f}"
        case _:
            return value

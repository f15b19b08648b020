"""One colour for each meaning, shared by the terminal, the charts and the pages of the inspector."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

Meaning = Literal[
    "system",
    "tools",
    "user",
    "assistant",
    "thinking",
    "tool",
    "summary",
    "ledger",
    "pinned",
    "free",
    "damage",
]
"""A kind of content. ``tools`` are definitions, ``tool`` is a call or a result."""


class Colour(NamedTuple):
    """One colour on three grounds."""

    light: str
    """Hexadecimal, readable as text on white: a contrast of at least 4.5, except for ``free``."""
    dark: str
    """Hexadecimal, readable as text on ``DARK_GROUND``: a contrast of at least 4.5, except for ``free``."""
    terminal: str
    """Style of rich, from the 16 colours that every theme of a terminal defines.

    White, black and the bright colours are unreadable on some ground, except for bright blue: it is
    readable on more grounds than blue.
    """


LIGHT_GROUND = "#ffffff"
DARK_GROUND = "#14171c"

PALETTE: Mapping[Meaning, Colour] = {
    "system": Colour("#525f6e", "#a3b1c2", "default"),
    "tools": Colour("#6b6251", "#bfb39c", "default"),
    "user": Colour("#1858b8", "#82b1ff", "bright_blue"),
    "assistant": Colour("#12703f", "#6fd39d", "green"),
    "thinking": Colour("#4b6b5c", "#9dbcae", "dim italic green"),
    "tool": Colour("#8a5300", "#e3b14f", "yellow"),
    "summary": Colour("#7434b5", "#cb9ff5", "magenta"),
    "ledger": Colour("#0a6c78", "#5fcad8", "cyan"),
    "pinned": Colour("#b3235b", "#ff8fb7", "bold magenta"),
    "free": Colour("#d9dde3", "#39414c", "dim"),
    "damage": Colour("#b3261e", "#ff8a80", "bold red"),
}

SIGNALS: Mapping[str, str] = {
    "good": "bold green",
    "warning": "bold yellow",
    "added": "green",
    "removed": "red",
    "found": "bold underline",
}
"""Styles of rich for results, differences and words that were searched. The text itself says the same."""


class Ink(NamedTuple):
    """One colour of a chart or a page on both grounds, with a contrast of at least 3."""

    light: str
    dark: str


SERIES: Sequence[Ink] = (
    Ink("#08306b", "#7fb2ff"),
    Ink("#d9480f", "#ff9d5c"),
    Ink("#1f8a76", "#5fd3bd"),
    Ink("#88419d", "#d69be6"),
    Ink("#3a87bd", "#b9d7f0"),
    Ink("#7a5c12", "#d8bd6a"),
)
"""Colours of lines that are compared, such as policies. They differ in brightness as well."""
TEXT = Ink("#1f2328", "#e6e9ee")
"""Words of a chart or a page, and the frame of a chart."""
RULE = Ink("#dddddd", "#343c46")
"""Thin lines of a table or behind a chart, without a minimum of contrast."""

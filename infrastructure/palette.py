"""One colour for each meaning, shared by the terminal, the charts and the pages of the inspector."""

from collections.abc import Mapping
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
    """Style of rich, from the 16 colours that every theme of a terminal defines."""


LIGHT_GROUND = "#ffffff"
DARK_GROUND = "#14171c"

PALETTE: Mapping[Meaning, Colour] = {
    "system": Colour("#525f6e", "#a3b1c2", "white"),
    "tools": Colour("#6b6251", "#bfb39c", "white"),
    "user": Colour("#1858b8", "#82b1ff", "blue"),
    "assistant": Colour("#12703f", "#6fd39d", "green"),
    "thinking": Colour("#4b6b5c", "#9dbcae", "dim green"),
    "tool": Colour("#8a5300", "#e3b14f", "yellow"),
    "summary": Colour("#7434b5", "#cb9ff5", "magenta"),
    "ledger": Colour("#0a6c78", "#5fcad8", "cyan"),
    "pinned": Colour("#b3235b", "#ff8fb7", "bold magenta"),
    "free": Colour("#d9dde3", "#39414c", "dim"),
    "damage": Colour("#b3261e", "#ff8a80", "bold red"),
}

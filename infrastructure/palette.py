"""One colour for each meaning, shared by the terminal, the charts and the pages of the inspector.

The hexadecimal colours of a ground also differ for people who cannot tell red from green, or blue from
yellow.
"""

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

Theme = Literal["light", "dark"]


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
    "system": Colour("#303d55", "#c4d3f1", "default"),
    "tools": Colour("#787570", "#929292", "default"),
    "user": Colour("#2649bc", "#81acf9", "bright_blue"),
    "assistant": Colour("#096112", "#35b268", "green"),
    "thinking": Colour("#4a5a4e", "#9ab8a2", "dim italic green"),
    "tool": Colour("#9a6c04", "#e5cd84", "yellow"),
    "summary": Colour("#5a218d", "#b97fc7", "magenta"),
    "ledger": Colour("#097e9a", "#a0fbfa", "cyan"),
    "pinned": Colour("#730538", "#f3a0cf", "bold magenta"),
    "free": Colour("#d9dde3", "#39414c", "dim"),
    "damage": Colour("#ae1c23", "#f5704e", "bold red"),
}

FATES: Mapping[str, Meaning] = {
    "summarised": "summary",
    "omitted": "summary",
    "offloaded": "tool",
    "condensed": "tool",
    "pinned": "pinned",
    "protected": "pinned",
    "erased": "free",
}
"""Colours of messages that the model does not see word for word, by fate."""

PARTS: Mapping[str, Meaning] = {
    "system": "system",
    "tools": "tools",
    "summary": "summary",
    "ledger": "ledger",
    "recalled lines": "ledger",
    "user": "user",
    "images and documents": "user",
    "assistant": "assistant",
    "thinking": "thinking",
    "tool calls": "tool",
    "tool results": "tool",
}
"""Colours of the parts of a request, in the order of a request."""

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
    Ink("#08306b", "#5696f3"),
    Ink("#d62f11", "#e06906"),
    Ink("#038167", "#10d4ba"),
    Ink("#6a32a9", "#b658a3"),
    Ink("#6290e8", "#d8f4fe"),
    Ink("#4f2b00", "#ecc04f"),
)
"""Colours of lines that are compared, such as policies."""
TEXT = Ink("#1f2328", "#e6e9ee")
"""Words of a chart or a page, and the frame of a chart."""
RULE = Ink("#dddddd", "#343c46")
"""Thin lines of a table or behind a chart, without a minimum of contrast."""


def shade_for(theme: Theme, colour: Colour | Ink) -> str:
    """Return the hexadecimal colour on the ground of a theme."""
    return colour.light if theme == "light" else colour.dark

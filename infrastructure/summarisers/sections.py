"""The sections that a summary is asked for, and how their headings are found in a text."""

import re

from refold.application.ports import SummaryRequest

SECTIONS = (
    "Technical Context",
    "Project Overview",
    "Code Changes",
    "Debugging & Issues",
    "Current Status",
    "Pending Tasks",
    "User Preferences",
    "Key Decisions",
)
"""The sections of a summary, in order (requirement D5)."""

PREFIX_SECTIONS = ("Original Request", "Early Progress", "Context for What Follows")
"""The sections of a summary of a divided turn's beginning (requirement A5)."""


def sections_of(request: SummaryRequest) -> tuple[str, ...]:
    """The sections that this request asks for, in order."""
    return SECTIONS if request.part == "history" else PREFIX_SECTIONS


def heading(name: str) -> str:
    """The line that a section is asked to begin with."""
    return f"## {name}"


def required_headings(text: str, sections: tuple[str, ...]) -> tuple[str, ...]:
    """The headings as they stand in the text; of one that is missing, how it should stand there.

    A heading is a line that begins with the name, whatever marks or number stand before it.
    """
    found = ((name, _pattern(name).search(text)) for name in sections)
    return tuple(match[0].strip() if match else heading(name) for name, match in found)


def _pattern(name: str) -> re.Pattern[str]:
    words = re.escape(name).replace(re.escape("&"), "(?:&|and)")
    return re.compile(rf"^[^\w\n]*(?:\d+[^\w\n]+)?{words}\b", re.IGNORECASE | re.MULTILINE)

"""The lines that a summary is made of: sections, their headings, and how a line is written and read."""

import re
from dataclasses import dataclass
from enum import Enum


class Section(Enum):
    """A part of the summary; the value is its heading. The order here is the order in the text.

    The headings are a storage format: a later compaction reads them back.
    """

    REQUESTS = "Requests"
    DECISIONS = "Decisions and constraints"
    FACTS = "Facts and plans"
    MODIFIED = "Files modified"
    READ = "Files read"
    COMMANDS = "Commands"
    ACTIONS = "Actions"
    FAILURES = "Failures"
    VALUES = "Exact values"
    EARLIER = "Earlier summary"
    TASKS = "Open tasks"
    STATE = "Last state"


@dataclass(frozen=True, slots=True)
class Line:
    """One extracted line. ``position`` is that of its source message, None for carried prose."""

    section: Section
    position: int | None
    text: str
    """Clean: one line, no control characters."""
    count: int = 1
    """How often it was seen; written as a suffix when above one."""


REPEATED = {
    Section.MODIFIED,
    Section.READ,
    Section.COMMANDS,
    Section.ACTIONS,
    Section.FAILURES,
    Section.VALUES,
}
"""Sections whose lines stand for every occurrence: they carry a count and the newest position."""

_WRITTEN = re.compile(r"- \[(-?\d{1,9})\] (.+)")
_COUNT = re.compile(r" \(×(\d{1,6})\)$")
_NOT_WORDS = re.compile(r"[\W_]+")


def written(line: Line) -> str:
    """The line as it stands in the text. Carried prose is quoted, so it cannot pass for a line."""
    if line.position is None:
        return f"> {line.text}"
    suffix = f" (×{line.count})" if line.count > 1 else ""
    return f"- [{line.position}] {line.text}{suffix}"


def read_line(section: Section, raw: str) -> Line | None:
    """What ``written`` wrote, or None when this is not such a line."""
    if section is Section.EARLIER and raw.startswith("> "):
        return Line(section, None, raw[2:])
    found = _WRITTEN.fullmatch(raw)
    if found is None:
        return None
    text, count = found[2], 1
    if section in REPEATED and (suffix := _COUNT.search(text)):
        text, count = text[: suffix.start()], int(suffix[1])
    return Line(section, int(found[1]), text, max(1, count)) if text.strip() else None


def identity(line: Line) -> str:
    """What makes two lines of a section the same: the file, the command, the value, the words."""
    match line.section:
        case Section.MODIFIED | Section.READ:
            return line.text.partition(" — ")[0]
        case Section.COMMANDS | Section.ACTIONS:
            return line.text.partition(" → ")[0]
        case Section.FAILURES:
            return line.text.partition(" ⇒ ")[0]
        case Section.VALUES:
            return line.text.partition("` — ")[0].strip("`")
        case _:
            return _NOT_WORDS.sub(" ", line.text).strip().casefold() or line.text

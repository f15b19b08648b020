"""Sections of a Markdown file: what stands below one heading, cut where it is long."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from .pages import MarkdownFile

LONGEST = 1_600
"""Characters of a section; of what is longer the next one goes on at a line."""
_HEADING = re.compile(r"(#{1,6})\s+(\S.*)")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_MARK = re.compile(r"\s*<!--\s*refold:notes:(?:begin|end)\b.*-->\s*")


class Section(NamedTuple):
    """A part of a file."""

    path: str
    heading: str
    """The headings that it stands below, the highest first, with `` > `` between them; or empty."""
    line: int
    """Its first line, from 1."""
    text: str


def sections_of(file: MarkdownFile) -> list[Section]:
    """The sections of a file in their order; headings alone are none."""
    found: list[Section] = []
    for path, begin, lines in _parts(file.text):
        heading = " > ".join(path)
        for offset, text in _pieces(lines):
            if text.strip():
                found.append(Section(file.path, heading, begin + offset, text.strip("\n")))
    return found


def _parts(text: str) -> Iterator[tuple[list[str], int, list[str]]]:
    """Headings, first line and lines of what stands below each heading."""
    path: list[tuple[int, str]] = []
    lines: list[str] = []
    begin, fence = 1, ""
    for number, line in enumerate(text.splitlines(), 1):
        mark = _FENCE.match(line)
        if mark and (not fence or (mark[1][0] == fence[0] and len(mark[1]) >= len(fence))):
            fence = "" if fence else mark[1]
        heading = None if fence or mark else _HEADING.fullmatch(line.rstrip())
        if heading is None:
            lines.append("" if _MARK.fullmatch(line) else line)
            continue
        yield [title for _, title in path], begin, lines
        level = len(heading[1])
        path = [*(one for one in path if one[0] < level), (level, heading[2].strip(" #"))]
        lines, begin = [], number + 1
    yield [title for _, title in path], begin, lines


def _pieces(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The lines in pieces, each with the number of lines before it."""
    start, size = 0, 0
    for number, line in enumerate(lines):
        if size and size + len(line) > LONGEST:
            yield from _piece(lines, start, number)
            start, size = number, 0
        size += len(line) + 1
    yield from _piece(lines, start, len(lines))


def _piece(lines: list[str], start: int, stop: int) -> Iterator[tuple[int, str]]:
    while start < stop and not lines[start].strip():
        start += 1
    text = "\n".join(lines[start:stop])
    for at in range(0, max(1, len(text)), LONGEST):  # A single line may be longer.
        yield start, text[at : at + LONGEST]

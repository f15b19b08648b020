"""Carries an earlier summary: reads its own lines back, keeps foreign prose, merges with the new."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from refold.domain.ledger.wording import excerpt

from .lines import REPEATED, Line, Section, identity, read_line

_HEADINGS = {f"## {section.value}": section for section in Section}
_PREAMBLE = re.compile(r"Extracted by code from messages (-?\d{1,9}) to (-?\d{1,9})\b.*")
_FOCUS = re.compile(r"Focus named by the user, as data: “.*”")
_FRAME = {"---", "[Conversation Summary]", "**Turn Context (split turn):**"}


@dataclass(frozen=True, slots=True)
class Carried:
    """What an earlier summary says."""

    lines: tuple[Line, ...]
    first: int | None
    """The first position that it stands for, if it says so."""
    last: int | None
    foreign: bool
    """Whether anything in it is not in this algorithm's own form."""


def read_back(previous: str | None) -> Carried:
    """Reads a summary, this one's own or another's. Never fails: what is not ours is prose."""
    lines: list[Line] = []
    section: Section | None = None
    spans: list[tuple[int, int]] = []
    foreign = not (previous or "").strip()
    for raw in re.split(r"\r\n|[\n\r]", previous or ""):
        stripped = raw.strip()
        if not stripped or stripped in _FRAME or _FOCUS.fullmatch(stripped):
            continue
        if span := _PREAMBLE.fullmatch(stripped):
            spans.append((int(span[1]), int(span[2])))
        elif stripped in _HEADINGS:
            section = _HEADINGS[stripped]
        elif section and (line := read_line(section, raw)):
            lines.append(line)
        else:
            foreign = True
            section = None if stripped.startswith("#") else section
            prose = excerpt(stripped.lstrip("#> "), 1_200)
            if any(c.isalnum() for c in prose):
                lines.append(Line(Section.EARLIER, None, prose))
    first, last = (min(s[0] for s in spans), max(s[1] for s in spans)) if spans else (None, None)
    return Carried(tuple(lines), first, last, foreign)


def merge(carried: Sequence[Line], fresh: Sequence[Line], covered: range) -> list[Line]:
    """One list without doubles. ``covered`` spans the messages that are summarised now: a carried
    line from among them gives way to what was gathered anew, and its count is not added again.
    """
    merged: dict[tuple[Section, str], Line] = {}
    renewed = {line.section for line in fresh} & {Section.STATE}
    succeeded = {i for f in fresh if f.section is Section.COMMANDS and (i := _succeeded(f))}
    for line in carried:
        if line.section in renewed or line.section is Section.TASKS:
            continue
        if line.section not in REPEATED and line.position is not None and line.position in covered:
            continue
        _add(merged, _recovered(line, succeeded), covered)
    for line in fresh:
        _add(merged, line, covered)
    modified = {identity(line) for line in merged.values() if line.section is Section.MODIFIED}
    return [
        line
        for line in merged.values()
        if line.section is not Section.READ or identity(line) not in modified
    ]


def _add(merged: dict[tuple[Section, str], Line], line: Line, covered: range) -> None:
    key = (line.section, identity(line))
    before = merged.pop(key, None)
    if before is None:
        merged[key] = line
        return
    counted_again = before.position is not None and before.position in covered
    count = max(before.count, line.count) if counted_again else before.count + line.count
    match line.section:
        case Section.VALUES:
            kept = before  # What was said of it belongs to the message that is named.
        case Section.DECISIONS | Section.FACTS | Section.EARLIER:
            kept, count = before, 1
        case Section.REQUESTS:
            kept, count = line, 1
        case _:
            kept = line
    merged[key] = replace(kept, count=count)


def _succeeded(line: Line) -> str:
    title, _, ended = line.text.partition(" → ")
    return title if ended == "ok" else ""


def _recovered(line: Line, succeeded: Iterable[str]) -> Line:
    """A carried failure whose command succeeded since says so."""
    if line.section is not Section.FAILURES or " ⇒ " in line.text:
        return line
    if any(f" {title}: " in line.text for title in succeeded):
        return replace(line, text=line.text[:225] + " ⇒ later ok")
    return line

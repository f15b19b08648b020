"""Search the Markdown notes of the workspace, and report which files are searched."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, get_args

from refold.application.agent_tools.answers import well_formed
from refold.application.errors import EmbedderError
from refold.application.ports.markdown_pages import MarkdownFile, PagesRead, SkippedFile
from refold.application.recall.recall_query import MOST_HITS, ask, whole_number
from refold.application.recall.tokens import tokens_of
from refold.application.runtime.core import Core
from refold.application.runtime.memory_settings import RecallMode
from refold.domain.errors import InvalidSetting
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.value import Value

LONGEST = 1_600
"""Largest number of characters of a section; longer ones are split at a line."""
_HEADING = lazy_pattern(r"(#{1,6})\s+(\S.*)")
_FENCE = lazy_pattern(r"\s*(`{3,}|~{3,})")
_MARK = lazy_pattern(r"\s*<!--\s*refold:notes:(?:begin|end)\b.*-->\s*")


class Section(NamedTuple):
    """A part of a file."""

    path: str
    heading: str
    """Headings above the section, highest first, joined by `` > ``; may be empty."""
    line: int
    """Number of the section's first line, from 1."""
    text: str


def sections_of(file: MarkdownFile) -> list[Section]:
    """Return the sections of a file in order, without headings that have no text."""
    found: list[Section] = []
    for path, begin, lines in _parts(file.text):
        heading = " > ".join(path)
        for offset, text in _pieces(lines):
            if text.strip():
                found.append(Section(file.path, heading, begin + offset, text.strip("\n")))
    return found


def _parts(text: str) -> Iterator[tuple[list[str], int, list[str]]]:
    """Yield the headings, first line number and lines of each part of a file."""
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
    """Yield the lines in pieces, each with the number of lines before it."""
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


NO_FOLDER = "no folder is configured: set markdown_folder or notes_folder"


class NotesHit(Value, frozen=True):
    """A part of a Markdown file that answers the question."""

    path: str
    """Path relative to the folder."""
    line: int
    """Number of the part's first line, from 1."""
    heading: str
    """Headings above the part."""
    text: str
    score: float
    """Score relative to the best hit: over 0, at most 1."""


class NotesFound(Value, frozen=True):
    """The hits, best first, and how they were found."""

    query: str
    hits: tuple[NotesHit, ...]
    mode: RecallMode
    """Search mode that was actually used."""
    notice: str | None = None
    """Deviations from the requested search in one sentence, or None."""


class SearchedFile(Value, frozen=True):
    """A file that is searched."""

    path: str
    sections: int
    characters: int


class NotesStatus(Value, frozen=True):
    """Files that are searched now; they are read again for each question."""

    folder: str | None
    """The searched folder, or None if none is configured."""
    files: tuple[SearchedFile, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()
    """Files that are not searched, with reasons."""


def _hit(section: Section, score: float) -> NotesHit:
    return NotesHit(
        path=section.path,
        heading=section.heading,
        line=section.line,
        text=section.text,
        score=score,
    )


def search_notes(
    core: Core,
    query: str,
    owner: str | None,
    *,
    limit: int = 5,
    min_score: float = 0.0,
    mode: RecallMode | None = None,
) -> NotesFound:
    """Return the sections that answer best; the same files and question give the same answer.

    Raises:
        InvalidSetting: an option is invalid; the error names the valid values.
    """
    _check(limit, min_score, mode)
    query = well_formed(query)
    if core.markdown is None:
        return NotesFound(query=query, hits=(), mode="keyword", notice=NO_FOLDER)
    files = core.markdown.read(owner).files
    sections = [part for file in files for part in sections_of(file)]
    used, notice, scores = _scores(core, query, sections, mode)
    if not files:
        notice = f"{_folder(core)} has no MEMORY.md and no memory/*.md to search"
    best = max(scores, default=0.0)
    ranked = sorted(zip(scores, sections, strict=True), key=lambda one: (-one[0], one[1][:3]))
    hits = tuple(
        _hit(section, score / best)
        for score, section in ranked[:limit]
        if score > 0 and score / best >= min_score
    )
    return NotesFound(query=query, hits=hits, mode=used, notice=notice)


def _check(limit: int, min_score: float, mode: RecallMode | None) -> None:
    whole_number("limit", limit, 1, MOST_HITS)
    if not 0 <= min_score <= 1:
        raise InvalidSetting(
            f"min_score={min_score!r} is invalid: it must be a number from 0 to 1",
            setting="min_score",
        )
    if mode is not None and mode not in get_args(RecallMode):
        allowed = ", ".join(get_args(RecallMode))
        raise InvalidSetting(
            f"mode={mode!r} is invalid: it must be one of {allowed}", setting="mode"
        )


def notes_status(core: Core, owner: str | None) -> NotesStatus:
    """Return which files are searched for an owner, and which are skipped."""
    if core.markdown is None:
        return NotesStatus(folder=None)
    found: PagesRead = core.markdown.read(owner)
    files = (
        SearchedFile(path=f.path, sections=len(sections_of(f)), characters=len(f.text))
        for f in found.files
    )
    return NotesStatus(folder=_folder(core), files=tuple(files), skipped=tuple(found.skipped))


def _folder(core: Core) -> str:
    return str(core.settings.notes.searched or core.settings.notes.folder)


def _scores(
    core: Core, query: str, sections: Sequence[Section], mode: RecallMode | None
) -> tuple[RecallMode, str | None, list[float]]:
    embedder = core.recall.embedder
    wanted = mode or ("keyword" if embedder is None else "hybrid")
    words = _score_by_words(query, sections)
    if wanted == "keyword":
        return "keyword", None, words
    if embedder is None:
        return "keyword", "searched by words alone: no embedder is configured", words
    try:
        near = core.section_vectors.cosines(embedder, query, [_full(s) for s in sections])
    except EmbedderError as error:
        return "keyword", f"searched by words alone: {error}", words
    if wanted == "vector":
        return "vector", None, near
    return "hybrid", None, [a + b for a, b in zip(_relative(words), _relative(near), strict=True)]


def _relative(scores: Sequence[float]) -> list[float]:
    best = max(scores, default=0.0)
    return [score / best if best > 0 else 0.0 for score in scores]


def _full(section: Section) -> str:
    return f"{section.heading}\n{section.text}" if section.heading else section.text


def _score_by_words(query: str, sections: Sequence[Section]) -> list[float]:
    """Score sections by the words of the question in them; rare words weigh more."""
    asked = ask(query).tokens
    counted = [Counter(tokens_of(_full(section))) for section in sections]
    there = Counter(token for counts in counted for token in asked if token in counts)
    weights = {token: math.log(1 + len(sections) / number) for token, number in there.items()}
    return [
        sum(weights[t] * (counts[t] / (counts[t] + 1)) for t in asked if t in counts)
        for counts in counted
    ]

"""The steps of a page in docs/howto, read so that a program can follow them in a copy of the project.

A step is a fenced block behind a line that begins with "In" or "Create" and names one file: ``diff``
changes the file, any other language is the text of a new one.

A change is placed by the lines around it, and other lines may stand between them. So a page still fits
when someone has followed it, or has added a neighbour of what the page adds. A change that a file has
already is left out.
"""

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

from tests.architecture.rules import LAYERS, ROOT

PAGES = sorted((ROOT / "docs/howto").glob("add-*.md"))
"""Pages that change the code. Others have tests of their own."""
_FILE = re.compile(r"\b(In|Create)\s`([\w./-]+)`[^`]*:\Z", re.DOTALL)
_HUNK = re.compile(r"^@@.*\n", re.MULTILINE)
_LAST_NUMBER = re.compile(r"\d+(?=\D*\Z)")
_LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "results", "session.jsonl", "*.egg-info")
MOST_BETWEEN = 12
"""Lines that others may have put between two lines of a change."""


class DoesNotFit(AssertionError):
    """A file lacks lines that a change names, or has them twice."""


class Line(NamedTuple):
    """A line of a diff: a space, a plus or a minus, and the text."""

    sign: str
    text: str


class Edit(NamedTuple):
    """One hunk of a diff."""

    lines: tuple[Line, ...]

    @property
    def old(self) -> list[str]:
        """The lines that a file has before."""
        return [line.text for line in self.lines if line.sign != "+"]

    @property
    def new(self) -> list[str]:
        """The lines that a file has afterwards."""
        return [line.text for line in self.lines if line.sign != "-"]

    @property
    def removes(self) -> bool:
        return any(line.sign == "-" for line in self.lines)

    @property
    def raises_a_number(self) -> bool:
        """Whether the hunk only raises the last number of one line by one, whatever it is now."""
        return [s for s, _ in self.lines] == ["-", "+"] and _raised(self.old[0]) == self.new[0]


class Step(NamedTuple):
    """What a page changes in one file: edits, or the text of a new file."""

    path: str
    edits: tuple[Edit, ...] = ()
    text: str = ""
    section: str = ""
    """The heading of the page that the step is below."""


def steps_of(page: Path) -> Iterator[Step]:
    """The files that a page changes or creates, in the order of the page."""
    before, section, is_heading = "", "", False
    for token in MarkdownIt().parse(page.read_text("utf-8")):
        if token.type == "inline":
            before = token.content
            section = before if is_heading else section
        is_heading = token.type == "heading_open"
        if token.type != "fence":
            continue
        named, before = _FILE.search(before), ""
        if named is None:
            assert token.info != "diff", f"{page.name}: which file is changed?\n{token.content}"
            continue
        if named[1] == "Create":
            yield Step(named[2], text=token.content, section=section)
        else:
            assert token.info == "diff", f"{page.name}: {named[2]} is changed by a diff block"
            yield Step(named[2], edits=tuple(_edits(token.content)), section=section)


def follow(steps: Iterable[Step], place: Path) -> None:
    """Take steps in the copy of the project at ``place``."""
    for step in steps:
        path = place / step.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(step.text or _edited(path, step), "utf-8")


def changed(lines: Sequence[str], edit: Edit) -> list[str]:
    """The lines of a file after an edit; the same lines if the edit was made before."""
    if edit.raises_a_number:
        number = _line_of_number(lines, edit.old[0])
        return [*lines[:number], _raised(lines[number]), *lines[number + 1 :]]
    if edit.removes:
        if _tightest(lines, edit.old) is None and _tightest(lines, edit.new) is not None:
            return list(lines)
    elif _tightest(lines, edit.new) is not None:
        return list(lines)
    places = _tightest(lines, edit.old)
    if places is None:
        raise DoesNotFit("\n".join(["these lines are not there:", *edit.old]))
    result: list[str] = []
    taken, waiting = places[0], list(places)
    for sign, text in edit.lines:
        if sign == "+":
            result.append(text)
            continue
        place = waiting.pop(0)
        result += lines[taken:place]
        if sign == " ":
            result.append(text)
        taken = place + 1
    return [*lines[: places[0]], *result, *lines[taken:]]


def renamed(steps: Iterable[Step], names: Mapping[str, str]) -> Iterator[Step]:
    """Steps that add something of another name."""

    def other(text: str) -> str:
        for name, instead in names.items():
            text = text.replace(name, instead)
        return text

    for step in steps:
        edits = (Edit(tuple(Line(s, other(text)) for s, text in e.lines)) for e in step.edits)
        yield Step(other(step.path), tuple(edits), other(step.text), step.section)


def copy_of_project(place: Path) -> Path:
    """Copy what a page may change: the layers, the tests, the documentation."""
    for folder in (*LAYERS, "tests", "docs"):
        shutil.copytree(ROOT / folder, place / folder, ignore=_LEFT_OUT)
    shutil.copytree(ROOT / "src", place / "src", symlinks=True, ignore=_LEFT_OUT)
    shutil.copy(ROOT / "pyproject.toml", place)
    return place


def _edits(diff: str) -> Iterator[Edit]:
    for hunk in filter(None, _HUNK.split(diff)):
        yield Edit(tuple(Line(line[:1] or " ", line[1:]) for line in hunk.splitlines()))


def _edited(path: Path, step: Step) -> str:
    lines = path.read_text("utf-8").splitlines()
    for edit in step.edits:
        try:
            lines = changed(lines, edit)
        except DoesNotFit as error:
            raise DoesNotFit(f"{step.path}: {error}") from None
    return "".join(f"{line}\n" for line in lines)


def _tightest(lines: Sequence[str], wanted: Sequence[str]) -> list[int] | None:
    """Where the wanted lines are, in this order and close together; None if they are not there."""
    found: dict[int, list[int]] = {}  # By the last line: a later beginning is closer.
    for begin, line in enumerate(lines):
        if line == wanted[0] and (places := _from(lines, wanted, begin)):
            found[places[-1]] = places
    best = sorted(found.values(), key=lambda places: places[-1] - places[0])
    if not best:
        return None
    if len(best) > 1 and len({places[-1] - places[0] for places in best[:2]}) == 1:
        raise DoesNotFit("\n".join(["these lines are there more than once:", *wanted]))
    return best[0]


def _from(lines: Sequence[str], wanted: Sequence[str], begin: int) -> list[int] | None:
    places = [begin]
    for text in wanted[1:]:
        near = range(places[-1] + 1, min(places[-1] + MOST_BETWEEN + 2, len(lines)))
        place = next((n for n in near if lines[n] == text), None)
        if place is None:
            return None
        places.append(place)
    return places


def _raised(line: str) -> str:
    return _LAST_NUMBER.sub(lambda number: str(int(number[0]) + 1), line)


def _line_of_number(lines: Sequence[str], wanted: str) -> int:
    alike = [
        number
        for number, line in enumerate(lines)
        if _LAST_NUMBER.sub("", line) == _LAST_NUMBER.sub("", wanted)
    ]
    if len(alike) != 1:
        raise DoesNotFit(f"{len(alike)} lines are like: {wanted}")
    return alike[0]

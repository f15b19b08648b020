"""The steps of a page in docs/howto, read so that a program can follow them in a copy of the project.

A step is a fenced block behind a line that begins with "In" or "Create" and names one file: ``diff``
changes the file, any other language is the text of a new one.
"""

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

from tests.architecture.rules import LAYERS, ROOT

PAGES = sorted((ROOT / "docs/howto").glob("*.md"))
_FILE = re.compile(r"\b(In|Create)\s`([\w./-]+)`[^`]*:\Z", re.DOTALL)
_HUNK = re.compile(r"^@@.*\n", re.MULTILINE)
_LEFT_OUT = shutil.ignore_patterns(
    ".*", "__pycache__", "results", "session.jsonl", "*.egg-info"
)


class Edit(NamedTuple):
    """A text of a file, and what takes its place."""

    old: str
    new: str


class Step(NamedTuple):
    """What a page changes in one file: edits, or the text of a new file."""

    path: str
    edits: tuple[Edit, ...] = ()
    text: str = ""


def steps_of(page: Path) -> Iterator[Step]:
    """The files that a page changes or creates, in the order of the page."""
    before = ""
    for token in MarkdownIt().parse(page.read_text("utf-8")):
        if token.type == "inline":
            before = token.content
        if token.type != "fence":
            continue
        named, before = _FILE.search(before), ""
        if named is None:
            assert token.info != "diff", f"{page.name}: which file is changed?\n{token.content}"
            continue
        if named[1] == "Create":
            yield Step(named[2], text=token.content)
        else:
            assert token.info == "diff", f"{page.name}: {named[2]} is changed by a diff block"
            yield Step(named[2], edits=tuple(_edits(token.content)))


def follow(steps: Iterable[Step], place: Path) -> None:
    """Take steps in the copy of the project at ``place``."""
    for step in steps:
        path = place / step.path
        if step.text:
            assert not path.exists(), f"{step.path} is there already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text, "utf-8")
            continue
        text = path.read_text("utf-8")
        for old, new in step.edits:
            assert text.count(old) == 1, f"{step.path} has {text.count(old)} times:\n{old}"
            text = text.replace(old, new)
        path.write_text(text, "utf-8")


def copy_of_project(place: Path) -> Path:
    """Copy what a page may change: the layers, the tests, the documentation."""
    for folder in (*LAYERS, "tests", "docs"):
        shutil.copytree(ROOT / folder, place / folder, ignore=_LEFT_OUT)
    shutil.copytree(ROOT / "src", place / "src", symlinks=True, ignore=_LEFT_OUT)
    shutil.copy(ROOT / "pyproject.toml", place)
    return place


def _edits(diff: str) -> Iterator[Edit]:
    for hunk in filter(None, _HUNK.split(diff)):
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] or "\n" for line in lines if not line.startswith("+"))
        new = "".join(line[1:] or "\n" for line in lines if not line.startswith("-"))
        yield Edit(old, new)

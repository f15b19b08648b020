"""The how-to pages can be followed: their changes fit the code, also a second time, and the tests pass afterwards."""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.architecture import rooms
from tests.architecture.rules import ROOT
from tests.support.howto_pages import (
    PAGES,
    DoesNotFit,
    Edit,
    Line,
    Step,
    changed,
    copy_of_project,
    follow,
    renamed,
    steps_of,
)

NEIGHBOURS: Mapping[str, Mapping[str, str]] = {
    "add-a-command": {"longest": "briefest"},
    "add-a-cut-rule": {
        "system_notes": "tool_notes",
        "SYSTEM_NOTES": "TOOL_NOTES",
        "_not_behind_notes": "_not_behind_others",
        "_newest_note": "_newest_other",
        "_notes(": "_others(",
        "notes =": "others =",
        "in notes": "in others",
    },
    "add-a-read-model": {"PinRow": "MarkRow", "pin_": "mark_", "pins": "marks", "PINS": "MARKS"},
    "add-a-summariser": {"headlines": "titles", "Headline": "Title"},
    "add-an-event": {"Mood": "Tune", "mood": "tune"},
    "add-an-importer": {"talk-log": "chat-log", "talk_log": "chat_log", "speaker": "who"},
}
"""Names of something else of the same kind that somebody has added: by page, the page's name and the other."""
RULES = ("howto_pages", "adding_an_event", "rooms", "architecture_page")
"""Tests of the code as a whole that whoever follows a page must not break."""
COUNTS_OF_MODULES = (
    "rooms.py::test_there_are_few_modules",
    "howto_pages.py::test_who_follows_a_page_has_no_more_modules_than_are_allowed",
)


def created(page: Path) -> list[str]:
    return [step.path for step in steps_of(page) if step.text]


def new_tests(page: Path) -> list[str]:
    return [path for path in created(page) if Path(path).name.startswith("test_")]


def copy_of_files(steps: Iterable[Step], place: Path) -> dict[str, str]:
    """Copy the files that steps change, and return the text of each."""
    found: dict[str, str] = {}
    for step in steps:
        if (ROOT / step.path).exists():
            found[step.path] = (ROOT / step.path).read_text("utf-8")
            (place / step.path).parent.mkdir(parents=True, exist_ok=True)
            (place / step.path).write_text(found[step.path], "utf-8")
    return found


def texts(place: Path) -> dict[str, str]:
    """The files at a place, each without numbers: a page may raise a number each time."""
    found = {str(p.relative_to(place)): p.read_text("utf-8") for p in place.rglob("*.*")}
    for path, text in found.items():
        if path.endswith(".py"):
            compile(text, path, "exec")
    return {path: without_numbers(text) for path, text in found.items()}


def without_numbers(text: str) -> str:
    return "".join(c for c in text if not c.isdigit())


def run(place: Path, *tests: str) -> "subprocess.CompletedProcess[str]":
    path = os.pathsep.join((str(place / "src"), str(place)))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", *tests],
        env={**os.environ, "PYTHONPATH": path},
        cwd=place,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_there_is_a_page_for_everything_that_is_often_added() -> None:
    assert sorted(page.stem for page in PAGES) == sorted(NEIGHBOURS)


@pytest.mark.slow(but="add-an-event")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_who_follows_a_page_has_tests_that_pass(page: Path, tmp_path: Path) -> None:
    place = copy_of_project(tmp_path)
    follow(steps_of(page), place)
    assert new_tests(page)
    ran = run(place, *new_tests(page))
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.slow
def test_who_follows_all_pages_breaks_no_rule(tmp_path: Path) -> None:
    place = copy_of_project(tmp_path)
    for page in PAGES:
        follow(steps_of(page), place)
    # The modules of all pages together are too many. The next test counts those of each page.
    others = [f"--deselect=tests/architecture/test_{test}" for test in COUNTS_OF_MODULES]
    ran = run(place, *others, *(f"tests/architecture/test_{rule}.py" for rule in RULES))
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_who_follows_a_page_has_no_more_modules_than_are_allowed(page: Path) -> None:
    new = [p for p in created(page) if p.endswith(".py") and not p.startswith("tests/")]
    assert len(rooms.product_modules()) + len(new) <= rooms.MOST_MODULES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_change_of_a_page_fits_the_code_also_a_second_time(
    page: Path, tmp_path: Path
) -> None:
    steps = list(steps_of(page))
    before = copy_of_files(steps, tmp_path)
    assert before
    follow(steps, tmp_path)
    once = texts(tmp_path)
    follow(steps, tmp_path)
    assert texts(tmp_path) == once


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_fits_where_something_of_the_same_kind_was_added(page: Path, tmp_path: Path) -> None:
    steps = list(steps_of(page))
    copy_of_files(steps, tmp_path)
    neighbour = list(renamed(steps, NEIGHBOURS[page.stem]))
    follow(neighbour, tmp_path)
    follow(steps, tmp_path)
    after = texts(tmp_path)
    assert [*missing_lines(neighbour, after), *missing_lines(steps, after)] == []


def missing_lines(steps: Iterable[Step], after: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines that steps add and files lack. A page may remove a line that it added itself."""
    lines = [(s.path, sign, text) for s in steps for e in s.edits for sign, text in e.lines]
    removed = {(path, text) for path, sign, text in lines if sign == "-"}
    for path, sign, text in lines:
        if sign == "+" and (path, text) not in removed and without_numbers(text) not in after[path]:
            yield f"{path}: {text}"


class Case(NamedTuple):
    """A file, a change and the file afterwards, one letter a line."""

    file: str
    diff: str
    after: str | None
    """None if the change does not fit."""


CASES = {
    "between two lines": Case("abcd", " b +x c", "abxcd"),
    "others stand between them": Case("abyyzcd", " b +x c", "abxyyzcd"),
    "before a line": Case("abc", "+x c", "abxc"),
    "made before": Case("abxc", " b +x c", "abxc"),
    "made before, with others": Case("abyxzc", " b +x c", "abyxzc"),
    "a line goes": Case("abxc", " b -x c", "abc"),
    "a line went before": Case("abc", " b -x c", "abc"),
    "the closest place is meant": Case("abyyycbc", " b +x c", "abyyycbxc"),
    "no such line": Case("abd", " b +x c", None),
    "too far": Case("b" + "y" * 13 + "c", " b +x c", None),
    "two places": Case("bcabc", " b +x c", None),
    "a number is raised": Case("7", "-4+5", "8"),
    "no number to raise": Case("ab", "-4+5", None),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_change_is_placed_by_the_lines_around_it(case: Case) -> None:
    # A letter without a sign before it is a line around the change.
    pairs = zip(" " + case.diff, case.diff, strict=False)
    lines = (Line(s if s in "+-" else " ", text) for s, text in pairs if text not in " +-")
    edit = Edit(tuple(lines))
    if case.after is None:
        with pytest.raises(DoesNotFit):
            changed(case.file, edit)
    else:
        assert changed(case.file, edit) == list(case.after)

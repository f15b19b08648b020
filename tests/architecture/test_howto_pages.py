"""The how-to pages can be followed: their changes fit the code, and their tests pass in a copy of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.rules import ROOT
from tests.support.howto_pages import PAGES, Step, copy_of_project, follow, steps_of

OFTEN_ADDED = ("command", "cut-rule", "event", "importer", "read-model", "summariser")


def new_tests(page: Path) -> list[str]:
    created = (step.path for step in steps_of(page) if step.text)
    return [path for path in created if Path(path).name.startswith("test_")]


def fits(step: Step, place: Path) -> bool:
    text = (place / step.path).read_text("utf-8") if (place / step.path).exists() else ""
    return bool(step.text) or all(text.count(edit.old) == 1 for edit in step.edits)


def test_there_is_a_page_for_everything_that_is_often_added() -> None:
    assert sorted(page.stem.split("-", 2)[2] for page in PAGES) == sorted(OFTEN_ADDED)


@pytest.mark.slow(but="add-an-event")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_who_follows_a_page_has_tests_that_pass(page: Path, tmp_path: Path) -> None:
    place = copy_of_project(tmp_path)
    follow(steps_of(page), place)
    assert new_tests(page)
    path = os.pathsep.join((str(place / "src"), str(place)))
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", *new_tests(page)],
        env={**os.environ, "PYTHONPATH": path},
        cwd=place,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_change_of_a_page_fits_the_code(page: Path) -> None:
    assert [step.path for step in steps_of(page) if not fits(step, ROOT)] == []

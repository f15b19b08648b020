"""Users' programs: ``ok_*.py`` type-check, and of ``wrong_*.py`` exactly the lines that say so are refused.

A refused line ends with ``# error: mypy[arg-type] pyright[reportArgumentType]``: the codes of each checker.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAMS = sorted([*HERE.glob("ok_*.py"), *HERE.glob("wrong_*.py")])
MARKED = re.compile(r"# error: (.*)$")
CODES = re.compile(r"(mypy|pyright)\[([\w, -]+)\]")
OF_MYPY = re.compile(r"^(\w+\.py):(\d+): error: .*\[([\w-]+)\]$", re.MULTILINE)
FOLLOWS = "reportUnknown"
"""pyright's rules of what follows from a refusal: a field that does not exist has no known type either."""


class Refusal(NamedTuple):
    """A line that a checker refuses, and by which rule."""

    program: str
    line: int
    code: str


@cache
def refused_by_mypy() -> frozenset[Refusal]:
    words = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--no-pretty"]
    words += ["--hide-error-context", "--no-color-output", "--show-error-codes"]
    words += ["--cache-dir", f"{ROOT / '.mypy_cache' / 'programs'}"]
    said = ran([*words, *(path.name for path in PROGRAMS)])
    assert "Found " in said or "Success" in said, said
    return frozenset(Refusal(name, int(line), code) for name, line, code in OF_MYPY.findall(said))


@cache
def refused_by_pyright() -> frozenset[Refusal]:
    words = [sys.executable, "-m", "pyright", "--project", f"{HERE}", "--outputjson"]
    said = ran([*words, "--pythonpath", sys.executable])
    assert said.startswith("{"), said
    return frozenset(
        Refusal(Path(one["file"]).name, one["range"]["start"]["line"] + 1, one.get("rule", ""))
        for one in json.loads(said)["generalDiagnostics"]
    )


def ran(words: list[str]) -> str:
    """What a checker prints; that it refuses something is no failure here."""
    ended = subprocess.run(words, cwd=HERE, capture_output=True, text=True, check=False)
    return ended.stdout + ended.stderr


CHECKERS: dict[str, Callable[[], frozenset[Refusal]]] = {
    "mypy": refused_by_mypy,
    "pyright": refused_by_pyright,
}


def expected(program: Path, checker: str, text: str | None = None) -> Iterator[Refusal]:
    """The refusals that the comments of a program announce."""
    lines = program.read_text("utf-8") if text is None else text
    for number, line in enumerate(lines.splitlines(), start=1):
        if marked := MARKED.search(line):
            for named, codes in CODES.findall(marked[1]):
                if named == checker:
                    yield from (Refusal(program.name, number, c) for c in codes.split(", "))


@pytest.mark.parametrize("checker", CHECKERS)
def test_exactly_the_lines_that_say_so_are_refused(checker: str) -> None:
    if find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed: pip install -e '.[dev]'")
    wanted = {refusal for program in PROGRAMS for refusal in expected(program, checker)}
    found = {
        refusal
        for refusal in CHECKERS[checker]()
        if not (refusal.program.startswith("wrong") and refusal.code.startswith(FOLLOWS))
    }
    assert sorted(found - wanted) == [], "refused, and no comment says so"
    assert sorted(wanted - found) == [], "not refused, as a comment says"


def test_a_program_that_is_wrong_says_where_and_one_that_is_right_says_nothing() -> None:
    for program in PROGRAMS:
        refusals = {*expected(program, "mypy"), *expected(program, "pyright")}
        assert bool(refusals) == program.name.startswith("wrong"), program.name
        announced = {r.line for r in refusals}
        lines = program.read_text("utf-8").splitlines()
        assert announced == {n for n, line in enumerate(lines, 1) if "# error" in line}


def test_a_comment_names_the_codes_of_each_checker() -> None:
    line = "f(7)  # error: mypy[arg-type, misc] pyright[reportCallIssue]"
    program = Path("wrong_example.py")
    assert [r.code for r in expected(program, "mypy", line)] == ["arg-type", "misc"]
    assert [r.code for r in expected(program, "pyright", line)] == ["reportCallIssue"]
    assert list(expected(program, "mypy", "f(7)  # error-free")) == []

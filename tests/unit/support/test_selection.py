"""Which tests run, with how many examples, and where: without an option the quick ones, with ``--all`` every one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[2] / "conftest.py"
MEMORY = "/dev/shm"
TESTS = """
import pytest
from hypothesis import settings

def test_quick():
    print(f"quick, {settings().max_examples} examples")

@pytest.mark.slow
def test_slow():
    print("slow ran")
"""


SETTINGS = """
[pytest]
markers = slow: takes seconds
tmp_path_retention_policy = failed
"""
SURROUNDINGS = """
import os, sys

def test_surroundings(tmp_path):
    kept = not sys.dont_write_bytecode and "PYTHONDONTWRITEBYTECODE" not in os.environ
    print(f"place {tmp_path}")
    print(f"bytecode {kept}")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text("utf-8"), "utf-8")
    (tmp_path / "pytest.ini").write_text(SETTINGS, "utf-8")
    (tmp_path / "test_two.py").write_text(TESTS, "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        ("", ["quick, 30 examples"]),
        ("--all", ["quick, 300 examples", "slow ran"]),
        ("-m slow", ["slow ran"]),
        ("test_two.py::test_slow", ["slow ran"]),
        ("test_two.py", ["quick, 30 examples"]),
    ],
)
def test_slow_tests_run_where_they_are_asked_for(
    folder: Path, words: str, printed: list[str]
) -> None:
    assert lines(folder, words, "quick", "slow") == printed


@pytest.mark.parametrize(
    ("words", "chosen", "ci", "expected"),
    [
        ("", "", "", MEMORY),
        ("--all", "", "", "disk"),
        ("--all", "", "true", MEMORY),
        ("", "chosen", "", "chosen"),
    ],
    ids=["quick", "all", "all in CI", "chosen"],
)
def test_temporary_folders_of_quick_runs_are_in_memory(
    folder: Path, words: str, chosen: str, ci: str, expected: str
) -> None:
    if not Path(MEMORY).is_dir() or shutil.disk_usage(MEMORY).free < 2 << 30:
        pytest.skip("there is no room in memory for files")
    (folder / "disk").mkdir()
    (folder / "chosen").mkdir()
    (folder / "test_two.py").write_text(SURROUNDINGS, "utf-8")
    places = {"TMPDIR": f"{folder / 'disk'}", "CI": ci}
    if chosen:
        places["PYTEST_DEBUG_TEMPROOT"] = f"{folder / chosen}"
    [place] = lines(folder, words, "place", **places)
    assert place.startswith(f"place {folder / expected / 'pytest-of-'}")


def test_bytecode_is_kept_where_the_environment_forbids_it(folder: Path) -> None:
    (folder / "test_two.py").write_text(SURROUNDINGS, "utf-8")
    assert lines(folder, "", "bytecode", PYTHONDONTWRITEBYTECODE="1") == ["bytecode True"]


@pytest.mark.parametrize(
    ("profile", "repeated"),
    [("sixth", []), ("ci", ["four ran", "quick, 300 examples"])],
    ids=["as many examples", "more examples"],
)
def test_what_passed_is_repeated_only_with_more_examples(
    folder: Path, profile: str, repeated: list[str]
) -> None:
    named = {"REFOLD_X_PASSED": f"{folder / 'passed'}"}
    (folder / "test_four.py").write_text("def test_four():\n    print('four ran')\n")
    ran = lines(folder, "", "four", "quick", HYPOTHESIS_PROFILE="sixth", **named)
    assert sorted(ran) == ["four ran", "quick, 50 examples"]
    again = lines(folder, "--all", "four", "quick", "slow", HYPOTHESIS_PROFILE=profile, **named)
    assert sorted(again) == [*repeated, "slow ran"]


def lines(folder: Path, words: str, *beginnings: str, **more: str) -> list[str]:
    """Run pytest in the folder, and return the lines that its tests print."""
    unset = ("CI", "HYPOTHESIS_PROFILE", "PYTEST_DEBUG_TEMPROOT", "REFOLD_X_PASSED")
    environment = {k: v for k, v in os.environ.items() if k not in unset} | more
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [*command, *words.split()], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = [line.lstrip(".") for line in ended.stdout.splitlines()]
    return [line for line in found if line.startswith(beginnings)]

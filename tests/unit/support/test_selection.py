"""Which tests run, and with how many examples: without an option the quick ones, with ``--all`` every one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[2] / "conftest.py"
TESTS = """
import pytest
from hypothesis import settings

def test_quick():
    print(f"quick, {settings().max_examples} examples")

@pytest.mark.slow
def test_slow():
    print("slow ran")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text("utf-8"), "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow: takes seconds\n", "utf-8")
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
    environment = {k: v for k, v in os.environ.items() if k not in ("CI", "HYPOTHESIS_PROFILE")}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [*command, *words.split()], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = [line.lstrip(".") for line in ended.stdout.splitlines()]
    assert [line for line in found if line.startswith(("quick", "slow"))] == printed

"""What the program says of itself, what it loads for that, and what a shell completes."""

import json
import logging
import os
import subprocess
import sys
from importlib import import_module
from inspect import getdoc
from pathlib import Path

import pytest

import refold as library
from refold.infrastructure.cli.commands import ENTRIES, GROUPS
from tests.support.command_line import Refold

PROBE = """
import json, sys
sys.argv = ["refold", *{words!r}]
from refold.infrastructure.cli.program import main
try:
    main()
except SystemExit:
    pass
loaded = [n for n in sys.modules if n.startswith("refold.")]
print("\\n" + json.dumps(loaded))
"""


def loaded_by(folder: Path, *words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(words=list(words))],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("words", [["--version"], ["--help"]])
def test_what_needs_no_command_loads_none(tmp_path: Path, words: list[str]) -> None:
    loaded = loaded_by(tmp_path, *words)
    commands = {f"refold.infrastructure.cli.{entry.module}" for entry in ENTRIES.values()}
    assert not loaded & commands
    assert "refold.application.api.memory" not in loaded


def test_a_command_loads_its_own_module(tmp_path: Path) -> None:
    loaded = loaded_by(tmp_path, "settings", "--json")
    assert "refold.infrastructure.cli.serve_commands" in loaded
    assert "refold.infrastructure.cli.simulate_command" not in loaded


def test_help_lists_the_commands_in_groups(refold: Refold) -> None:
    told = refold("--help").out
    places = [told.index(f"─ {group} ") for group in GROUPS]
    assert places == sorted(places)
    assert told.index("─ Find ") < told.index(" recall ") < told.index("─ Change ")


@pytest.mark.parametrize("name", ENTRIES)
def test_the_list_says_of_a_command_what_its_own_help_begins_with(name: str) -> None:
    entry = ENTRIES[name]
    module = import_module(f"refold.infrastructure.cli.{entry.module}")
    documented = " ".join((getdoc(getattr(module, entry.function)) or "").split())
    assert documented.startswith(entry.help)


@pytest.mark.parametrize(
    ("name", "usage"),
    [
        ("show", "show [OPTIONS] THREAD [POSITION]..."),
        ("recall", "recall [OPTIONS] THREAD [QUESTION]"),
        ("import", "import [OPTIONS] FILE..."),
        ("exam", "exam [OPTIONS] DATA..."),
        ("scan", "scan [OPTIONS] [FOLDER]..."),
        ("erase", "erase [OPTIONS] [THREAD] [POSITION]..."),
    ],
)
def test_the_usage_line_marks_what_is_optional_and_what_can_be_repeated(
    refold: Refold, name: str, usage: str
) -> None:
    assert f"{usage} " in refold(name, "--help").out


def test_a_paragraph_of_a_help_text_is_wrapped_once(refold: Refold) -> None:
    shown = refold("show", "--help").out
    assert "turns. With --full texts are complete, except" in shown


@pytest.mark.parametrize("words", [["--help"], ["list", "--help"], ["show", "--help"]])
def test_an_option_without_a_value_has_no_type(refold: Refold, words: list[str]) -> None:
    assert "<bool>" not in refold(*words).out


def test_the_log_can_be_named_by_a_variable(
    refold: Refold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with library.open(tmp_path / "other.db") as memory:
        memory.conversation("t").append({"role": "user", "content": "hello"})
    monkeypatch.setenv("REFOLD_DB", "other.db")
    listed = refold("list", "--json").answer["conversations"]
    assert [row["thread_id"] for row in listed] == ["t"]
    assert refold("list", "--db", "none.db").code == 2  # The option is stronger.
    assert "--db" not in refold("list").out.partition("Next:")[2]
    assert refold("settings", "keep_last", "--json").code == 0  # It is no unknown setting.


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("words", [["-v", "list"], ["list", "-v"], ["list", "--verbose"]])
def test_more_is_shown_whether_asked_before_the_command_or_after_it(
    refold: Refold, words: list[str]
) -> None:
    assert refold(*words).code == 0
    assert logging.getLogger("refold").level == logging.INFO


@pytest.fixture
def logged(tmp_path: Path) -> str:
    """A log with two conversations and a pin; the pin's id."""
    with library.open(tmp_path / "agent.db") as memory:
        for name in ("build-red", "build-green"):
            memory.conversation(name).append({"role": "user", "content": "keep this"})
        return memory.conversation("build-red").pin(0)


@pytest.mark.slow
def test_a_shell_completes_conversations_pins_commands_and_settings(
    tmp_path: Path, logged: str
) -> None:
    script = "from refold.infrastructure.cli.program import main; main()"

    def offered(line: str) -> str:
        env = {
            **os.environ,
            "_REFOLD_COMPLETE": "complete_fish",
            "_TYPER_COMPLETE_ARGS": line,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }
        code = f"import sys; sys.argv = ['refold']; {script}"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        return done.stdout

    names = offered("refold show build-")
    assert "build-red" in names
    assert "build-green" in names
    assert "build-green" not in offered("refold show build-r")
    assert logged in offered("refold unpin build-red ")
    assert "keep_last" in offered("refold settings keep_")
    assert "recall" in offered("refold rec")
    assert offered("refold show --db none.db x").strip() == ""


THREADS = """
import os, sys
sys.argv = ["refold", "--version"]
from refold.infrastructure.cli.program import main
try:
    main()
except SystemExit:
    pass
import numpy
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_numpy_makes_no_threads_in_a_command_that_a_limit_could_refuse(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    usual = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", THREADS],
        cwd=tmp_path,
        env=usual,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "1"

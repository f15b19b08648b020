"""Resources of several integration tests: the command line in a folder of its own, and a stored log."""

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from refold.application.api.memory import Memory
from refold.infrastructure.cli import output
from refold.infrastructure.cli.program import main
from tests.support.command_line import Ran, Refold, talk_file
from tests.support.erasing_scenes import opened
from tests.support.fake_qmd import FakeQmd


@pytest.fixture(autouse=True)
def nothing_read_in_the_background(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Damage that a test makes is met by what the test does, except where reading ahead is tested."""
    if "scrub" not in request.path.name and request.path.name != "test_cli_settings.py":
        monkeypatch.setenv("REFOLD_SCRUB_MEGABYTES", "0")


@pytest.fixture
def refold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Iterator[Refold]:
    """Run a command in this process, in a folder of its own; what it set up is undone."""
    logger = logging.getLogger("refold")
    quieted = logging.getLogger("refold.compaction")
    handlers, levels = list(logger.handlers), (logger.level, quieted.level)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(output.console, "width", 160)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)

    def run(*words: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["refold", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        assert isinstance(end.value.code, int)
        printed = capsys.readouterr()
        return Ran(end.value.code, printed.out, printed.err)

    yield run
    logger.handlers[:] = handlers
    logger.setLevel(levels[0])
    quieted.setLevel(levels[1])


@pytest.fixture
def stored(refold: Refold, tmp_path: Path) -> Path:
    """A log with one conversation of 80 messages, ``talk``, compacted once."""
    talk_file(tmp_path / "talk.json", 20)
    assert refold("import", "talk.json").code == 0
    assert refold("compact", "talk").code == 0
    return tmp_path / "agent.db"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for one log and the files beside it."""
    made = tmp_path / "log"
    made.mkdir()
    return made


@pytest.fixture
def memory(folder: Path) -> Iterator[Memory]:
    """The memory of a log in that folder, with a small window."""
    with opened(folder) as made:
        yield made


@pytest.fixture
def qmd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeQmd:
    """A program named qmd, first on PATH."""
    made = FakeQmd.installed(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{made.folder}{os.pathsep}{os.environ['PATH']}")
    return made


@pytest.fixture
def in_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Puts this process into a time zone, until the end of the test."""
    if not hasattr(time, "tzset"):
        pytest.skip("the zone of a process cannot be set here")

    def put(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield put
    monkeypatch.undo()
    time.tzset()

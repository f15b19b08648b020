"""A process that may open no more files leaves no hidden folder with conversations behind."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

import refold
from refold.infrastructure.inspector import bundle
from refold.infrastructure.inspector.file_pages import Source
from refold.infrastructure.inspector.masking import Masker
from tests.support.command_line import talk

resource = pytest.importorskip("resource", reason="no such limits here")


def write_bundle(memory: refold.Memory, to: Path) -> None:
    source = Source(datetime(2026, 11, 30, tzinfo=UTC), refold.__version__, "a.db")
    bundle.write_bundle(memory, to, Masker(), source, replace=False)


WRITES: list[Callable[[refold.Memory, Path], object]] = [
    lambda memory, to: memory.backup(to),
    lambda memory, to: memory.anchor(to),
    lambda memory, to: memory.salvage(to),
    lambda memory, to: refold.restore(to.with_name("kept.db"), to),
    write_bundle,
]


@contextmanager
def descriptors_left(count: int) -> Generator[None]:
    """Let this process open so many files more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    # What is free below the limit is used up first, because a limit does not count open files.
    highest = max(int(path.name) for path in Path("/dev/fd").iterdir()) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + count, before[1]))
    used: list[int] = []
    try:
        with suppress(OSError):
            while True:
                used.append(os.open(os.devnull, os.O_RDONLY))
        for number in used[len(used) - count :]:
            os.close(number)
        del used[len(used) - count :]
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for number in used:
            os.close(number)


@pytest.mark.parametrize("write", WRITES, ids=["backup", "anchor", "salvage", "restore", "bundle"])
def test_what_fails_for_want_of_descriptors_leaves_nothing_behind(
    tmp_path: Path, write: Callable[[refold.Memory, Path], object]
) -> None:
    outcomes = list[str]()
    with refold.open(tmp_path / "a.db") as memory:
        memory.conversation("t").append(talk(4))
        memory.conversations()
        memory.backup(tmp_path / "kept.db")
        write(memory, tmp_path / "first")  # Everything is imported now.
        for count in range(12):
            to = tmp_path / f"made-{count}"
            failure = "done"
            with descriptors_left(count):
                try:
                    write(memory, to)
                except (refold.RefoldError, OSError) as error:
                    failure = str(error)
            outcomes.append(failure)
            assert not list(tmp_path.glob(".*")), (count, failure)
            assert failure == "done" or not to.exists(), (count, failure)
        assert memory.verify().ok
    assert any("Too many open files" in outcome for outcome in outcomes)

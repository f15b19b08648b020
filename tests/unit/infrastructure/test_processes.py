"""Whether a process certainly runs no more: told by machine, start of the machine, id and start."""

import os
import subprocess
import sys

import pytest

from refold.infrastructure.files.processes import ThisProcess

ROOT = [
    "-c",
    "from refold.infrastructure.files.processes import ThisProcess; print(ThisProcess().name)",
]
WAITING = ROOT[1] + "; import sys; sys.stdout.flush(); sys.stdin.read()"


@pytest.fixture
def other() -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", WAITING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def name_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def changed(name: str, place: int, part: str) -> str:
    """The name with one of its parts another: machine, start of it, container, id, start."""
    parts = name.split("/")
    parts[place] = part
    return "/".join(parts)


def test_this_process_runs_whichever_object_asks() -> None:
    one, two = ThisProcess(), ThisProcess()
    assert one.name == two.name
    assert not one.is_gone(two.name)


def test_another_process_runs_until_it_ends(other: "subprocess.Popen[str]") -> None:
    with other:
        name = name_of(other)
        assert not ThisProcess().is_gone(name)
        other.kill()
        # Nobody has asked for its exit code yet: its id is still taken.
        assert other.stdout is not None
        other.stdout.read()
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        assert ThisProcess().is_gone(name)
    assert ThisProcess().is_gone(name)


def test_a_process_that_got_the_id_of_another_is_not_taken_for_it() -> None:
    mine = ThisProcess()
    started = float(mine.name.split("/")[4])
    assert mine.is_gone(changed(mine.name, 4, f"{started - 100:.2f}"))
    assert not mine.is_gone(changed(mine.name, 4, f"{started - 0.01:.2f}"))


def test_what_ran_before_the_machine_was_started_again_is_gone() -> None:
    mine = ThisProcess()
    assert mine.is_gone(changed(mine.name, 1, "another-start"))


@pytest.mark.parametrize(("place", "part"), [(0, "elsewhere"), (1, ""), (2, "container")])
def test_nothing_is_certain_of_another_machine_or_container(place: int, part: str) -> None:
    mine = ThisProcess()
    free = changed(mine.name, 3, "999999999")
    assert mine.is_gone(free)
    assert not mine.is_gone(changed(free, place, part))


@pytest.mark.parametrize("name", ["", "me", "a/b/c", "a/b/c/d/e", "a/b/c/1/x"])
def test_nothing_is_certain_of_a_name_of_another_kind(name: str) -> None:
    assert not ThisProcess().is_gone(name)

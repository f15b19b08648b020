"""The simulator of disks: it finds defects that are planted, and a seed is always the same case."""

import re
import subprocess
import sys

import pytest

from .disks.defects import DEFECTS
from .disks.simulated_disk import Deed, SimulatedDisk
from .striking import ROOT

NEEDS_A_LIE = "no-report"
"""A defect that shows only if a disk loses something and does not report it."""


def simulated(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.faults.storage", *options]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.slow
@pytest.mark.parametrize("defect", sorted({*DEFECTS} - {NEEDS_A_LIE}))
def test_a_planted_defect_is_found_within_a_minute(defect: str) -> None:
    ended = simulated("--clean", "--crashes", "1000000", "--seconds", "60", "--defect", defect)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "CASE" in ended.stdout


@pytest.mark.slow
def test_what_a_lying_disk_loses_must_be_reported() -> None:
    search = ("--crashes", "1000000", "--seconds", "120")
    unreported = simulated("--lying", *search, "--defect", NEEDS_A_LIE)
    assert unreported.returncode == 1, unreported.stdout + unreported.stderr
    case = re.search("CASE ([0-9]+)\n.* LOST in ", unreported.stdout)
    assert case
    assert (
        simulated("--lying", "--case", case[1]).returncode == 0
    )  # Without the defect, it is reported.


@pytest.mark.slow
def test_a_seed_is_always_the_same_case() -> None:
    once, again = (simulated("--case", "885440004").stdout for _ in range(2))
    assert re.search("[1-9][0-9]* losses of power", once)
    once, again = (re.sub("[0-9]+ losses a minute", "", text) for text in (once, again))
    assert once == again


class Chance:
    """Draws the lowest numbers, so that nothing is kept that is not certain."""

    def random(self) -> float:
        return 0.99

    def choice(self, values: tuple[float, ...]) -> float:
        return values[0]

    def randrange(self, _end: int) -> int:
        return 0


def left(*deeds: Deed) -> dict[str, bytes]:
    disk, chance = SimulatedDisk({"a.db": b"old"}), Chance()
    for deed in deeds:
        disk.take(deed, chance)  # type: ignore[arg-type]
    return dict(disk.after_loss(chance))  # type: ignore[arg-type]


WRITE = Deed("write", 0, at=1, data=b"new")


def test_only_what_was_synced_is_left() -> None:
    assert left(WRITE) == {"a.db": b"old"}
    assert left(WRITE, Deed("sync", 0)) == {"a.db": b"onew"}
    assert left(WRITE, Deed("sync", 0), Deed("cut", 0, at=1)) == {"a.db": b"onew"}
    assert left(Deed("cut", 0, at=1), Deed("sync", 0)) == {"a.db": b"o"}


def test_what_a_failed_sync_dropped_stays_lost() -> None:
    dropped = Deed("failed sync", 0)

    class Drops(Chance):
        def random(self) -> float:
            return 0.6

    disk = SimulatedDisk({"a.db": b"old"})
    for deed in (WRITE, dropped, Deed("sync", 0)):
        disk.take(deed, Drops())  # type: ignore[arg-type]
    assert disk.now() == {"a.db": b"old"}


def test_names_change_in_order_and_last_after_a_sync() -> None:
    made, renamed = Deed("create", 1, "b.db"), Deed("rename", 1, "b.db", data=b"a.db")
    assert left(made, renamed) == {"a.db": b"old"}
    assert left(made, Deed("write", 1, data=b"new"), Deed("sync", 1), renamed) == {
        "a.db": b"old",
        "b.db": b"new",
    }
    assert left(made, Deed("write", 1, data=b"new"), Deed("sync", 1), renamed, Deed("sync")) == {
        "a.db": b"new"
    }

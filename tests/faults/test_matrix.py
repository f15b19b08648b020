"""A short form of the fault matrix: some points of every fault. The long form is ``matrix.py``."""

from collections import Counter
from functools import cache

import pytest

from .matrix import Line, table, tried
from .striking import FAULTS, Fault, calls_of, missing

POINTS = 3
"""Of each fault: with the other half of the matrix on the other core, half a minute."""

needs_strace = pytest.mark.skipif(missing() is not None, reason=str(missing()))
SHORT = tuple(
    fault
    for fault in FAULTS
    if fault.call in ("pwrite64", "fdatasync") and fault.name != "EIO from fdatasync on"
)


@cache
def calls(call: str) -> int:
    return calls_of(call)


@pytest.mark.slow(but="ENOSPC at fdatasync")
@needs_strace
@pytest.mark.parametrize("fault", SHORT, ids=lambda fault: fault.name)
def test_after_a_fault_everything_acknowledged_is_there_exactly_once(fault: Fault) -> None:
    most = calls(fault.call)
    # The points are in the middle of each part: a session under load may make fewer calls than the one that was
    # counted, so its last calls may not be reached.
    line = tried(fault, every=most // POINTS, most=most, first=most // (2 * POINTS))
    assert line.points >= POINTS
    assert line.broken == ()


def test_the_table_counts_what_was_tried() -> None:
    fault = Fault("EIO at night", "pwrite64", "error=EIO")
    line = Line(fault, 3, Counter(unnoticed=1, refused=2), Counter(LogError=2), ("x", "y"))
    text = table([line], every=1)
    assert "| EIO at night | 3 | 0 | 1 | 2 | `LogError` 2 | 2 |" in text
    assert "| **all** | 3 |" in text

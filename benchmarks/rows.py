"""Rows of the table of ``side_by_side.py``: how a figure is measured, judged and shown.

Each ``rows_*.py`` has functions that return rows. A measurement alternates with its floor, so that the noise
of the machine meets both.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

Act = Callable[[], object]


class Cost(NamedTuple):
    """Medians of a measurement, in milliseconds."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.3g} ms, CPU {self.cpu:.3g}"


class Row(NamedTuple):
    """A row of the table."""

    what: str
    ours: str
    floor: str
    figure: float
    """The figure that is compared with the goal."""
    unit: str
    goal: float
    at_least: bool = False
    """True if the figure must reach the goal, False if it may not exceed it."""
    peers: str = ""

    @property
    def is_met(self) -> bool:
        """True if the goal is reached."""
        return self.figure >= self.goal if self.at_least else self.figure <= self.goal


def cost(act: Act) -> Cost:
    """Run something once and return its cost."""
    wall, cpu = time.perf_counter(), time.process_time()
    act()
    return Cost((time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3)


def medians(costs: Sequence[Cost]) -> Cost:
    """Return the medians of several costs."""
    return Cost(*(statistics.median(each) for each in zip(*costs, strict=True)))


def interleaved(*acts: Act, rounds: int) -> list[Cost]:
    """Run all in turn, ``rounds`` times, and return the medians of each."""
    found = [[cost(act) for act in acts] for _ in range(rounds)]
    return [medians(each) for each in zip(*found, strict=True)]


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

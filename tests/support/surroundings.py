"""What a conversation under test takes place in: time, identities, processes, and what requests carry."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from refold.domain.frames import SummaryPlace


class Tick:
    """A clock that moves a second at every look, and further on request."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


class Numbers:
    """Identities that count, so that a failing example is the same at every run."""

    def __init__(self) -> None:
        self.last = 0

    def __call__(self) -> str:
        self.last += 1
        return f"id-{self.last:05d}"


@dataclass
class Processes:
    """Who runs: one at a time; those before it are gone where that was said."""

    number: int = 1
    gone: set[str] = field(default_factory=set[str])

    @property
    def name(self) -> str:
        return f"process-{self.number}"

    def is_gone(self, name: str) -> bool:
        return name in self.gone

    def ends(self) -> None:
        """The process is gone, as are those before it, and another takes its place."""
        self.gone |= {f"process-{number}" for number in range(1, self.number + 1)}
        self.number += 1

    def vanishes(self) -> None:
        """Another process takes its place, and nobody knows what became of it."""
        self.number += 1


class Setting(NamedTuple):
    """What a conversation takes place in, besides window and policy."""

    system: str | None = None
    tools: tuple[dict[str, Any], ...] = ()
    model: str | None = None
    summariser_window: int | None = None
    """None: the summariser gets everything at once."""
    place: SummaryPlace = "user"
    """Where a summary stands: in the first user turn, or in the system text."""
    memories: int = 0
    """How many earlier messages are quoted in the system text."""


async def at_once(seconds: float) -> None:
    """Waits for nothing."""
    del seconds

"""What a salvage answers: the events that are in the new log, and those that are not."""

from pathlib import Path

from refold.domain.value import Value


class LostEvent(Value, frozen=True):
    """An event that could not be copied; its place is left, so that the others keep theirs."""

    thread_id: str
    """Empty where not even that is known."""
    version: int
    """0 where it is not about one event."""
    kind: str
    """The kind of damage, as ``verify`` names it."""
    detail: str
    position: int | None
    """Of the message, where it was one and that is known."""


class Salvaged(Value, frozen=True):
    """A new log that was made from a damaged one."""

    path: Path
    events: int
    """How many events were copied."""
    conversations: int
    lost: tuple[LostEvent, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing was lost."""
        return not self.lost

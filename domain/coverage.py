"""Coverage: exactly which messages of a conversation a summary stands for."""

from pydantic import Field

from .value import Value


class Coverage(Value, frozen=True):
    """Positions ``start`` up to but not including ``stop``, without ``exclusions``.

    Cumulative: a summary covers all that the summaries before it covered. ``exclusions`` are
    positions inside the range that stay in the context word for word.
    """

    start: int = Field(ge=0)
    stop: int = Field(ge=0)
    exclusions: tuple[int, ...] = ()
    count: int = Field(ge=1)
    """How many messages are covered, all generations together."""
    first_message_id: str
    last_message_id: str

    def covers(self, position: int) -> bool:
        """Whether the message at ``position`` is stood for."""
        return self.start <= position < self.stop and position not in self.exclusions

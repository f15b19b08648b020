"""What is kept beside the text of a summary."""

from .value import Value


class LeafSummary(Value, frozen=True):
    """A summary, made by code, of just those messages that a compaction covered first."""

    start: int
    stop: int
    text: str
    tokens: int


class OmittedMessage(Value, frozen=True):
    """A covered message that was too large to be summarised; it can be read back."""

    position: int
    tokens: int


class GivenInPart(Value, frozen=True):
    """A covered message of which the summariser was given a part only; all of it can be read back."""

    position: int
    given: int
    """Characters of it that the summariser was given."""
    characters: int
    """Characters that it has."""

"""What an erasure says of an event that it took content out of."""

from .value import Value


class Rewritten(Value, frozen=True):
    """An earlier event of this conversation whose content was removed in place; its place is left."""

    version: int
    remains: str
    """The SHA-256 of what is left of its payload."""

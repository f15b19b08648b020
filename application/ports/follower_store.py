"""The port of the tables that a follower's fold fills, with the place that it has reached."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol


class Reached(NamedTuple):
    """The place that a follower has reached."""

    version: int
    """Version of the fold that filled the tables."""
    position: int
    """Log position of the last folded event."""
    mark: str
    """Mark of the last folded event, which tells whether the log still has it."""
    origin: str
    """Mark of the first folded event, which tells logs apart."""
    read_from: int
    """Log position at which reading began. The tables have nothing that was erased before it."""


class FollowerTables(Protocol):
    """The tables within one transaction."""

    @property
    def handle(self) -> Any:
        """Object that a fold writes with."""
        ...

    @property
    def problem(self) -> str:
        """Why the store refused a statement of the fold, or an empty text."""
        ...

    def reached(self) -> Reached | None:
        """Return the place that was reached, or None before the first event."""
        ...

    def reach(self, place: Reached) -> None:
        """Store the place that was reached."""
        ...

    def clear(self) -> None:
        """Remove all tables that the fold created, and the place that was reached.

        Raises:
            InvalidSetting: the fold has tables of its own that refold cannot remove.
        """
        ...

    def check(self) -> None:
        """Check after each event that the transaction is still open.

        Raises:
            RefoldError: the fold ended it.
        """
        ...


class FollowerStore(Protocol):
    """Tables that a fold fills, in a file, on a server or where the fold keeps them."""

    @property
    def place(self) -> str:
        """Place of the tables for people, without a password."""
        ...

    def reached(self) -> Reached | None:
        """Return the place that was reached, or None before the first event. Nothing is created or locked.

        Raises:
            LogError: the tables cannot be read.
        """
        ...

    def transaction(self) -> AbstractContextManager[FollowerTables]:
        """Return a transaction that is committed completely or not at all. Other processes wait for it.

        Raises:
            LogError: the tables cannot be used; nothing was changed.
        """
        ...

    def forget(self) -> bool:
        """Remove what was deleted from the files as well. Return False if others who read prevent that for now."""
        ...

    def close(self) -> None:
        """Release connections; closing twice is safe."""
        ...


class UpdatedFollower(Protocol):
    """A follower that an erasure updates."""

    @property
    def name(self) -> str:
        """Name of the follower."""
        ...

    @property
    def place(self) -> str:
        """Place of its tables."""
        ...

    @property
    def has_remains(self) -> bool:
        """True if something that was removed from its tables may still be in their files."""
        ...

    def update(self) -> int:
        """Fold all new events, and return their number."""
        ...

    def close(self) -> None:
        """Stop, and release connections."""
        ...


FollowerParts = Callable[
    [str, int, Any, object], tuple[FollowerStore, Callable[[Any, Any], object]]
]
"""Function that returns the store and the fold of a follower: name, version, what folds, and the place."""

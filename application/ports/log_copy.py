"""The port of copying: one of the two logs of a copy, read or written row by row."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol


class RowPlace(NamedTuple):
    """The place of a row: its conversation and its version there."""

    thread_id: str
    version: int


class CopyRow(NamedTuple):
    """A stored event, in the form that does not depend on its store."""

    place: RowPlace
    position: int
    """Log position; 0 if it was not asked for."""
    name: str
    state: bytes
    """Stored bytes, neither compressed nor encrypted."""
    link: str
    key: str | None
    """Idempotency key of the message, or None."""
    is_erased: bool


class CopyHead(NamedTuple):
    """The newest event of a conversation."""

    version: int
    link: str


class CopyEnd(Protocol):
    """A log that is copied, or copied into. May raise ``LogError``."""

    @property
    def shown(self) -> str:
        """Place of the log for people, without a password."""
        ...

    def newest(self) -> int:
        """Return the log position of the newest event; 0 in an empty log."""
        ...

    def heads(self) -> Mapping[str, CopyHead]:
        """Map each conversation to its newest event."""
        ...

    def rows_after(self, position: int, limit: int) -> Sequence[CopyRow]:
        """Return the next rows in the order of the log, each checked against its digest.

        Raises:
            LogDamaged: an event was changed.
        """
        ...

    def find(self, places: Sequence[RowPlace]) -> Mapping[RowPlace, CopyRow]:
        """Return the existing rows at these places, each checked against its digest."""
        ...

    def write(self, new: Sequence[CopyRow], rewritten: Sequence[CopyRow]) -> None:
        """Store new rows in this order, and replace the bytes of erased ones, in one transaction.

        Raises:
            LogError: another writer appended to one of the conversations.
        """
        ...

    def finish(self) -> None:
        """Record outside the log what it has now, if the store has a place for that."""
        ...

    def has_pending_erasures(self) -> bool:
        """Return whether older bytes of erased content may still be in the files of the log."""
        ...

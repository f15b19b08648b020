"""Results of maintenance: sizes, backups, restores and salvages."""

from pathlib import Path
from typing import Literal, NamedTuple

from refold.domain.value import Value


class LostEvent(Value, frozen=True):
    """An event that could not be copied.

    A placeholder has its version, so that later events keep their versions.
    """

    thread_id: str
    """Thread id of the event, or empty if unknown."""
    version: int
    """Version of the event, or 0 if no single event is concerned."""
    kind: str
    """Kind of damage, as ``verify`` names it."""
    detail: str
    position: int | None
    """Position of the message, or None if it was not a message or is unknown."""


class Salvaged(Value, frozen=True):
    """A new log that was copied from a damaged one."""

    path: Path
    events: int
    """Number of copied events."""
    conversations: int
    lost: tuple[LostEvent, ...]

    @property
    def complete(self) -> bool:
        """True if nothing was lost."""
        return not self.lost


class Share(Value, frozen=True):
    """Share of one kind of event or frame in the stored data."""

    name: str
    count: int
    bytes: int


class ConversationSize(Value, frozen=True):
    """Stored size of one conversation."""

    thread_id: str
    messages: int
    events: int
    bytes: int
    """Bytes of its events as stored."""
    message_bytes: int
    """Bytes of its messages as JSON."""
    snapshots: int
    snapshot_bytes: int
    kinds: tuple[Share, ...]
    """Events by stored name, largest share first."""
    erased_events: int
    """Number of events that lost content by erasures."""

    @property
    def bytes_per_message(self) -> float:
        """Stored bytes divided by the number of messages."""
        return (self.bytes + self.snapshot_bytes) / max(1, self.messages)


class FileSize(Value, frozen=True):
    """One file of a memory, or one table of a log on a server."""

    name: str
    """One of ``log``, ``wal``, ``views``, ``views wal``, ``recall``, ``recall wal``, ``anchor`` and
    ``checked``; on a server the name of a table.
    """
    path: Path
    """Path of the file; on a server the name of the table with its schema."""
    bytes: int


class Sizes(Value, frozen=True):
    """Size of a log and of its parts."""

    conversations: tuple[ConversationSize, ...]
    """Sizes of conversations, largest first."""
    frames: tuple[Share, ...]
    """Events by storage: ``plain``, ``erased``, ``damaged``, or names of encodings such as
    ``zstd+aes`` and ``erased+aes``.
    """
    files: tuple[FileSize, ...]
    """Files of the log, empty for a log in memory; on a server its tables with their indexes."""

    @property
    def messages(self) -> int:
        """Number of messages in all conversations."""
        return sum(c.messages for c in self.conversations)

    @property
    def events(self) -> int:
        """Number of events in all conversations."""
        return sum(c.events for c in self.conversations)

    @property
    def kinds(self) -> tuple[Share, ...]:
        """Events of all conversations by stored name, largest share first."""
        return combine_shares([kind for one in self.conversations for kind in one.kinds])


class ErasedPlace(Value, frozen=True):
    """A place where bytes of erased content may be, and whether they are there."""

    place: str
    state: Literal["gone", "pending", "out of reach"]
    """``pending``: a later erasure or opening removes them. ``out of reach``: refold cannot remove them there."""
    detail: str
    """Sentence about the reason, and what to do."""


class BackedUp(Value, frozen=True):
    """A backup that was made and verified."""

    path: Path
    bytes: int
    events: int
    conversations: int


class Compressed(Value, frozen=True):
    """Result of compressing a log."""

    events: int
    """Number of events that take less space now."""
    bytes_before: int
    """Bytes of these events before compression."""
    bytes_after: int
    dictionary: int | None
    """Number of the compression dictionary, or None if there were too few events for one."""
    reusable_bytes: int
    """Bytes of whole free pages in the log file for future events; the file itself does not shrink."""


class ErasedAgain(Value, frozen=True):
    """An erasure missing from a backup that was applied to the restored log."""

    thread_id: str
    position: int | None
    """Position of the message, or None for the whole conversation."""


class Restored(Value, frozen=True):
    """A log that was restored from a backup."""

    path: Path
    events: int
    conversations: int
    moved_aside: Path | None
    """New path of the log that was replaced, or None."""
    erased_again: tuple[ErasedAgain, ...]
    unread: tuple[Path, ...]
    """Earlier logs with unreadable erasures; content that they erased may be present again."""


class Copied(Value, frozen=True):
    """A log that was copied into another one. Every event was compared afterwards."""

    source: str
    """Place of the source, without a password."""
    target: str
    conversations: int
    """Number of conversations in the source."""
    events: int
    """Number of events in the source. The target has all of them."""
    copied: int
    """Number of events that the target did not have before."""
    rewritten: int
    """Number of events that were erased in the target, because the source had erased them since the last copy."""
    same_positions: bool
    """True if each event has the same log position in both logs. Otherwise the target has other events as well,
    or the numbers of the source have gaps.
    """


class AnchorState(Value, frozen=True):
    """An anchor and what it covers."""

    path: Path | None
    """Path of the anchor, or None if none is stored."""
    conversations: int
    accepted: bool
    """True if the anchor was rewritten from the log."""


def combine_shares(shares: list[Share]) -> tuple[Share, ...]:
    """Combine shares of the same name, largest first."""
    names = dict.fromkeys(share.name for share in shares)
    sums = [
        Share(
            name=name,
            count=sum(s.count for s in shares if s.name == name),
            bytes=sum(s.bytes for s in shares if s.name == name),
        )
        for name in names
    ]
    return tuple(sorted(sums, key=lambda share: -share.bytes))


class RecordedErasure(NamedTuple):
    """An erasure as a log records it."""

    thread_id: str
    position: int | None
    """Position of the message, or None for the whole conversation."""
    identity: str
    """Id of the message, or log time of the conversation's first event."""
    reason: str


class KnownErasures(NamedTuple):
    """Erasures that a log records."""

    erasures: tuple[RecordedErasure, ...] = ()
    complete: bool = True
    """True if every event could be read."""

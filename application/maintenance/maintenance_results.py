"""What maintenance answers: how large a log is, what a backup, a restore and a salvage did."""

from pathlib import Path
from typing import NamedTuple

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


class Share(Value, frozen=True):
    """A share of what is stored: of one kind of event, or of one kind of frame."""

    name: str
    count: int
    bytes: int


class ConversationSize(Value, frozen=True):
    """What one conversation takes up."""

    thread_id: str
    messages: int
    events: int
    bytes: int
    """Of its events as stored."""
    message_bytes: int
    """Of its messages alone, as JSON."""
    snapshots: int
    snapshot_bytes: int
    kinds: tuple[Share, ...]
    """Its events by stored name, the largest share first."""
    erased_events: int
    """How many of them lost content by an erasure."""

    @property
    def bytes_per_message(self) -> float:
        """Everything that is stored of it, shared among its messages."""
        return (self.bytes + self.snapshot_bytes) / max(1, self.messages)


class FileSize(Value, frozen=True):
    """One file of a memory."""

    name: str
    """``log``, ``wal``, ``views``, ``views wal``, ``recall``, ``recall wal``, ``anchor`` or
    ``checked``."""
    path: Path
    bytes: int


class Sizes(Value, frozen=True):
    """How large a log is, and what of."""

    conversations: tuple[ConversationSize, ...]
    """The largest first."""
    frames: tuple[Share, ...]
    """Events by how they are stored: ``plain``, ``erased``, ``damaged``, or the names of encodings, as in
    ``zstd+aes`` and ``erased+aes``."""
    files: tuple[FileSize, ...]
    """None for a log in memory."""

    @property
    def messages(self) -> int:
        """Of all conversations."""
        return sum(c.messages for c in self.conversations)

    @property
    def events(self) -> int:
        """Of all conversations."""
        return sum(c.events for c in self.conversations)

    @property
    def kinds(self) -> tuple[Share, ...]:
        """The events of all conversations by stored name, the largest share first."""
        return added([kind for one in self.conversations for kind in one.kinds])


class BackedUp(Value, frozen=True):
    """A backup that was made and checked."""

    path: Path
    bytes: int
    events: int
    conversations: int


class Compressed(Value, frozen=True):
    """What compressing did."""

    events: int
    """How many events are stored in less now."""
    bytes_before: int
    """Of these events, as they were stored."""
    bytes_after: int
    dictionary: int | None
    """The number of the dictionary that they were compressed with; None: there were too few for one."""
    reusable_bytes: int
    """Whole pages of the log's file that are free for what is appended next: it stays as long as it is.
    More is free inside of its pages."""


class ErasedAgain(Value, frozen=True):
    """An erasure that a backup did not know of, applied to what was restored from it."""

    thread_id: str
    position: int | None
    """Of the message; None: the whole conversation."""


class Restored(Value, frozen=True):
    """A log that was put in place from a backup."""

    path: Path
    events: int
    conversations: int
    moved_aside: Path | None
    """Where the log that was there is now, with everything that it held."""
    erased_again: tuple[ErasedAgain, ...]
    unread: tuple[Path, ...]
    """Earlier logs of which not every erasure could be read: what they say was erased may be back."""


class AnchorState(Value, frozen=True):
    """An anchor, and what it knows."""

    path: Path | None
    """Where it was written; None where none is kept."""
    conversations: int
    accepted: bool
    """Whether it was made again from the log."""


def added(shares: list[Share]) -> tuple[Share, ...]:
    """Shares of the same name as one, the largest first."""
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
    """That something was erased, as a log records it."""

    thread_id: str
    position: int | None
    """Of the message; None: the whole conversation."""
    identity: str
    """What it is about: the message's id, or when the conversation's first event was logged."""
    reason: str


class KnownErasures(NamedTuple):
    """What a log records as erased."""

    erasures: tuple[RecordedErasure, ...] = ()
    complete: bool = True
    """Whether everything could be read."""

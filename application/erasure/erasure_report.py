"""Report of an erasure: what was removed, and where."""

from typing import Literal

from refold.application.maintenance.maintenance_results import ErasedPlace
from refold.domain.value import Value, replace

Place = Literal[
    "message",
    "summary",
    "leaf",
    "ledger",
    "index",
    "attempt",
    "pin",
    "proposal",
    "label",
    "focus",
    "topics",
    "notes",
    "notes files",
    "quoted memory",
    "recalled line",
    "system text",
    "event",
    "read models",
    "recall index",
    "vectors",
    "search backend",
    "tables of followers",
]
"""Place of removed content.

``attempt`` is the record of a compaction attempt without its summary. ``label`` and ``focus``
quoted the message, as did ``pin`` unless it pinned the message. ``proposal`` is an edit that a model
asked for. ``topics`` belong to a summary.
``notes`` were taken from messages before they left the context; ``notes files`` are in the
configured folder. ``quoted memory`` is a present or past quotation in the system text. ``system
text`` is a recorded system text or tool definition of the caller that quoted the message. ``event``
is any event of an erased conversation. The last five are derived from the log and rebuilt without
the content; ``vectors``, ``search backend`` and ``tables of followers`` are named if they may have it.
"""


class Removed(Value, frozen=True):
    """Content that was removed from one place."""

    thread_id: str
    place: Place
    version: int | None = None
    """Version of the event, or None for content outside the log."""
    count: int = 1
    """Number of lines or events."""


class RebuiltSummary(Value, frozen=True):
    """A summary that was rebuilt from the remaining messages without a model."""

    thread_id: str
    summary_id: str
    replaces: str
    tokens_before: int
    tokens_after: int


class ErasureReport(Value, frozen=True):
    """Content that an erasure removed, with its places."""

    thread_id: str
    positions: tuple[int, ...]
    """Positions of the messages that were erased now."""
    already_erased: tuple[int, ...]
    """Positions of requested messages that had been erased before."""
    copies: tuple[str, ...]
    """Other conversations that had the same messages through forks and lost them as well."""
    removed: tuple[Removed, ...]
    rebuilt: tuple[RebuiltSummary, ...]
    complete: bool
    """True if no file of the log contains any erased content.

    It is false while another process is reading; the next erasure, the next opening of the log or
    another ``erase`` then removes the rest. It is also false if there are ``damaged_copies`` or
    ``earlier_logs``.
    """
    damaged_copies: tuple[str, ...] = ()
    """Copies of damaged write-ahead logs that may contain erased content; delete them if nothing is missing."""
    earlier_logs: tuple[str, ...] = ()
    """Logs that a restore moved and that may contain erased content; erase there as well, or delete them."""
    places: tuple[ErasedPlace, ...] = ()
    """Places outside the log itself with their state. For a log on a server: its keys, its write-ahead log, and what
    refold cannot reach. For a log file, whose files ``complete`` tells about, only what failed and why.
    """
    notes_elsewhere: bool = False
    """True if notes were taken from the erased content and no notes folder is configured here.

    Files in a notes folder keep their text until a program with that folder opens the log.
    """
    conversation: bool = False
    """True if the whole conversation was erased."""
    owner: str | None = None
    """Owner whose messages were erased in all conversations, or None.

    ``removed`` then names each place, and ``thread_id`` is empty.
    """
    known: bool = True
    """False if no conversation or message has this owner, for instance because the id is misspelt."""

    def finished(self, places: tuple[ErasedPlace, ...]) -> "ErasureReport":
        """Return the report after later work on these places."""
        pending = any(place.state == "pending" for place in places)
        kept = self.damaged_copies or self.earlier_logs
        return replace(self, places=places, complete=not (pending or kept))

    @property
    def changed(self) -> bool:
        """True if anything was erased now."""
        return bool(self.removed)

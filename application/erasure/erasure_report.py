"""What an erasure removed and where, as it is reported (requirement F7)."""

from typing import Literal

from refold.domain.value import Value

Place = Literal[
    "message",
    "summary",
    "leaf",
    "ledger",
    "attempt",
    "pin",
    "label",
    "focus",
    "topics",
    "notes",
    "notes files",
    "quoted memory",
    "system text",
    "event",
    "read models",
    "recall index",
    "vectors",
    "search backend",
]
"""``attempt``: what was recorded of a compaction attempt besides its summary. ``label`` and ``focus``:
of the conversation and of a compaction, that quoted the message; ``pin``: of the message, or one that
quoted it. ``topics``: of a summary; ``notes``: that were taken of messages before they left the context;
``notes files``: what the folder that is configured says of them. ``quoted memory``: a quotation in the
system text, now or earlier; ``system text``: the caller's, or a tool's definition, that quoted the message,
as it was recorded. ``event``: of an erased conversation, whatever it was. The last four are
derived from the log, and made anew from what remains: ``vectors`` of texts, and what was handed to a
``search backend``, are named where there may be any."""


class Removed(Value, frozen=True):
    """Content that was removed from a place where it was."""

    thread_id: str
    place: Place
    version: int | None = None
    """Of the event; None for what is not in the log."""
    count: int = 1
    """How many lines or events."""


class RebuiltSummary(Value, frozen=True):
    """A summary that was made anew, by code, from what remains."""

    thread_id: str
    summary_id: str
    replaces: str
    tokens_before: int
    tokens_after: int


class ErasureReport(Value, frozen=True):
    """What an erasure removed, and where (requirement F7)."""

    thread_id: str
    positions: tuple[int, ...]
    """The messages that were erased now."""
    already_erased: tuple[int, ...]
    """Those that had been erased before: nothing of them was left."""
    copies: tuple[str, ...]
    """Other conversations that had the same messages, by fork, and have lost them as well."""
    removed: tuple[Removed, ...]
    rebuilt: tuple[RebuiltSummary, ...]
    complete: bool
    """Whether no file of the log holds any of it. False where another process was reading: then the
    rest is removed by the next erasure, or when the log is opened next, or by ``erase`` once more; and
    where there are ``damaged_copies`` or ``earlier_logs``."""
    damaged_copies: tuple[str, ...] = ()
    """Copies of write-ahead logs that were damaged, which may hold it: delete them when nothing is missed."""
    earlier_logs: tuple[str, ...] = ()
    """Logs that restorations moved aside, which may hold it: erase there as well, or delete them."""
    notes_elsewhere: bool = False
    """Whether something had been noted of it, and no notes folder is configured here: files in one keep
    it until a program that names the folder opens the log."""
    conversation: bool = False
    """Whether the whole conversation was erased."""
    owner: str | None = None
    """Whose messages were erased in all conversations, if it was about a person; ``removed`` names each
    place, and ``thread_id`` is empty."""
    known: bool = True
    """Whether the log knows the owner: False where no conversation and no message in it is of that owner,
    so that nothing was erased; the id may be mistyped."""

    @property
    def changed(self) -> bool:
        """Whether anything was erased now."""
        return bool(self.removed)

"""Errors of stores, summarisers, transcripts and addresses. ``domain.errors`` shows the whole tree."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from refold.domain.errors import RefoldError

if TYPE_CHECKING:
    from refold.application.ports.conversation_log import Damage


class SummariserError(RefoldError):
    """A summariser could not write a summary.

    ``reason`` is a short constant; the message has the details. ``attempts`` is the number of calls that
    were made. ``retry_after`` is the number of seconds to wait before the next call: infinity if a retry is
    useless, None if unknown.
    """

    def __init__(
        self, reason: str, message: str, *, attempts: int = 1, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.attempts = attempts
        self.retry_after = retry_after


class FoldError(RefoldError):
    """The function of a follower raised an error for an event; ``__cause__`` is that error.

    ``log_position`` is that of the event. ``folded`` is the number of events that were folded before it in the same
    transaction.
    """

    def __init__(self, message: str, *, log_position: int, folded: int) -> None:
        super().__init__(message)
        self.log_position = log_position
        self.folded = folded


class RaisedOutside(RefoldError):
    """User code raised an exception that would end a program or a task, such as ``SystemExit``."""

    def __init__(self, raised: BaseException) -> None:
        said = str(raised)
        super().__init__(f"{type(raised).__name__}: {said}" if said else type(raised).__name__)


def was_closed(what: object) -> "LogError":
    """Return the error for a log, or a part of one, that is used after it was closed."""
    return LogError(f"{what} was closed; open it again to go on")


def no_thread(error: RuntimeError) -> "LogError":
    """Return the error for work that has not begun, because Python could not start a thread."""
    if isinstance(error, RecursionError):
        return LogError(f"nothing was done, because too many calls are open ({error})")
    advice = "free memory or raise the limit of threads. A program that is ending can start none"
    return LogError(f"nothing was done, because no thread could start ({error}): {advice}")


class EmbedderError(RefoldError):
    """An embedder could not make vectors; ``reason`` is a short constant, the message has the details."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class BackendError(RefoldError):
    """A search program cannot answer.

    ``reason`` is a short constant: ``absent``, ``old``, ``timeout``, ``failed`` or ``bad_answer``.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class TokenCountError(RefoldError):
    """The endpoint returned no token count.

    ``status`` is the HTTP status, or None if there was no response.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(f"{message}. The local estimates of this counter can still be used.")
        self.status = status


class TranscriptError(RefoldError, ValueError):
    """A transcript file cannot be read: its format is unknown, it has no conversation, or it is not text."""


class InvalidAddress(RefoldError, ValueError):
    """The text is not the address of a message; the error message shows a valid address."""


class ForeignAddress(InvalidAddress):
    """The address belongs to another conversation, ``thread_id``."""

    def __init__(self, address: str, thread_id: str, asked: str) -> None:
        super().__init__(
            f"{address} is a message of conversation {thread_id!r}, not of {asked!r}: "
            f"use memory.conversation({thread_id!r}).read(…)"
        )
        self.address = address
        self.thread_id = thread_id
        self.asked = asked


class AmbiguousId(RefoldError, LookupError):
    """Several ids begin with the given text; ``candidates`` lists all of them."""

    def __init__(self, what: str, given: str, candidates: Sequence[str]) -> None:
        more = f" and {len(candidates) - 8:,} more" if candidates[8:] else ""
        super().__init__(
            f"{given[:200]!r} matches more than one {what}: {', '.join(candidates[:8])}{more}; "
            "give more characters of it"
        )
        self.given = given
        self.candidates = tuple(candidates)


class TargetExists(RefoldError):
    """The target path exists already; it was left unchanged."""

    def __init__(self, path: Path, problem: str = "") -> None:
        there = (
            "exists already; give another path, or allow replacing it "
            "(--force; in Python replace=True)"
        )
        super().__init__(f"{path} {problem or there}")
        self.path = path


class TurnTaken(RefoldError):
    """Another caller held the turn of a conversation until the time-out; nothing was done.

    ``waited`` is the number of seconds spent waiting.
    """

    def __init__(self, thread_id: str, waited: float, *, by_itself: bool = False) -> None:
        super().__init__(
            f"conversation {thread_id!r}: this task or thread has the turn already; leave it before "
            "entering it again"
            if by_itself
            else f"conversation {thread_id!r}: another request or process held the turn for "
            f"{waited:g} s; wait for its answer first, or wait longer (wait=…)"
        )
        self.thread_id = thread_id
        self.waited = waited


class LogError(RefoldError):
    """The log could not carry out an operation; no acknowledged event is lost."""


class LogNotFound(LogError):
    """There is no log at this path, and the caller did not ask to create one."""


class LogNotWritable(LogError):
    """The log cannot be written: missing permission, read-only disk or missing folder."""


class LogFull(LogError):
    """The disk is full; nothing of the failed write was stored."""


class LogBusy(LogError):
    """Another process held the lock of the log until the time-out."""


class NotARefoldLog(LogError):
    """The file exists but is not a refold log."""


class NewerLog(LogError):
    """A newer version of refold wrote the log."""


class LogGone(LogError):
    """The file of an open log was moved, deleted or replaced; later events are not stored."""


class OpenedBeforeFork(LogError):
    """The memory was opened before this process was forked, or its log was in use during the fork.

    ``refused`` is True if this process cannot open the log at all.
    """

    def __init__(self, what: object, *, refused: bool = False) -> None:
        super().__init__(
            f"{what} was in use when this process was forked: SQLite's locks are not reliable here. "
            "Start a new process without fork (subprocess, or multiprocessing with "
            "spawn), and call refold.open there"
            if refused
            else f"{what} was opened before this process was forked; call refold.open in this process"
        )
        self.refused = refused


class LogBehindAnchor(LogError):
    """The log lacks events that its anchor records: an older copy was restored, or events were cut off.

    ``stored`` is the version in the anchor, ``found`` the version in the log.
    """

    def __init__(
        self, message: str, *, thread_id: str = "", stored: int = 0, found: int = 0
    ) -> None:
        super().__init__(message)
        self.thread_id = thread_id
        self.stored = stored
        self.found = found


class OtherHistory(LogError):
    """The target of a copy has other events for a conversation of the source; nothing was overwritten."""

    def __init__(self, thread_id: str, version: int, problem: str) -> None:
        super().__init__(
            f"conversation {thread_id!r}, event {version}: {problem}. Nothing was overwritten. Copy into an "
            "empty log, or in the other direction"
        )
        self.thread_id = thread_id
        self.version = version


class BackupDamaged(LogError):
    """The log or backup is damaged; no file was written. ``damage`` has all findings."""

    def __init__(self, path: Path, damage: Sequence["Damage"]) -> None:
        first = damage[0]
        super().__init__(
            f"{path} is damaged in {len(damage):,} places, first in conversation "
            f"{first.thread_id!r}, event {first.version}: {first.detail}. Nothing was written or changed. "
            f"Run `refold verify --db {path}` to see all damage; use another backup if there is one."
        )
        self.path = path
        self.damage = tuple(damage)


class LogLocked(LogError):
    """The log is encrypted, and the key is missing or wrong."""


class ThreadExists(LogError, ValueError):
    """A conversation with this id exists already."""


class LogDamaged(LogError):
    """An event is missing, does not match its digest, or does not follow from the event before it."""

    def __init__(self, thread_id: str, version: int, problem: str, *, advice: str = "") -> None:
        place = f"conversation {thread_id!r}, event {version}: " if thread_id else ""
        usual = (
            "run `refold verify` to see all damage; restore a backup, or copy the intact events with "
            "`refold salvage NEW.db`"
        )
        advice = advice or usual
        super().__init__(f"{place}{problem}. Nothing was changed. {advice[0].upper()}{advice[1:]}.")
        self.thread_id = thread_id
        self.version = version
        self.problem = problem


class WriteAheadDamaged(LogDamaged):
    """The write-ahead log is damaged, and SQLite would drop everything after the damage.

    ``path`` is the path of the log. ``copy`` is the copy of its write-ahead log, or None if copying failed.
    """

    def __init__(self, path: Path, problem: str, copy: Path | None) -> None:
        kept = f"A copy is at {copy}" if copy else "No copy could be made: keep the file safe"
        LogError.__init__(
            self,
            f"{problem}. Nothing was opened or changed. {kept}. Copy the intact events with "
            f"`refold salvage NEW.db --db {path}`, then replace the log with "
            f"`refold restore NEW.db --db {path} --force`.",
        )
        self.thread_id = ""
        self.version = 0
        self.problem = problem
        self.path = path
        self.copy = copy

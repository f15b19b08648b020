"""Translate errors of PostgreSQL, and decide which calls may be repeated."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TypeVar

import psycopg
from eventsourcing import persistence
from psycopg_pool import PoolClosed, PoolTimeout
from tenacity import (
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_after_delay,
    wait_exponential,
    wait_random,
)

from refold.application.errors import (
    LogBusy,
    LogError,
    LogFull,
    LogGone,
    LogNotFound,
    LogNotWritable,
)
from refold.application.runtime.plain_lines import plain_logger
from refold.domain.lazy_pattern import lazy_pattern
from refold.infrastructure.projection_store.checkpoint import FoldOutdated
from refold.infrastructure.projection_store.row_checksums import FoldDamaged

TRIES = 6
"""Total number of attempts after a lost connection: a server that restarts needs some seconds."""
FIRST_WAIT, LONGEST_WAIT, PATIENCE = 0.05, 2.0, 20.0
"""Seconds before the second attempt, at most between two, and after which no attempt begins."""

# Codes and classes of SQLSTATE, from the appendix "PostgreSQL Error Codes".
_FULL = ("53100", "53200")
_BUSY = ("53300", "55P03", "40001", "40P01", "57014")
_GONE = ("57P01", "57P02", "57P03", "08", "57P05")
_NOT_WRITABLE = ("42501", "25006", "28")
_NOT_FOUND = ("3D000",)
_CONFLICT = ("23",)
_PASSING = ("08", "57P01", "57P02", "57P03", "57P05", "40001", "40P01")

# Errors of tables that are folded from the log.
_MISSING = ("42P01",)
_UNUSABLE = ("42501", "25006", "0A000", "28")
_DAMAGED = ("22", "23", "42", "XX001", "XX002", "21")
_CONNECTING = (
    (lazy_pattern(r'database ".*" does not exist'), "3D000"),
    (lazy_pattern(r'role ".*" does not exist|authentication failed|no password|pg_hba'), "28000"),
    (lazy_pattern(r"permission denied"), "42501"),
    (lazy_pattern(r"the database system is "), "57P03"),
    (lazy_pattern(r"too many (clients|connections)|connection slots"), "53300"),
    (lazy_pattern(r"server (doesn't|does not) support SSL"), "28000"),
)
"""Words of servers that refuse a connection. In other languages, the words are shown as they are."""

logger = plain_logger(__name__)
Answer = TypeVar("Answer")


def code_of(error: BaseException) -> str:
    """Return the SQLSTATE of an error, "08000" for a lost connection, or an empty text."""
    *_, error = _causes(error)
    if isinstance(error, PoolTimeout):
        return "53300"
    if isinstance(error, PoolClosed):
        return "CLOSED"
    if isinstance(error, psycopg.Error):
        if error.sqlstate:
            return error.sqlstate
        if isinstance(error, psycopg.OperationalError):
            return _code_of_words(str(error))
    return ""


def _code_of_words(text: str) -> str:
    """Return the SQLSTATE of an error that has none: the client library drops it while connecting."""
    return next((code for words, code in _CONNECTING if words.search(text)), "08000")


def is_passing(error: BaseException) -> bool:
    """Return whether the connection was lost or transactions collided, so that another attempt may succeed.

    Whoever could not connect has waited long enough already.
    """
    has_waited = any(isinstance(cause, PoolTimeout) for cause in _causes(error))
    return not has_waited and code_of(error).startswith(_PASSING)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause of that, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


@contextmanager
def as_library_errors() -> Generator[None]:
    """Convert errors of psycopg into those of the eventsourcing library, which callers know."""
    try:
        yield
    except psycopg.IntegrityError as error:
        raise persistence.IntegrityError("the place is taken") from error
    except (psycopg.OperationalError, PoolTimeout) as error:
        raise persistence.OperationalError(code_of(error)) from error
    except (psycopg.Error, PoolClosed) as error:
        raise persistence.ProgrammingError(code_of(error)) from error


@contextmanager
def as_log_errors(shown: str) -> Generator[None]:
    """Convert errors of the eventsourcing library into errors of the log. ``shown`` names the log for people."""
    try:
        yield
    except persistence.PersistenceError as error:
        raise log_error(shown, error) from error


class FoldMissing(FoldOutdated):
    """There are no tables of a fold, or a crash of the server has emptied them."""


class FoldUnusable(FoldDamaged):
    """The tables of a fold cannot be used by this process: a replica, a missing right, a newer version."""


@contextmanager
def as_fold_errors(shown: str) -> Generator[None]:
    """Convert errors of the tables of a fold: damage to ``FoldDamaged`` and its kinds, others to ``LogError``."""
    try:
        with as_library_errors():
            yield
    except persistence.PersistenceError as error:
        code = code_of(error)
        if code.startswith(_MISSING):
            raise FoldMissing("the tables are not there") from error
        if code.startswith(_UNUSABLE):
            raise FoldUnusable(f"SQLSTATE {code}{_words_of(error)}") from error
        if code.startswith(_DAMAGED):
            raise FoldDamaged(f"SQLSTATE {code}") from error
        raise log_error(shown, error) from error


def log_error(shown: str, error: Exception) -> LogError:
    """Return the error of the log for an error of the server. It never quotes stored content."""
    code = code_of(error)
    if code.startswith(_FULL):
        return LogFull(
            f"the server of {shown} has no space or memory left (SQLSTATE {code}); free some and try again, "
            "nothing is lost"
        )
    if code.startswith(_NOT_FOUND):
        return LogNotFound(f"{shown}: there is no such database; create it with createdb")
    if code.startswith(_NOT_WRITABLE):
        return LogNotWritable(
            f"{shown} refuses this role (SQLSTATE {code}{_words_of(error)}); check the role's rights, and that the "
            "server is the primary and not a replica"
        )
    if code.startswith(_BUSY):
        return LogBusy(
            f"{shown} is busy and stayed so (SQLSTATE {code}{_words_of(error)}); try again"
        )
    if code.startswith(_GONE):
        return LogGone(
            f"{shown} cannot be reached (SQLSTATE {code}{_words_of(error)}); start the server or check the address, "
            "then try again with the same key; what was acknowledged before is safe"
        )
    if code == "CLOSED":
        return LogError(f"{shown} was closed meanwhile; open it again to continue")
    if code.startswith(_CONFLICT):
        return LogError(f"{shown}: another writer was faster; try again")
    what = f"SQLSTATE {code}" if code else type(error).__name__
    return LogError(
        f"{shown} failed ({what}{_words_of(error)}); try again, or open it again; what was acknowledged "
        "before is safe"
    )


def _words_of(error: BaseException) -> str:
    """Return what the server or the client library says, or an empty text. The detail may quote content."""
    *_, error = _causes(error)
    if not isinstance(error, psycopg.Error):
        return ""
    text = " ".join((error.diag.message_primary or str(error)).split())
    return f": {text[:300]}" if text else ""


def retry(act: Callable[[], Answer]) -> Answer:
    """Return the result of ``act``; repeat it after a lost connection. ``act`` must be safe to repeat."""
    try:
        # Almost every call succeeds at once, so this path must be cheap.
        return act()
    except (persistence.PersistenceError, LogError) as error:
        if not is_passing(error):
            raise
        first: Exception | None = error

    def again() -> Answer:
        nonlocal first
        if first is not None:
            failed, first = first, None
            raise failed
        return act()

    return _RETRYING(again)


def wait_for_start(connect: Callable[[], Answer]) -> Answer:
    """Return the result of ``connect``; repeat it while the server says that it is starting or stopping."""
    return _RETRYING.copy(retry=retry_if_exception(_is_starting))(connect)


def _is_starting(error: BaseException) -> bool:
    return code_of(error).startswith("57P")


_RETRYING = Retrying(
    stop=stop_after_attempt(TRIES) | stop_after_delay(PATIENCE),
    wait=wait_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT) + wait_random(0, FIRST_WAIT),
    retry=retry_if_exception(is_passing),
    before_sleep=lambda state: logger.warning(
        "the server failed; trying again, %d of %d", state.attempt_number + 1, TRIES
    ),
    reraise=True,
)

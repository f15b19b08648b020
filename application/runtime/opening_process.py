"""The process that opened a memory, the time limits of its writes for a locked log, and the limits of its files."""

import errno
import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, NoReturn
from weakref import WeakSet

from refold.application.errors import LogError, OpenedBeforeFork

BRIEFLY = 1.0
"""Total seconds that a request which already fits waits for the log to store its decisions."""

LOCK_WAIT: ContextVar[float | None] = ContextVar("refold_lock_wait", default=None)
"""Maximum seconds that a write waits for the log, or None for the log's own limit."""


@contextmanager
def waiting_at_most(seconds: float | None) -> Generator[None]:
    """Limit the wait of writes within the context; None keeps the current limit."""
    if seconds is None:
        yield
        return
    token = LOCK_WAIT.set(seconds)
    try:
        yield
    finally:
        LOCK_WAIT.reset(token)


_forks = 0
"""Number of forks between this process and the original one."""


_kept: WeakSet[object] = WeakSet()
"""Objects that are never destroyed in a forked process."""


_holders: list[Callable[[object], object]] = []
"""The function that adds a reference to an object, once it was needed."""


def prevent_destruction(one: object, holders: list[Callable[[object], object]] = _holders) -> None:
    """Prevent the destruction of an object, even during interpreter shutdown."""
    if not holders:
        holders.append(_holder())
    holders[0](one)


def _holder() -> Callable[[object], object]:
    # Imported for forks only, because it takes longer than other modules.
    import ctypes

    add, held = ctypes.pythonapi.Py_IncRef, ctypes.py_object
    return lambda one: add(held(one))


def keep_in_child(one: object) -> None:
    """Prevent the destruction of an object in processes forked from this one.

    A destructor there could use files of this process, or wait for a lock of a thread that does not exist.
    """
    _kept.add(one)


def prepare_fork() -> None:
    """Import what a forked process needs. It would wait for an import that another thread of this one had begun.

    The gate of ``infrastructure/files/fork_gate.py`` calls this before each fork.
    """
    if not _holders:
        _holders.append(_holder())
    threads = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
    if len(threads) > 1:  # The child of a single thread finds nothing half done.
        with suppress(Exception):  # Another version of pydantic may refuse it.
            _set_constants()


def release_imports() -> None:
    """Release Python's lock of imports if this thread holds it. Call this before waiting for another thread.

    Python holds it for moments only. Ctrl-C at such a moment leaves it locked, and no other thread can import then.
    """
    import _imp

    with suppress(RuntimeError):  # Another thread holds it.
        while _imp.lock_held():
            _imp.release_lock()


@cache
def _set_constants() -> None:
    """Use pydantic in the ways in which refold uses it, so that its compiled code sets its constants.

    It sets each of them on first use, and gives other threads a turn meanwhile. In a process that is forked then, the
    constant is never set, and its first use never ends. This thread waits here for the thread that sets it.
    """
    from pydantic import BaseModel, Field

    class Part(BaseModel, frozen=True, extra="forbid"):
        kind: Literal["part"] = "part"
        text: str = Field(min_length=1, max_length=9)

    class Whole(BaseModel, frozen=True, arbitrary_types_allowed=True):
        parts: tuple[Part, ...]
        either: list[Part | int | str | None]
        time: datetime
        number: int = Field(default=0, ge=0)
        real: float = Field(default=0.5, gt=0, le=1)
        is_set: bool = False
        raw: bytes = b""
        file: Path = Path()
        names: frozenset[str] = frozenset()
        table: Mapping[str, Any] = Field(default_factory=dict[str, Any])
        pair: tuple[str, int] = ("", 0)
        other: OpeningProcess | None = None

    given = {
        "parts": [{"text": "a"}],
        "either": [{"text": "a"}, 1, "a", None],
        "time": datetime(2000, 1, 1, tzinfo=UTC),
    }
    whole = Whole.model_validate(given)
    Whole.model_validate_json(whole.model_dump_json(exclude_none=True))
    whole.model_dump(mode="json", exclude_defaults=True)
    with suppress(ValueError):
        Whole.model_validate({"parts": [{}], "number": -1, "time": "never"})


def _note_fork() -> None:
    global _forks
    _forks += 1
    for one in list(_kept):
        prevent_destruction(one)
    _kept.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


class Uncopied:
    """Base class of objects with open files, threads and locks. They belong to one process and cannot be copied."""

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied in depth. Python calls this for both.

        Raises:
            TypeError: always, as Python does for files and locks.
        """
        raise TypeError(
            "a memory has open files and locks, so it cannot be pickled or deep-copied, and neither can its "
            "conversations, tools, followers and adapters; pass the path and the id of the conversation, and "
            "call refold.open there"
        )


class OpeningProcess:
    """Identity of the process that created it, different in every fork of that process.

    It compares the process id, since a fork may bypass Python, and the number of forks, since ids are
    reused.
    """

    __slots__ = ("_forks", "_pid", "what")

    def __init__(self, what: str = "this memory") -> None:
        """``what``: name of the opened object for errors."""
        self.what = what
        self._pid = os.getpid()
        self._forks = _forks

    @property
    def is_this(self) -> bool:
        """True if it is the current process."""
        return os.getpid() == self._pid and self._forks == _forks

    def check_forks(self) -> None:
        """Raise if Python has forked this process since; ``check`` also finds other forks, with a system call.

        Raises:
            OpenedBeforeFork: this process was forked from it.
        """
        if self._forks != _forks:
            raise OpenedBeforeFork(self.what)

    def check(self) -> None:
        """Raise unless it is the current process.

        Raises:
            OpenedBeforeFork: this process was forked from it.
        """
        if os.getpid() != self._pid or self._forks != _forks:
            raise OpenedBeforeFork(self.what)


_LIMITS = (errno.EMFILE, errno.ENFILE)
_AT_ONCE = 4
"""Number of files that SQLite opens for one log: the log, its -wal, its -shm, and the folder."""
OPEN_FEWER = (
    "no more files may be opened: close some, or raise the limit (ulimit -n), then try again"
)
"""Advice for errors."""


def find_limit() -> OSError | None:
    """Return the error of opening a few more files, or None if that is possible.

    Libraries do not always say why they could not open a file.
    """
    opened: list[int] = []
    try:
        while len(opened) < _AT_ONCE:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return OSError(error.errno, error.strerror) if error.errno in _LIMITS else None
    finally:
        for number in opened:
            os.close(number)
    return None


def has_size_limit() -> bool:
    """Return whether the system limits the size of files that this process writes."""
    if sys.platform == "win32":
        return False
    import resource

    return resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY


def require_files() -> None:
    """Raise if no more files may be opened, before a library that opens some.

    Raises:
        LogError: too many files are open.
    """
    if (limit := find_limit()) is not None:
        refuse_limit(limit)


def refuse_limit(error: OSError) -> None:
    """Raise an error of the log if a file could not be opened because too many are open.

    Raises:
        LogError: the message names the file.
    """
    if error.errno in _LIMITS:
        name = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        raise LogError(
            f"{name}{error.strerror}; {OPEN_FEWER}; what was acknowledged before is safe"
        ) from error

"""Follow the log with a fold of one's own, which fills tables that can be rebuilt at any time."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from time import monotonic
from types import TracebackType
from typing import Any, Self

from refold.application.errors import FoldError, LogError, no_thread
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.ports.follower_store import FollowerStore, FollowerTables, Reached
from refold.application.runtime.core import Core
from refold.application.runtime.plain_lines import plain_logger, raised
from refold.domain.errors import InvalidSetting, RefoldError
from refold.domain.events import ConversationErased
from refold.domain.lazy_pattern import lazy_pattern

from .argument_checks import checked, invalid_argument
from .followed_events import Fold, FollowedEvent, ForeignProjection, Forget, erases, mark_of

AT_ONCE = 1_000
"""Number of events of a transaction. Their words are in memory at the same time."""
TRIES = 20
"""Times that a rebuild begins again because something was erased meanwhile."""
PAUSE_S = 60
"""Seconds between two attempts to remove rows that other readers may still see. Each attempt rewrites the tables."""
_NAME = lazy_pattern(r"[A-Za-z][A-Za-z0-9_-]{0,47}")

logger = plain_logger(__name__)


class _Outdated(Exception):
    """Something that was folded has been erased, so that the tables must be filled again."""


@checked
class Follower:
    """Tables that follow the log, filled by a fold of one's own.

    The tables and the position are stored in the same transaction, so each event counts exactly once, also after a
    crash and with several processes. All methods may be called from several threads.
    """

    def __init__(
        self,
        core: Core,
        name: str,
        version: int,
        fold: Fold,
        store: FollowerStore,
        forget: Forget | None,
    ) -> None:
        self._opened = core
        self._name = name
        self._version = version
        self._fold = fold
        self._store = store
        self._forget = forget
        self._lock = threading.RLock()
        self._seen: int | None = None
        """Newest log position that this object has folded, or None if unknown."""
        self._has_remains = False
        self._next_try = 0.0
        """Monotonic time from which an update tries again to remove what remains."""
        self._following: _Following | None = None
        core.followers.append(self)

    def __repr__(self) -> str:
        return f"<Follower {self.name} in {self._store.place}>"

    @property
    def _core(self) -> Core:
        self._opened.process.check()
        return self._opened

    @property
    def name(self) -> str:
        """Name of the follower."""
        return self._name

    @property
    def version(self) -> int:
        """Version of the fold."""
        return self._version

    @property
    def place(self) -> str:
        """Place of the tables, without a password."""
        return self._store.place

    @property
    def has_remains(self) -> bool:
        """True if something that was removed from the tables may still be in their files.

        It cannot be overwritten while other readers may still see it. Updates try again, at most once a minute.
        """
        return self._has_remains

    def position(self) -> int:
        """Return the log position of the last folded event, or 0 before the first.

        Raises:
            LogError: the tables cannot be read.
        """
        self._core  # noqa: B018
        reached = self._store.reached()
        return reached.position if reached and reached.version == self.version else 0

    def update(self) -> int:
        """Fold all new events, and return how many events were folded.

        The tables are filled again if the fold has another version or if something that they have was erased.
        With ``forget``, only the rows of that conversation are.

        Raises:
            FoldError: the fold raised an error. What was folded before that event is stored.
            InvalidSetting: the tables are those of another log, or a newer version of the fold filled them.
            LogError: the log or the tables cannot be used.
        """
        self._opened.process.check()
        with self._lock:
            if self._is_up_to_date():
                return 0
            folded = 0
            while True:
                try:
                    found = self._fold_batch(AT_ONCE)
                except _Outdated:
                    return folded + self.rebuild()
                self._overwrite_removed_rows()
                folded += found
                if not found:
                    return folded

    def rebuild(self) -> int:
        """Empty the tables and fold the whole log again, in one transaction. Return how many events were folded.

        Others read the earlier tables meanwhile. Only tables that the fold created are removed.

        Raises:
            FoldError: the fold raised an error. Nothing was changed.
            LogError: the log or the tables cannot be used. Nothing was changed.
        """
        self._opened.process.check()
        with self._lock:
            for _ in range(TRIES):
                try:
                    with self._store.transaction() as tables:
                        tables.clear()
                        read_from = self._core.log.newest()
                        events = self._core.log.scan()
                        count = self._fold_into(tables, None, events, read_from, may_forget=False)
                except _Outdated:
                    continue
                self._note_removed_rows()
                self._overwrite_removed_rows()
                return count
            raise LogError(
                f"{self._store.place}: something was erased during each of {TRIES} rebuilds; try again later"
            )

    def start(self, every: float = 1.0) -> Self:
        """Look for new events in a thread of its own, every so many seconds, until ``stop`` or the memory is closed.

        An error is logged once, and tried again.

        Raises:
            InvalidSetting: ``every`` is not a positive number.
            LogError: no thread can start.
        """
        self._opened.process.check()
        with self._lock:
            if self._following is None:
                following = _Following(self, every)
                try:
                    following.start()
                except RuntimeError as error:
                    raise no_thread(error) from error
                self._following = following
        return self

    def stop(self) -> None:
        """Stop looking for new events. An update that runs ends first."""
        if not self._opened.process.is_this:  # Neither the thread nor who holds the lock is here.
            return
        with self._lock:
            following, self._following = self._following, None
        if following is not None:
            following.end()

    def close(self) -> None:
        """Stop, and release connections. Closing the memory does this too.

        Later erasures do not update a closed follower.
        """
        self.stop()
        self._store.close()
        with suppress(ValueError):
            self._opened.followers.remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _note_removed_rows(self) -> None:
        self._has_remains, self._next_try = True, 0.0

    def _overwrite_removed_rows(self) -> None:
        if self._must_overwrite():
            self._next_try = monotonic() + PAUSE_S
            self._has_remains = not self._store.forget()

    def _must_overwrite(self) -> bool:
        return self._has_remains and monotonic() >= self._next_try

    def _is_up_to_date(self) -> bool:
        """Return whether this object has folded the newest event, and its tables are still there."""
        if self._must_overwrite():
            return False
        if self._seen is None or self._seen != self._core.log.newest():
            return False
        reached = self._store.reached()
        return reached is not None and reached[:2] == (self.version, self._seen)

    def _fold_batch(self, most: int) -> int:
        """Fold up to ``most`` new events in one transaction, and return their number."""
        try:
            with self._store.transaction() as tables:
                reached = self._check(tables.reached())
                read_from = reached.read_from if reached else self._core.log.newest()
                after = reached.position if reached else 0
                events = islice(self._core.log.scan(after), most)
                return self._fold_into(tables, reached, events, read_from, may_forget=True)
        except FoldError as error:
            if error.folded and most > 1:  # Store what was folded before the error.
                self._fold_batch(error.folded)
            raise

    def _fold_into(
        self,
        tables: FollowerTables,
        reached: Reached | None,
        events: Iterator[LoggedEvent],
        read_from: int,
        *,
        may_forget: bool,
    ) -> int:
        count, last = 0, None
        origin = reached.origin if reached else ""
        for last in events:
            if last.number > read_from and erases(last):
                if self._forget is None or not may_forget:
                    raise _Outdated
                self._note_removed_rows()
                self._fold_again(tables, last, count)
            self._fold_one(tables, last, count)
            origin = origin or mark_of(last)
            count += 1
        if last is not None:
            place = Reached(self.version, last.number, mark_of(last), origin, read_from)
            tables.reach(place)
            self._seen = last.number
        elif reached is not None:
            self._seen = reached.position
        return count

    def _check(self, reached: Reached | None) -> Reached | None:
        """Return the place to go on from.

        Raises:
            _Outdated: the tables are of an earlier version, or the log lacks what they have.
            InvalidSetting: the tables are those of another log or of a newer version.
        """
        if reached is None:
            return None
        if reached.version > self.version:
            raise InvalidSetting(
                f"version: version {reached.version} of {self.name!r} has filled {self._store.place}, and this "
                f"program has version {self.version}; use the newer program, or call rebuild()",
                setting="version",
                value=self.version,
            )
        if reached.version < self.version:
            raise _Outdated
        if not reached.mark:
            return reached  # A projection keeps the position alone.
        last = next(iter(self._core.log.scan(reached.position - 1)), None)
        if last is not None and last.number == reached.position and mark_of(last) == reached.mark:
            return reached
        first = next(iter(self._core.log.scan()), None)
        if first is None or mark_of(first) != reached.origin:
            raise InvalidSetting(
                f"into: {self._store.place} has the tables of {self.name!r} for another log; give another "
                "place or name, or call rebuild() to fill them from this log",
                setting="into",
            )
        logger.warning(
            "%s: the log is an earlier one; its tables are filled again", self._store.place
        )
        raise _Outdated

    def _fold_again(self, tables: FollowerTables, erasure: LoggedEvent, count: int) -> None:
        """Remove the rows of a conversation, and fold what is left of it."""
        thread_id = erasure.thread_id
        self._call(self._forget, tables, thread_id, erasure, count)
        if isinstance(erasure.event, ConversationErased):
            return
        for page in self._core.log.pages(thread_id, 1, erasure.version - 1):
            for logged in page:
                # A later conversation of the same id comes after its erasure.
                if logged.number < erasure.number:
                    self._fold_one(tables, logged, count)

    def _fold_one(self, tables: FollowerTables, logged: LoggedEvent, count: int) -> None:
        event = FollowedEvent(logged.number, logged.thread_id, logged.version, logged.at, logged)
        self._call(self._fold, tables, event, logged, count)

    def _call(
        self, act: Any, tables: FollowerTables, given: object, logged: LoggedEvent, count: int
    ) -> None:
        try:
            act(tables.handle, given)
            tables.check()
        except Exception as error:
            place = f"event {logged.number} (version {logged.version} of {logged.thread_id!r})"
            why = tables.problem or f"{type(error).__name__}: {error}"
            raise FoldError(
                f"{self.name}: folding {place} failed: {why}",
                log_position=logged.number,
                folded=count,
            ) from error


class _Following:
    """A thread that updates a follower."""

    def __init__(self, follower: Follower, every: float) -> None:
        self._follower = follower
        self._every = every
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"refold-{follower.name}", daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def end(self) -> None:
        """Wait until the thread has ended."""
        self._ended.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        known = ""
        while True:
            try:
                self._follower.update()
                known = ""
            except (RefoldError, OSError) as error:
                place = getattr(error, "log_position", "")
                # The text of the error may quote a message.
                cause = type(error.__cause__ or error).__name__
                failed = f"{cause} at event {place}" if place else raised(error)
                if failed != known:
                    known = failed
                    logger.warning("follower %s: not updated (%s)", self._follower.name, failed)
            if self._ended.wait(self._every):
                return


def follow(
    core: Core,
    name: object,
    fold: Fold | ForeignProjection,
    into: object,
    version: object,
    forget: Forget | None,
) -> Follower:
    """Return a follower of the log.

    Raises:
        InvalidSetting: an argument is invalid.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        wanted = 'letters, digits, "_" and "-" after a letter, 48 at most, such as "tool-failures"'
        raise invalid_argument("name", name, wanted)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise invalid_argument("version", version, "a whole number from 1")
    if not callable(fold) and not hasattr(fold, "process_event"):
        raise invalid_argument("fold", fold, "a function or a projection of eventsourcing")
    for argument, given in (("fold", fold), ("forget", forget)):
        if inspect.iscoroutinefunction(given):
            raise invalid_argument(argument, given, "a function that is no coroutine")
    if forget is not None and not callable(forget):
        raise invalid_argument("forget", forget, "a function")
    store, function = core.follower_parts(name, version, fold, into)
    return Follower(core, name, version, function, store, forget)

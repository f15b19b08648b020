"""Turns of a conversation: one caller at a time works on it."""

import threading
import time
from collections import deque
from types import TracebackType
from typing import Protocol, Self

from refold.application.errors import TurnTaken
from refold.domain.errors import InvalidSetting

USUAL_WAIT = 60.0
"""Default seconds to wait; a turn includes model calls."""
FIRST_PAUSE, LONGEST_PAUSE = 0.002, 0.05
"""Shortest and longest seconds between two checks for the turn."""


class Place(Protocol):
    """A place in the queue for the turn of one conversation."""

    def take(self) -> bool:
        """Advance in the queue and return whether the turn is ours. Never waits."""
        ...

    def leave(self) -> None:
        """Give up the place or the turn; leaving twice is safe."""
        ...


class Turns(Protocol):
    """The queues for the turns of all conversations of a log."""

    def place(self, thread_id: str) -> Place:
        """Return a new place that is not yet in the queue.

        Raises:
            LogError: the queue cannot be created because the folder of the log is not writable.
        """
        ...


class TurnsInMemory:
    """Queues within this process, for a log that no other process uses."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: dict[str, deque[object]] = {}

    def place(self, thread_id: str) -> "PlaceInMemory":
        """Return a new place that is not yet in the queue."""
        return PlaceInMemory(self._lock, self._lines, thread_id)


class PlaceInMemory:
    """A place in a queue of this process."""

    def __init__(
        self, lock: threading.Lock, lines: dict[str, deque[object]], thread_id: str
    ) -> None:
        self._lock = lock
        self._lines = lines
        self._thread_id = thread_id

    def take(self) -> bool:
        """Advance in the queue and return whether the turn is ours. Never waits."""
        with self._lock:
            line = self._lines.setdefault(self._thread_id, deque())
            if self not in line:
                line.append(self)
            return line[0] is self

    def leave(self) -> None:
        """Give up the place or the turn; leaving twice is safe."""
        with self._lock:
            line = self._lines.get(self._thread_id, deque())
            if self in line:
                line.remove(self)
            if not line:
                self._lines.pop(self._thread_id, None)


class _Turn:
    """Shared implementation of both kinds of turns."""

    _holders: dict[tuple[int, str], object] = {}  # noqa: RUF012 (of all turns of this process)

    def __init__(self, turns: Turns, thread_id: str, wait: object) -> None:
        if isinstance(wait, bool) or not isinstance(wait, int | float) or not wait >= 0:
            raise InvalidSetting(
                f"wait is {wait!r}: it must be a number of seconds, 0 or more",
                setting="wait",
                value=wait,
            )
        self._turns = turns
        self._wait = float(wait)
        self._place: Place | None = None
        self.thread_id = thread_id

    def _begin(self) -> Place:
        """Return a place in the queue.

        Raises:
            TurnTaken: the caller already has the turn.
        """
        if self._place is not None or self._holders.get(self._key) == _caller():
            raise TurnTaken(self.thread_id, 0.0, by_itself=True)
        return self._turns.place(self.thread_id)

    def _enter(self, place: Place) -> None:
        self._place, self._holders[self._key] = place, _caller()

    def _leave(self) -> None:
        place, self._place = self._place, None
        if place is not None:
            self._holders.pop(self._key, None)
            place.leave()

    @property
    def _key(self) -> tuple[int, str]:
        return id(self._turns), self.thread_id

    def _pauses(self) -> "_Pauses":
        return _Pauses(self.thread_id, self._wait)


class ConversationTurn(_Turn):
    """The turn of a conversation, as a context manager: ``with conversation.turn():``.

    Other callers wait in a queue, in this and in other processes of the machine. The system ends the turn
    of a process that dies. Readers never wait.
    """

    def __enter__(self) -> Self:
        place, pauses = self._begin(), self._pauses()
        try:
            while not place.take():
                time.sleep(pauses.next())
        except BaseException:
            place.leave()
            raise
        self._enter(place)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()


class AsyncConversationTurn(_Turn):
    """``ConversationTurn`` for asyncio: ``async with conversation.turn():``.

    The event loop stays free while it waits.
    """

    async def __aenter__(self) -> Self:
        import asyncio

        from refold.application.api.blocking import run_to_end

        place, pauses = self._begin(), self._pauses()
        try:
            while not await run_to_end(place.take):
                await asyncio.sleep(pauses.next())
        except BaseException:
            place.leave()
            raise
        self._enter(place)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()


class _Pauses:
    """The pauses between two checks until the time is up."""

    def __init__(self, thread_id: str, wait: float) -> None:
        self._thread_id = thread_id
        self._wait = wait
        self._until = time.monotonic() + wait
        self._pause = FIRST_PAUSE

    def next(self) -> float:
        """Return the seconds until the next check.

        Raises:
            TurnTaken: the time is up.
        """
        left = self._until - time.monotonic()
        if left <= 0:
            raise TurnTaken(self._thread_id, self._wait)
        pause = min(self._pause, left)
        self._pause = min(self._pause * 1.5, LONGEST_PAUSE)
        return pause


def _caller() -> object:
    """Return the caller: the current task, or else the current thread."""
    import asyncio

    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return task or threading.current_thread()

"""A turn of a conversation: whoever has it is the only one who works on the conversation."""

import asyncio
import threading
import time
from collections import deque
from types import TracebackType
from typing import Protocol, Self

from refold.application.api.blocking import to_the_end
from refold.application.errors import TurnTaken
from refold.domain.errors import InvalidSetting

USUAL_WAIT = 60.0
"""Seconds; a turn has calls of a model in it."""
FIRST_PAUSE, LONGEST_PAUSE = 0.002, 0.05
"""Seconds between two looks whether it is our turn."""


class Place(Protocol):
    """A place in the line of those who want the turn of one conversation."""

    def take(self) -> bool:
        """Move up as far as the line has moved; whether the turn is ours. Never waits."""
        ...

    def leave(self) -> None:
        """Give the place up, or the turn; leaving twice is fine."""
        ...


class Turns(Protocol):
    """The lines in front of the turns of all conversations of a log."""

    def place(self, thread_id: str) -> Place:
        """A new place, not in the line yet.

        Raises:
            LogError: there can be no line, since the place of the log cannot be written.
        """
        ...


class TurnsInMemory:
    """Lines of this process, for a log that no other process has."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: dict[str, deque[object]] = {}

    def place(self, thread_id: str) -> "PlaceInMemory":
        """See ``Turns``."""
        return PlaceInMemory(self._lock, self._lines, thread_id)


class PlaceInMemory:
    """A place in a line of this process."""

    def __init__(
        self, lock: threading.Lock, lines: dict[str, deque[object]], thread_id: str
    ) -> None:
        self._lock = lock
        self._lines = lines
        self._thread_id = thread_id

    def take(self) -> bool:
        """See ``Place``."""
        with self._lock:
            line = self._lines.setdefault(self._thread_id, deque())
            if self not in line:
                line.append(self)
            return line[0] is self

    def leave(self) -> None:
        """See ``Place``."""
        with self._lock:
            line = self._lines.get(self._thread_id, deque())
            if self in line:
                line.remove(self)
            if not line:
                self._lines.pop(self._thread_id, None)


class _Turn:
    """What both kinds of turns share."""

    _holders: dict[tuple[int, str], object] = {}  # noqa: RUF012 (of all turns of this process)

    def __init__(self, turns: Turns, thread_id: str, wait: object) -> None:
        if isinstance(wait, bool) or not isinstance(wait, int | float) or not wait >= 0:
            raise InvalidSetting(
                f"wait is {wait!r}: it is a number of seconds, 0 or more",
                setting="wait",
                value=wait,
            )
        self._turns = turns
        self._wait = float(wait)
        self._place: Place | None = None
        self.thread_id = thread_id

    def _begun(self) -> Place:
        """A place in the line.

        Raises:
            TurnTaken: whoever asks has the turn.
        """
        if self._place is not None or self._holders.get(self._key) == _who():
            raise TurnTaken(self.thread_id, 0.0, by_itself=True)
        return self._turns.place(self.thread_id)

    def _entered(self, place: Place) -> None:
        self._place, self._holders[self._key] = place, _who()

    def _left(self) -> None:
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
    """A turn of a conversation, as a context manager: ``with conversation.turn():``.

    Those who come later wait in the line, in this and in other processes of the machine. The system ends
    the turn of a process that dies. Whoever only reads never waits.
    """

    def __enter__(self) -> Self:
        place, pauses = self._begun(), self._pauses()
        try:
            while not place.take():
                time.sleep(pauses.next())
        except BaseException:
            place.leave()
            raise
        self._entered(place)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._left()


class AsyncConversationTurn(_Turn):
    """``ConversationTurn`` for asyncio: ``async with conversation.turn():``. The loop goes on while it waits."""

    async def __aenter__(self) -> Self:
        place, pauses = self._begun(), self._pauses()
        try:
            while not await to_the_end(place.take):
                await asyncio.sleep(pauses.next())
        except BaseException:
            place.leave()
            raise
        self._entered(place)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._left()


class _Pauses:
    """How long to wait between two looks, until the time is up."""

    def __init__(self, thread_id: str, wait: float) -> None:
        self._thread_id = thread_id
        self._wait = wait
        self._until = time.monotonic() + wait
        self._pause = FIRST_PAUSE

    def next(self) -> float:
        """Return the seconds to wait for the next look.

        Raises:
            TurnTaken: the time is up.
        """
        left = self._until - time.monotonic()
        if left <= 0:
            raise TurnTaken(self._thread_id, self._wait)
        pause = min(self._pause, left)
        self._pause = min(self._pause * 1.5, LONGEST_PAUSE)
        return pause


def _who() -> object:
    """Who asks: a task, or else a thread."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return task or threading.current_thread()

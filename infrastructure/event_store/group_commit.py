"""Commits that the threads of a process share: one sync of the disk stores what all of them wait to append."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from refold.application.errors import LogBusy
from refold.application.runtime.foreign_code import CURRENT, Withdrawal, Withdrawn
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.files.lock import WriteLock

logger = plain_logger(__name__)

MOST = 64
"""Maximum number of appends in one commit."""
LOOK = 0.001
"""Seconds between two looks whether a commit of another thread has ended."""

Ready = TypeVar("Ready")
Ready_contra = TypeVar("Ready_contra", contravariant=True)
Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)


class Alone(Protocol[Ready_contra, Answer_co]):
    """Stores an append in a commit of its own. The lock of the writers is held."""

    def __call__(self, ready: Ready_contra | None, *, is_doubtful: bool = False) -> Answer_co:
        """Store it. ``ready`` is None if it must be decided again; ``is_doubtful``: it may be stored already."""
        ...


class _Append(Generic[Ready]):
    """An append that waits for the lock."""

    __slots__ = ("has_ended", "is_doubtful", "is_stored", "is_taken", "ready", "withdrawal")

    def __init__(self, ready: Ready) -> None:
        self.ready = ready
        self.withdrawal: Withdrawal | None = CURRENT.get()
        self.is_taken = self.has_ended = self.is_stored = self.is_doubtful = False

    def begin(self) -> bool:
        """Begin to write. Return whether the caller still wants it."""
        try:
            if self.withdrawal is not None:
                self.withdrawal.write()
        except Withdrawn:
            return False
        return True


class GroupCommit(Generic[Ready, Answer]):
    """Stores the appends of several threads in one commit.

    A thread puts its append into a queue and waits for the lock of the writers. The first one that gets the lock
    stores all that wait; the others find theirs stored. An append that cannot be stored with the others, or
    may not be, is stored alone, so that each thread gets its own error.
    """

    def __init__(
        self,
        lock: WriteLock,
        store_all: Callable[[Sequence[Ready]], Sequence[bool]],
        answer: Callable[[Ready], Answer],
    ) -> None:
        """Create a group.

        ``store_all`` stores several appends in one commit and returns which were stored. ``answer`` gives the
        result of a stored one.
        """
        self._lock = lock
        self._store_all = store_all
        self._answer = answer
        self._queue: deque[_Append[Ready]] = deque()
        self._changing = threading.Lock()

    def store(self, ready: Ready, alone: Alone[Ready, Answer]) -> Answer:
        """Store an append, together with those of other threads that wait.

        Raises:
            LogError: it is not stored.
        """
        own = _Append(ready)
        with self._changing:
            self._queue.append(own)
        try:
            with self._lock.held(lambda: own.has_ended) as leads:
                if leads and not self._lead(own):
                    return alone(ready)
        except (LogBusy, Withdrawn):
            # Another thread may have begun to store it meanwhile.
            if self._leave(own):
                raise
        except BaseException:
            self._leave(own)
            raise
        if own.is_stored:
            return self._answer(ready)
        with self._lock.held():
            return alone(ready if own.is_doubtful else None, is_doubtful=own.is_doubtful)

    def _lead(self, own: _Append[Ready]) -> bool:
        """Store ``own`` with others that wait. Return False, and store nothing, if there are none."""
        together = [own]
        try:
            self._take(own, together)
            if len(together) == 1:
                return False
            self._store(together)
        except Exception as error:
            # Each thread now stores its own append, and gets its own error.
            logger.info("%d appends could not be stored together: %s", len(together), error)
        finally:
            for one in together:
                one.has_ended = True
        return True

    def _store(self, together: Sequence[_Append[Ready]]) -> None:
        for one in together:
            one.is_doubtful = True
        stored = self._store_all([one.ready for one in together])
        for one, is_stored in zip(together, stored, strict=True):
            one.is_stored, one.is_doubtful = is_stored, False

    def _take(self, own: _Append[Ready], together: list[_Append[Ready]]) -> None:
        """Move the appends of the next commit out of the queue, in the order of their arrival."""
        with self._changing:
            self._discard(own)
            while self._queue and len(together) < MOST:
                one = self._queue.popleft()
                if one.begin():
                    together.append(one)
                    one.is_taken = True

    def _leave(self, own: _Append[Ready]) -> bool:
        """Leave the queue, or wait for the thread that stores it already. Return whether it left."""
        with self._changing:
            if not own.is_taken:
                self._discard(own)
                return True
        while not own.has_ended:
            time.sleep(LOOK)
        return False

    def _discard(self, own: _Append[Ready]) -> None:
        if own in self._queue:
            self._queue.remove(own)

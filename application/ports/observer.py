"""The port of observers, which are notified of compactions and requests."""

from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from refold.application.api.results import CompactionResult
from refold.domain.events import Trigger


class Observer(Protocol):
    """An observer of the memory's events. Its exceptions are logged and not raised further."""

    def compaction_ended(self, result: CompactionResult) -> None:
        """Observe a compaction that was performed, failed, reverted, or avoided by the ladder."""
        ...

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        """Observe a new context. Its first ``tokens_repeated`` tokens equal the previous request."""
        ...


@runtime_checkable
class FollowingObserver(Protocol):
    """An observer that also follows a compaction while it runs."""

    def compacting(self, thread_id: str, trigger: Trigger) -> AbstractContextManager[object]:
        """Return a context manager that surrounds one compaction.

        It is entered before the compaction is planned and left after its end; ``compaction_ended`` is
        called within it.
        """
        ...


@runtime_checkable
class ProgressObserver(Protocol):
    """An observer that receives the progress of a summary that takes several calls."""

    def chunk_summarised(self, thread_id: str, done: int, chunks: int) -> None:
        """Observe that ``done`` of ``chunks`` chunks of a summary, or of a part of it, are summarised."""
        ...


@runtime_checkable
class FinishingObserver(Protocol):
    """An observer that may still have work running when the memory closes."""

    async def finish(self) -> None:
        """Wait for the running work; the observer chooses its own time limit."""
        ...

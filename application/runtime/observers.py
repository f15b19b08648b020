"""Notification of observers; their exceptions are logged and not raised further."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING

from refold.domain.events import Trigger

from .core import Core, Extras
from .foreign_code import Contained
from .plain_lines import plain_logger, raised

if TYPE_CHECKING:
    from refold.application.api.results import CompactionResult, Context
    from refold.application.conversation.loaded import LoadedConversation

logger = plain_logger(__name__)


def notify_compaction(core: Core, result: CompactionResult) -> None:
    """Notify every observer of a compaction, a revert, or a ladder that needed no summary."""
    for observer in core.observers:
        with _log_errors():
            observer.compaction_ended(result)


def notify_request(
    core: Core, loaded: LoadedConversation, context: Context, extras: Extras
) -> None:
    """Notify every observer of a request, and of the prefix that it shares with the previous one."""
    if not core.observers:
        return
    repeated = core.last_requests.repeated(loaded, context, extras.system)
    for observer in core.observers:
        with _log_errors():
            observer.request_made(context.thread_id, context.tokens, repeated)


def notify_chunk(core: Core, thread_id: str, done: int, chunks: int) -> None:
    """Notify progress observers of the finished chunks of a summary."""
    from refold.application.ports.observer import ProgressObserver

    for observer in core.observers:
        if isinstance(observer, ProgressObserver):
            with _log_errors():
                observer.chunk_summarised(thread_id, done, chunks)


@contextmanager
def follow_compaction(core: Core, thread_id: str, trigger: Trigger) -> Generator[None]:
    """Enter the contexts of observers that follow compactions, for the duration of one."""
    from refold.application.ports.observer import FollowingObserver

    with ExitStack() as stack:
        for observer in core.observers:
            if isinstance(observer, FollowingObserver):
                with _log_errors():
                    following = observer.compacting(thread_id, trigger)
                    following.__enter__()
                    stack.callback(_exit, following)
        yield


class CompactionNotifier:
    """A notifier for the compactions of one request, one after the other.

    Observers get the same results as the caller. The last compaction counts as running until its final
    figures are known.
    """

    def __init__(self, core: Core, thread_id: str, trigger: Trigger) -> None:
        self._core = core
        self._thread_id = thread_id
        self._trigger: Trigger = trigger
        self._stack = ExitStack()
        self._ended: CompactionResult | None = None
        self._reported: set[str] = set()
        """Attempts whose end has been reported."""

    def __enter__(self) -> CompactionNotifier:
        return self

    def __exit__(self, *raised: object) -> None:
        self._report()

    def begin(self) -> None:
        """Begin a compaction, and report the one before it."""
        self._report()
        self._stack.enter_context(follow_compaction(self._core, self._thread_id, self._trigger))

    def ended(self, result: CompactionResult) -> None:
        """Record the result of the current compaction."""
        self._ended = result

    def finish(self, result: CompactionResult | None) -> None:
        """Report the last compaction with its final figures, or nothing if ``result`` is None."""
        self._ended = result
        self._report()

    def _report(self) -> None:
        ended, self._ended = self._ended, None
        # "Nothing to do" is reported only to callers that asked for a compaction.
        is_news = self._trigger == "manual" or (ended and ended.outcome != "nothing_to_do")
        if ended is not None and is_news and ended.attempt_id not in self._reported:
            notify_compaction(self._core, ended)
            self._reported |= {ended.attempt_id} if ended.attempt_id else set()
        self._stack.close()


async def finish_observers(core: Core) -> None:
    """Wait for running work of observers before the memory closes."""
    for observer in core.observers:
        with _log_errors():
            from refold.application.ports.observer import FinishingObserver

            if isinstance(observer, FinishingObserver):
                await observer.finish()


def _exit(following: AbstractContextManager[object]) -> None:
    with _log_errors():
        following.__exit__(None, None, None)


@contextmanager
def _log_errors() -> Generator[None]:
    try:
        with Contained():
            yield
    except Exception as error:  # A user's observer may raise anything.
        logger.warning("an observer failed: %s", raised(error))

"""Telling observers what happened: what they raise is logged and goes no further."""

from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from refold.application.api.context import Context
from refold.application.api.results import CompactionResult
from refold.application.conversation.loaded import LoadedConversation
from refold.application.ports.summariser import (
    FinishingObserver,
    FollowingObserver,
    ProgressObserver,
)
from refold.domain.events import Trigger

from .core import Core, Extras
from .foreign_code import Contained
from .plain_lines import plain_logger, raised

logger = plain_logger(__name__)


def tell_compaction(core: Core, result: CompactionResult) -> None:
    """Tell every observer how a compaction, an undoing or a ladder without one ended."""
    for observer in core.observers:
        with _guarded():
            observer.compaction_ended(result)


def tell_request(core: Core, loaded: LoadedConversation, context: Context, extras: Extras) -> None:
    """Tell every observer that a request was made, and how much of it repeats the one before."""
    if not core.observers:
        return
    repeated = core.last_requests.repeated(loaded, context, extras.system)
    for observer in core.observers:
        with _guarded():
            observer.request_made(context.thread_id, context.tokens, repeated)


def tell_chunk(core: Core, thread_id: str, done: int, chunks: int) -> None:
    """Tell the observers that want to know it how far a summary is."""
    for observer in core.observers:
        if isinstance(observer, ProgressObserver):
            with _guarded():
                observer.chunk_summarised(thread_id, done, chunks)


@contextmanager
def followed(core: Core, thread_id: str, trigger: Trigger) -> Generator[None]:
    """A compaction that runs, for the observers that follow one."""
    with ExitStack() as stack:
        for observer in core.observers:
            if isinstance(observer, FollowingObserver):
                with _guarded():
                    following = observer.compacting(thread_id, trigger)
                    following.__enter__()
                    stack.callback(_left, following)
        yield


class Telling:
    """Tells how compactions went that are made one after the other: each as it is in the answer.

    The figures of the last one are known when all is done; it counts as running until then.
    """

    def __init__(self, core: Core, thread_id: str, trigger: Trigger) -> None:
        self._core = core
        self._thread_id = thread_id
        self._trigger: Trigger = trigger
        self._stack = ExitStack()
        self._ended: CompactionResult | None = None
        self._told: set[str] = set()
        """The attempts of which the end was told already."""

    def __enter__(self) -> "Telling":
        return self

    def __exit__(self, *raised: object) -> None:
        self._tell()

    def begin(self) -> None:
        """Note that one begins; the one before it is told."""
        self._tell()
        self._stack.enter_context(followed(self._core, self._thread_id, self._trigger))

    def ended(self, result: CompactionResult) -> None:
        """Note how it ended."""
        self._ended = result

    def finish(self, result: CompactionResult | None) -> None:
        """Tell the last one, with all of its figures; None: nothing was done."""
        self._ended = result
        self._tell()

    def _tell(self) -> None:
        ended, self._ended = self._ended, None
        # That there is nothing to do is news only to somebody who asked for it.
        is_news = self._trigger == "manual" or (ended and ended.outcome != "nothing_to_do")
        if ended is not None and is_news and ended.attempt_id not in self._told:
            tell_compaction(self._core, ended)
            self._told |= {ended.attempt_id} if ended.attempt_id else set()
        self._stack.close()


async def finish_observers(core: Core) -> None:
    """Wait for what observers have under way, before the memory closes."""
    for observer in core.observers:
        if isinstance(observer, FinishingObserver):
            with _guarded():
                await observer.finish()


def _left(following: AbstractContextManager[object]) -> None:
    with _guarded():
        following.__exit__(None, None, None)


@contextmanager
def _guarded() -> Generator[None]:
    try:
        with Contained():
            yield
    except Exception as error:  # An observer of the user's own may raise anything.
        logger.warning("an observer failed: %s", raised(error))

"""Telling observers what happened: what they raise is logged and goes no further."""

import logging
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from refold.domain.events import Trigger

from .containing import Contained
from .context import Context
from .core import Core, Extras
from .loaded import LoadedConversation
from .ports import FinishingObserver, FollowingObserver
from .results import CompactionResult

logger = logging.getLogger(__name__)


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
    except Exception:  # An observer of the user's own may raise anything.
        logger.exception("an observer failed")

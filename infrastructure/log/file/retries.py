"""Reads and writes of a store, tried again with growing delay while their trouble is one that passes."""

from collections.abc import Callable
from functools import wraps
from time import monotonic
from typing import ParamSpec, TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_after_delay,
    wait_exponential,
    wait_random,
)

from refold.application.patience import LOCK_WAIT
from refold.application.plain_lines import plain_logger

from .failures import STORE_ERRORS, is_passing, kind_of

TRIES = 3
"""In all (requirement A9)."""
FIRST_WAIT = 0.02
LONGEST_WAIT = 0.5
PATIENCE = 30.0
"""Seconds: whoever has waited for a lock so long does not wait for it two times more."""

logger = plain_logger(__name__)
P = ParamSpec("P")
Answer = TypeVar("Answer")


def retried(act: Callable[[], Answer]) -> Answer:
    """What ``act`` answers, at the third try at the latest; the last error where none succeeds.

    ``act`` must be one that may be done twice.
    """
    began = monotonic()
    try:
        # The way of almost every call: it must cost nothing.
        return act()
    except STORE_ERRORS as error:
        if not is_passing(error) or monotonic() - began > min(PATIENCE, _most()):
            raise
        first: Exception | None = error

    def again() -> Answer:
        nonlocal first
        if first is not None:
            failed, first = first, None
            raise failed
        return act()

    return _RETRYING(again)


def _most() -> float:
    """How long the work at hand waits for the log: half of that and it was too long already."""
    most = LOCK_WAIT.get()
    return PATIENCE if most is None else most / 2


def retrying(read: Callable[P, Answer]) -> Callable[P, Answer]:
    """A reading function that is tried again."""

    @wraps(read)
    def reading(*args: P.args, **kwargs: P.kwargs) -> Answer:
        return retried(lambda: read(*args, **kwargs))

    return reading


def _tell(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    assert error is not None
    logger.warning(
        "the store failed (%s); trying again, %d of %d",
        kind_of(error) or type(error).__name__,
        state.attempt_number + 1,
        TRIES,
    )


_RETRYING = Retrying(
    stop=stop_after_attempt(TRIES) | stop_after_delay(PATIENCE),
    wait=wait_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT) + wait_random(0, FIRST_WAIT),
    retry=retry_if_exception(is_passing),
    before_sleep=_tell,
    reraise=True,
)

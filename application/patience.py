"""How long work waits for a log that another program holds: less where nothing depends on it."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

BRIEFLY = 1.0
"""Seconds that a request which fits as it is waits for the log, all in all, to have its decisions stored."""

LOCK_WAIT: ContextVar[float | None] = ContextVar("refold_lock_wait", default=None)
"""Seconds that a write waits for the log at most; None: as long as the log itself says."""


@contextmanager
def waiting_at_most(seconds: float | None) -> Generator[None]:
    """Have writes within wait so long at most; None: as long as they would without."""
    if seconds is None:
        yield
        return
    token = LOCK_WAIT.set(seconds)
    try:
        yield
    finally:
        LOCK_WAIT.reset(token)

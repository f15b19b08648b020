"""Which compactions this process works on: what is in the log under its name and not here has ended."""

import threading

_LOCK = threading.Lock()
_LIVE: set[str] = set()


def begin(attempt_id: str) -> None:
    """Note that this process works on an attempt, before anybody can see it."""
    with _LOCK:
        _LIVE.add(attempt_id)


def end(attempt_id: str) -> None:
    """Note that it does no more; nothing if it did not."""
    with _LOCK:
        _LIVE.discard(attempt_id)


def is_live(attempt_id: str) -> bool:
    """Whether this process works on an attempt, or keeps the end of one that could not be written yet."""
    return attempt_id in _LIVE

"""Places of a log: a path, or a callable that opens a memory on it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import refold
from refold.application.api.memory import Memory

Opening = Callable[[], Memory]
"""A function that opens a memory on a log, as another process would."""
Place = str | Path | Opening
"""Place of a log: ``Path("agent.db")``, a folder for a new log, or an ``Opening``."""

IN_MEMORY = ":memory:"


def opening_of(place: Place, open: Callable[..., Memory] | None = None, **options: Any) -> Opening:
    """Return a function that opens the log at a place. A path is opened with these options.

    ``open`` is called with only the place, instead of ``refold.open``.

    Raises:
        ValueError: the place is a log in memory, which cannot be opened a second time.

    >>> memory = opening_of(Path("agent.db"), window=8_000)()
    """
    if open is not None:
        return partial(open, place)
    if callable(place):
        return place
    if str(place) == IN_MEMORY:
        raise ValueError(
            "a log in memory ends with its memory: give a path, or a callable that opens a store"
        )
    return partial(refold.open, file_at(place), **options)


def file_at(place: str | Path) -> str | Path:
    """Return the path of the log, or the URL unchanged. In a folder, the log is ``check.db``."""
    if isinstance(place, str) and "://" in place:
        return place
    return Path(place) / "check.db" if Path(place).is_dir() else place

"""When QMD hangs: what is said of it, by the command that hung, and for how long it is left alone."""

import time
from pathlib import Path
from typing import NamedTuple

from refold.application.errors import BackendError

from .programs import TimedOut

REST = 300.0
"""Seconds for which it is left alone after it hung."""


class TookNothingIn(TimedOut):
    """It did not end in time, and its index is as it was before."""


class _Rest(NamedTuple):
    until: float
    error: BackendError


class Rests:
    """The rests of a program, for questions by words and for those by meaning."""

    def __init__(self, timeout: float) -> None:
        """``timeout``: the seconds that it had."""
        self._timeout = timeout
        self._resting: dict[bool, _Rest] = {}

    def refuse(self, *, meaning: bool) -> None:
        """Refuse a question while it is left alone.

        Raises:
            BackendError: why it is.
        """
        resting = self._resting.get(meaning)
        if resting is not None and time.monotonic() < resting.until:
            raise resting.error

    def begin(self, hung: TimedOut, *, meaning: bool) -> BackendError:
        """Leave it alone from now on; returns what is to be told. ``hung`` holds the command.

        What hangs without a model would hang whatever is asked.
        """
        command = str(hung)
        of_model = _asks_model(command, meaning=meaning)
        advice = (
            "search by meaning needs its models: run `qmd pull` once, or ask with mode='keyword'"
            if of_model
            else "run `qmd doctor`"
        )
        nothing = ", took nothing in" if isinstance(hung, TookNothingIn) else ""
        error = BackendError(
            "timeout",
            f"qmd {command} did not answer within {self._timeout:g} s{nothing} and was ended; {advice}. "
            f"It is left alone for {REST / 60:.0f} minutes",
        )
        rest = _Rest(time.monotonic() + REST, error)
        self._resting.update({True: rest} if of_model else {True: rest, False: rest})
        return error


def sizes_in(folder: Path) -> dict[str, int]:
    """The sizes of the files of an index, by name: where they differ, something was taken in."""
    # What SQLite shares between its readers is there as soon as somebody reads.
    files = (path for path in folder.glob("*") if not path.name.endswith("-shm"))
    return {path.name: path.stat().st_size for path in files}


def _asks_model(command: str, *, meaning: bool) -> bool:
    return command in ("embed", "vsearch") or (command == "query" and meaning)

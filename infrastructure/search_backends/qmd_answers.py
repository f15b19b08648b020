"""Parse QMD's answers and errors, and pause QMD after it hangs."""

import time
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, TypeAdapter, ValidationError

from refold.application.errors import BackendError
from refold.application.ports.search_backend import BackendHit

from .programs import Ran, TimedOut, place_in

REST = 300.0
"""Seconds of a pause after a hang."""


class TookNothingIn(TimedOut):
    """A timeout that left the index unchanged."""


class _Rest(NamedTuple):
    until: float
    error: BackendError


class Rests:
    """The pauses of a program, separate for word searches and searches by meaning."""

    def __init__(self, timeout: float) -> None:
        """Create pauses. ``timeout`` is the number of seconds of the search that hung."""
        self._timeout = timeout
        self._resting: dict[bool, _Rest] = {}

    def refuse(self, *, meaning: bool) -> None:
        """Reject a query during a pause.

        Raises:
            BackendError: the reason of the pause.
        """
        resting = self._resting.get(meaning)
        if resting is not None and time.monotonic() < resting.until:
            raise resting.error

    def begin(self, hung: TimedOut, *, meaning: bool) -> BackendError:
        """Start a pause and return the error to raise. ``hung`` has the command.

        A command that hangs without a model would hang for every query.
        """
        command = str(hung)
        of_model = _asks_model(command, meaning=meaning)
        advice = (
            "search by meaning needs its models: run `qmd pull` once, or ask with mode='keyword'"
            if of_model
            else "run `qmd doctor`"
        )
        nothing = ", indexed nothing" if isinstance(hung, TookNothingIn) else ""
        error = BackendError(
            "timeout",
            f"qmd {command} did not answer within {self._timeout:g} s{nothing} and was stopped; {advice}. "
            f"It is not used for {REST / 60:.0f} minutes",
        )
        rest = _Rest(time.monotonic() + REST, error)
        self._resting.update({True: rest} if of_model else {True: rest, False: rest})
        return error


def sizes_in(folder: Path) -> dict[str, int]:
    """Return the sizes of an index's files by name. A difference shows that messages were indexed."""
    # SQLite creates its shared-memory file as soon as a reader opens the index.
    files = (path for path in folder.glob("*") if not path.name.endswith("-shm"))
    return {path.name: path.stat().st_size for path in files}


def _asks_model(command: str, *, meaning: bool) -> bool:
    return command in ("embed", "vsearch") or (command == "query" and meaning)


INSTALL = "npm install -g @tobilu/qmd, with Node 22 or newer"
NOT_STARTED = (126, 127)
"""Exit statuses of a shell that cannot start a script's program."""
CRASHED = (139, 134, -11, -6)
"""Exit statuses of a process that crashed on invalid memory access or an abort."""


class _Row(BaseModel):
    file: str
    score: float = 0


_ROWS = TypeAdapter(list[_Row])


def why_failed(command: str, ran: Ran) -> str:
    """Return the message for a failed command."""
    said = " ".join((ran.err or ran.out).split())[-300:]
    if ran.status in CRASHED or "NODE_MODULE_VERSION" in said or "Unsupported engine" in said:
        return f"qmd {command} crashed: it needs Node 22 or newer ({said or ran.status})"
    if ran.status in NOT_STARTED:
        return not_started(said or f"it ended with {ran.status}")
    return f"qmd {command} ended with {ran.status}: {said or 'it said nothing'}; try `qmd doctor`"


def not_started(why: str) -> str:
    """Return the message for a program that cannot be started."""
    return f"qmd cannot be started: {why}; reinstall it: {INSTALL}; or use search_backend='builtin'"


def hits_in(answer: Ran, threads: Mapping[str, str]) -> list[BackendHit]:
    """Return the found messages of these conversations, including those with a score of 0.

    Raises:
        BackendError: the output is not an answer of QMD.
    """
    hits: list[BackendHit] = []
    for row in _rows(answer):
        place = place_in(row.file)
        if place is not None and (thread_id := threads.get(place[0])) is not None:
            score = row.score if 0 < row.score < inf else 0.0
            hits.append(BackendHit(thread_id, place[1], score))
    return hits


def with_scores(hits: list[BackendHit]) -> list[BackendHit]:
    """Return the hits with scores. If all scores are 0, they are derived from the order."""
    if all(hit.score for hit in hits):
        return hits
    # In small collections all scores are 0, but the order is right.
    return [hit._replace(score=1 / (rank + 1)) for rank, hit in enumerate(hits)]


def _rows(answer: Ran) -> list[_Row]:
    """Parse the printed array after any leading output."""
    begin = answer.out.find("[")
    try:
        return _ROWS.validate_json(answer.out[begin:] if begin >= 0 else "")
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]["msg"]
        raise BackendError(
            "bad_answer",
            f"qmd gave no JSON array of hits but {answer.out[:80]!r} ({problem}); try `qmd doctor`, or "
            "use search_backend='builtin'",
        ) from error

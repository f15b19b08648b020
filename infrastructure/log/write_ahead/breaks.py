"""Telling damage of a write-ahead log from a torn tail.

A loss of power or a killed process leaves a torn tail: the frames of the last commit, of which only
some are there, and behind them leftovers of other commits that were never completed. A commit is synced
before the next one is written. So a frame that follows the last frame of a commit proves that all
before it was on the disk once, whatever it looks like now: if there is a bad frame before, the file was
damaged since, and SQLite would drop every commit from there on.
"""

from collections.abc import Iterator
from typing import NamedTuple

from .chain import Chain


class Break(NamedTuple):
    """Where SQLite stops to read, and what lies behind."""

    frame: int | None
    """The index of the bad frame, or of the first that is not there any more; None if it is the file header."""
    frames: int
    """How many frames were stored for certain."""
    commits: int
    """How many commits SQLite would drop."""


class _Run(NamedTuple):
    """Frames of which each follows the one before; the first one need not."""

    first: int
    last: int


def break_in(chain: Chain) -> Break | None:
    """Return where the chain is broken though more was stored behind, or None."""
    bad = None if not chain.header.is_whole else next(_bad(chain), len(chain.frames))
    if bad == len(chain.frames):
        return None
    proved = [run for run in _runs(chain) if _is_proved(chain, run)]
    if not any(run.first >= (bad or 0) for run in proved):
        return None
    frames = stored_frames(chain)
    commits = sum(bool(frame.size) for frame in chain.frames[bad or 0 : frames])
    return Break(bad, frames, commits)


def stored_frames(chain: Chain) -> int:
    """Return how many frames were stored for certain: up to the last commit that is proved or reached."""
    frames = 0
    for run in _runs(chain):
        reached = run.first == 0 and chain.header.is_whole and chain.is_linked(0)
        if reached or _is_proved(chain, run):
            commits = (i for i in range(run.last, run.first - 1, -1) if chain.frames[i].size)
            frames = next((index + 1 for index in commits), frames)
    return frames


def _bad(chain: Chain) -> Iterator[int]:
    return (i for i in range(len(chain.frames)) if not chain.is_linked(i))


def _runs(chain: Chain) -> Iterator[_Run]:
    first = 0
    for index in range(1, len(chain.frames)):
        if not chain.is_linked(index):
            yield _Run(first, index - 1)
            first = index
    if chain.frames:
        yield _Run(first, len(chain.frames) - 1)


def _is_proved(chain: Chain, run: _Run) -> bool:
    """Return whether a frame of this run was written after a commit of this run was synced."""
    for index in range(run.first, run.last):
        one, after = chain.frames[index : index + 2]
        # Without powersafe overwrite, SQLite fills a sector up by repeating the frame of the commit.
        is_repeated = (after.page, after.size) == (one.page, one.size)
        # What a torn frame says of a commit can be of another one than its checksum is.
        if one.size and not is_repeated and chain.is_proved(index):
            return True
    return False

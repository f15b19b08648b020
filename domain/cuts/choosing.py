"""The choice among the legal cuts: as much is kept as meets the goal, and whole turns first."""

from collections.abc import Sequence
from typing import NamedTuple

from refold.domain.policy import CompactionPolicy
from refold.domain.splitting import Turns, is_worthwhile, largest_kept

from .candidates import Candidate


class Aim(NamedTuple):
    """What a choice goes by. Sizes are tokens."""

    goal: int
    """The most that should stay."""
    window: int
    policy: CompactionPolicy
    latest: tuple[int, ...]
    """The latest cuts that the keep rules allow, smallest first; wishes all."""


def keep_most(found: Sequence[Candidate], turns: Turns, aim: Aim) -> Candidate:
    """The cut that keeps as much as the goal allows.

    A cut between turns is preferred if it keeps at least ``whole_turn_share`` of the newest tokens
    that a cut inside a turn would keep; else the turn is divided, so that enough of it is summarised.
    Neither breaks a keep rule that the goal leaves room for. If no cut meets the goal, the one that
    comes nearest to it is the best there is.
    """
    fitting = [c for c in found if c.kept <= aim.goal]
    if not fitting:
        return min(found, key=_kept)
    small = [c for c in fitting if c.newest <= largest_kept(aim.window, aim.policy)]
    fitting = small or fitting
    nearest = fitting[0]
    latest = min((cut for cut in aim.latest if cut >= nearest.cut), default=fitting[-1].cut)
    allowed = [c for c in fitting if c.cut <= latest]
    for candidate in allowed:
        enough = candidate.newest >= aim.policy.whole_turn_share * nearest.newest
        if enough and turns.begins_at(candidate.cut):
            return candidate
    worthwhile = (
        c for c in allowed if is_worthwhile(turns.division(c.cut), aim.window, aim.policy)
    )
    return next(worthwhile, nearest)


def cover_most(found: Sequence[Candidate], turns: Turns, aim: Aim) -> Candidate:
    """The cut that covers as much as the keep rules allow; they yield to the goal, largest first.

    A cut between turns is preferred if it meets the goal and covers at least ``whole_turn_share`` of
    what a cut inside a turn would cover.
    """
    for cut in aim.latest:
        within = [c for c in found if c.cut <= cut]
        if within and within[-1].kept <= aim.goal:
            found = within
            break
    latest = found[-1]
    for candidate in reversed(found):
        enough = candidate.covered >= aim.policy.whole_turn_share * latest.covered
        small = candidate.kept <= aim.goal
        if enough and small and turns.begins_at(candidate.cut):
            return candidate
    return latest


def _kept(candidate: Candidate) -> int:
    return candidate.kept

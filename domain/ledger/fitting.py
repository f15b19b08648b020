"""Chooses the lines that are shown: within a room, with a fair share for each kind."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .line import Kind, LedgerLine
from .ranking import Ranking

MOST_HIDDEN: dict[Kind, int] = {
    "prohibition": 40,
    "rule": 40,
    "request": 40,
    "decision": 30,
    "modified": 40,
    "command": 40,
    "value": 60,
    "failure": 8,
    "read": 20,
}
"""Lines of each kind that are kept without being shown: counts grow on, a line can come back, and a
moment without room loses nothing that matters. They bound the size of the event.
"""

# What each kind may take of the room before the others, then, and where room is left. What the user
# asked and forbade is served first each time: no other kind takes its place.
_SHARES: dict[Kind, tuple[float, float, float]] = {
    "prohibition": (0.22, 0.45, 1.0),
    "rule": (0.22, 0.45, 1.0),
    "request": (0.26, 0.45, 1.0),
    "decision": (0.12, 0.30, 1.0),
    "modified": (0.10, 0.25, 1.0),
    "command": (0.10, 0.25, 1.0),
    "value": (0.12, 0.40, 0.40),
    "failure": (0.06, 0.15, 0.15),
    "read": (0.02, 0.10, 0.30),
}


class Fitted(NamedTuple):
    """The ledger: the lines that are shown, as they stand in the conversation, then others, the most important
    ones first.
    """

    lines: tuple[LedgerLine, ...] = ()
    shown: int = 0
    """How many of them there is room for."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What rendering costs, in tokens."""

    line: Callable[[LedgerLine], int]
    heading: Callable[[LedgerLine], int]
    """Of the heading that the first line of a kind and an author needs."""


def fit(lines: Sequence[LedgerLine], room: int, costs: Costs, *, failures: int = 8) -> Fitted:
    """Choose from ``lines``, each of which stands there once, what is shown in ``room`` tokens."""
    ranking = Ranking(lines)
    ranked = sorted(lines, key=lambda line: (-ranking.score(line), line.kind, line.text))
    ranked = _limited(ranked, "failure", failures)
    choice = _Choice(room, costs)
    for most in range(3):
        for kind, shares in _SHARES.items():
            allowed = int(room * shares[most])
            for line in ranked:
                if line.kind == kind:
                    choice.take(line, allowed)
    hidden = _hidden([line for line in ranked if line not in choice.taken])
    # Lines of one message stay in the order in which they stand there.
    order = {line: number for number, line in enumerate(lines)}
    taken = sorted(choice.taken, key=lambda line: (line.position, order[line]))
    return Fitted((*taken, *hidden), len(taken))


class _Choice:
    def __init__(self, room: int, costs: Costs) -> None:
        self.taken: dict[LedgerLine, None] = {}
        self._left = room
        self._costs = costs
        self._spent: dict[Kind, int] = {}
        self._headed: set[tuple[Kind, str | None]] = set()

    def take(self, line: LedgerLine, allowed: int) -> None:
        """Take a line if there is room for it, and for its kind; what is said already is not repeated."""
        if self._left <= 0 or line in self.taken:
            return
        spent = self._spent.get(line.kind, 0)
        group = (line.kind, line.author)
        cost = self._costs.line(line) + (0 if group in self._headed else self._costs.heading(line))
        if cost > self._left or spent + cost > allowed or self._is_said(line):
            return
        self.taken[line] = None
        self._left -= cost
        self._spent[line.kind] = spent + cost
        self._headed.add(group)

    def _is_said(self, line: LedgerLine) -> bool:
        """Whether a value stands in a line that is shown: as whole words, never as a part of one."""
        if line.kind != "value":
            return False
        near = [known.text for known in self.taken if line.text in known.text]
        if not near:
            return False
        whole = re.compile(rf"(?<![\w/.-]){re.escape(line.text)}(?![\w/-]|\.\w)")
        return any(map(whole.search, near))


def _limited(lines: Sequence[LedgerLine], kind: Kind, most: int) -> list[LedgerLine]:
    kept, left = list[LedgerLine](), most
    for line in lines:
        if line.kind == kind:
            left -= 1
        if line.kind != kind or left >= 0:
            kept.append(line)
    return kept


def _hidden(lines: Sequence[LedgerLine]) -> list[LedgerLine]:
    kept: list[LedgerLine] = []
    for kind, most in MOST_HIDDEN.items():
        kept += [line for line in lines if line.kind == kind][:most]
    return kept

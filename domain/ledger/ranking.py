"""Says how much each line of the ledger matters: within its kind, newest and most used first."""

import math
from collections import Counter
from collections.abc import Sequence

from . import cues
from .commands import is_everyday
from .line import LedgerLine
from .uniting import LATER_OK

_BY = {"user": 1.5, "assistant": 0.75, "tool": 0.0}
_MOST_FOR_USE = 3.0


class Ranking:
    """Ranks the lines of one ledger by comparing them with each other; higher is kept longer."""

    def __init__(self, lines: Sequence[LedgerLine]) -> None:
        positions = [line.position for line in lines]
        self._oldest = min(positions, default=0)
        self._span = max(1, max(positions, default=0) - self._oldest)
        asked = [line.position for line in lines if line.kind == "request"]
        self._crowds = Counter(line.position for line in lines if line.kind == "value")
        self._first, self._latest = min(asked, default=-1), max(asked, default=-1)

    def score(self, line: LedgerLine) -> float:
        """How much a line matters among those of its kind."""
        newness = (line.position - self._oldest) / self._span
        used = min(_MOST_FOR_USE, math.log2(line.count))
        match line.kind:
            case "request":
                return newness + used + self._open(line)
            case "rule" | "prohibition":
                return 0.5 * newness + used + 2 * cues.weight(_whole(line))
            case "decision":
                return newness + used + cues.weight(_whole(line)) + _BY[line.said_by]
            case "command":
                return newness + 1.5 * used - (1.5 if is_everyday(line.text) else 0.0)
            case "failure":
                return newness + used - (2.0 if line.note.endswith(LATER_OK) else 0.0)
            case "value":
                # What only tools say, they say often; of a long list each item says little.
                used *= 0.5 if line.said_by == "tool" else 1.5
                crowd = 0.4 * math.log2(self._crowds[line.position])
                return newness + used + _BY[line.said_by] - crowd
            case "read" | "modified":
                return newness + 1.5 * used

    def _open(self, line: LedgerLine) -> float:
        score = 2.0 if cues.DEFERRED.search(line.text) else 0.0
        if cues.ASKING.search(line.text) or cues.ORDER.match(line.text):
            score += 0.75
        return score + (2.0 if line.position in (self._first, self._latest) else 0.0)


def _whole(line: LedgerLine) -> str:
    """The text behind its headings: a heading can turn it into its opposite."""
    return " ".join((*line.under, line.text))

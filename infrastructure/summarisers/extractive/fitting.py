"""Chooses and shortens lines until the summary fits its length, and writes it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from refold.domain.ledger.wording import shorten, squeeze

from .lines import Line, Section, written
from .ranking import NEVER_FILLED, Ranking


class TextCounter(Protocol):
    """Whatever measures a text in tokens; every ``TokenCounter`` does."""

    def count_text(self, text: str) -> int:
        """The tokens of a text by itself."""
        ...


@dataclass(frozen=True, slots=True)
class Room:
    """How long a summary may be."""

    target: int
    """Tokens to aim at."""
    limit: int
    """Tokens never to exceed."""
    characters: int
    """Characters never to exceed: the summary has to be smaller than its source."""


# Of the target, what a section may take before every section had its turn. They add up to more
# than one: few conversations have all sections.
_SHARE = {
    Section.REQUESTS: 0.30,
    Section.DECISIONS: 0.25,
    Section.FACTS: 0.35,
    Section.MODIFIED: 0.12,
    Section.READ: 0.06,
    Section.COMMANDS: 0.12,
    Section.ACTIONS: 0.15,
    Section.FAILURES: 0.12,
    Section.VALUES: 0.10,
    Section.EARLIER: 0.25,
    Section.TASKS: 0.10,
    Section.STATE: 0.15,
}
# The most lines of a section; failures by requirement A13.
_MOST = {
    Section.READ: 40,
    Section.COMMANDS: 40,
    Section.ACTIONS: 60,
    Section.FAILURES: 8,
    Section.VALUES: 40,
    Section.TASKS: 40,
}
_MOST_ELSE = 400
# A line's length in tokens: share of the target, and ceiling. The floor keeps a line readable.
_LINE = {
    Section.REQUESTS: (0.08, 250),
    Section.DECISIONS: (0.08, 120),
    Section.STATE: (0.10, 500),
    Section.EARLIER: (0.06, 300),
}
_LINE_ELSE = (0.08, 100)
_PROHIBITION = (0.15, 160)
_LATEST_REQUEST = (0.20, 1_600)
_FIRST_REQUEST = (0.15, 1_200)
_QUOTED = {Section.REQUESTS, Section.DECISIONS, Section.FACTS, Section.STATE}
_EXACT = {Section.MODIFIED, Section.READ}  # A path cut in the middle is of no use.
_FLOOR = 30
_FEW = 80
_WORTH_FILLING = 3  # Later tiers only get their section's share.
_WORTH_CUTTING = 26  # Tokens of room below which an essential line is not squeezed in.


def fit(
    lines: Sequence[Line],
    preamble: Sequence[str],
    focus: str | None,
    room: Room,
    counter: TextCounter,
) -> str:
    """The summary's text, or an empty one when not even one line fits."""
    fitting = _Fitting(Ranking(lines, focus), room, counter)
    for text in preamble:
        fitting.take_preamble(text)
    fitting.choose(lines)
    return fitting.text()


class _Fitting:
    """One choice of lines: what is taken so far and the room that is left."""

    def __init__(self, ranking: Ranking, room: Room, counter: TextCounter) -> None:
        self._ranking = ranking
        self._room = room
        self._counter = counter
        self._target = min(room.target, room.limit)
        self._tokens = self._target
        self._characters = room.characters
        self._ample = False
        self._preamble: list[str] = []
        self._taken: list[tuple[int, Line]] = []
        self._spent: dict[Section, int] = {}
        self._number: dict[Section, int] = {}

    def take_preamble(self, text: str) -> None:
        """A line before the sections, if it takes no more than an eighth of the room."""
        cost = self._cost(text)
        if cost <= self._target // 8 and len(text) + 1 <= self._characters // 8:
            self._tokens -= cost
            self._characters -= len(text) + 1
            self._preamble.append(text)

    def choose(self, lines: Sequence[Line]) -> None:
        """First every section within its share, then whatever is next while there is room."""
        # With room for all, no line needs to be cut below its ceiling.
        self._ample = len(lines) < _FEW and (
            sum(self._cost(written(line)) for line in lines) < 0.9 * self._target
        )
        tiers = [
            (self._ranking.tier(line), -self._ranking.score(line), i)
            for i, line in enumerate(lines)
        ]
        order = [(tier, i) for tier, _, i in sorted(tiers)]
        left = [
            (t, i)
            for t, i in order
            if t < NEVER_FILLED and not self._take(i, lines[i], t, shared=True)
        ]
        left = [(t, i) for t, i in left if not self._take(i, lines[i], t, shared=False)]
        if not self._taken:
            for _, i in order:
                if self._take(i, lines[i], 0, shared=True):
                    break

    def text(self) -> str:
        """The text; the least of the lines are dropped while a counter finds it too long after all."""
        while self._taken:
            text = self._written()
            over = self._counter.count_text(text) / max(1, self._room.limit)
            if over <= 1 and len(text) <= self._room.characters:
                return text
            drop = max(1, int(len(self._taken) * (1 - 1 / over))) if over > 1 else 1
            del self._taken[-drop:]
        return ""

    def _take(self, index: int, line: Line, tier: int, *, shared: bool) -> bool:
        section = line.section
        if self._number.get(section, 0) >= _MOST.get(section, _MOST_ELSE):
            return False
        if not shared and (section is Section.EARLIER or tier > _WORTH_FILLING):
            return False
        heading = "" if section in self._spent else f"## {section.value}\n\n"
        line = self._shortened(line, self._line_room(line))
        rest = self._tokens - (self._cost(heading) if heading else 0)
        if shared:
            rest = min(
                rest, max(_FLOOR, int(self._target * _SHARE[section])) - self._spent.get(section, 0)
            )
        if (
            tier == 0
            and section not in _EXACT
            and self._cost(written(line)) > rest >= _WORTH_CUTTING
        ):
            line = self._shortened(line, rest - 2)
        cost, size = self._cost(written(line)), len(written(line)) + 1 + len(heading)
        if cost > rest:
            return False
        if size > self._characters:
            return False
        self._tokens -= cost + (self._cost(heading) if heading else 0)
        self._characters -= size
        self._spent[section] = self._spent.get(section, 0) + cost
        self._number[section] = self._number.get(section, 0) + 1
        self._taken.append((index, line))
        return True

    def _line_room(self, line: Line) -> int:
        share, ceiling = _LINE.get(line.section, _LINE_ELSE)
        if line is self._ranking.latest:
            share, ceiling = _LATEST_REQUEST
        elif line is self._ranking.first:
            share, ceiling = _FIRST_REQUEST
        elif line.section is Section.DECISIONS and self._ranking.tier(line) == 0:
            share, ceiling = _PROHIBITION
        if self._ample:
            return ceiling
        return max(_FLOOR, min(ceiling, int(self._target * share)))

    def _shortened(self, line: Line, tokens: int) -> Line:
        if line.section in _EXACT:
            return line
        for _ in range(6):
            cost = self._cost(written(line))
            if cost <= tokens:
                break
            length = int(len(line.text) * tokens / cost) - 4
            cut = shorten if line.section in _QUOTED else squeeze
            line = replace(line, text=cut(line.text, max(12, length)))
        return line

    def _cost(self, text: str) -> int:
        return self._counter.count_text(text + "\n")

    def _written(self) -> str:
        return "\n\n".join(filter(None, ["\n".join(self._preamble), *self._parts()]))

    def _parts(self) -> Iterable[str]:
        chosen = [line for _, line in sorted(self._taken, key=lambda pair: pair[0])]
        for section in Section:
            own = [line for line in chosen if line.section is section]
            own.sort(key=lambda line: -1_000_000_000 if line.position is None else line.position)
            if own:
                yield "\n".join([f"## {section.value}", *map(written, own)])

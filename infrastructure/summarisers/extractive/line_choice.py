"""Rank the lines of a summary by tier and score, and choose those that fit."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from refold.domain.facts import cues
from refold.domain.facts.cues import shorten, squeeze
from refold.domain.facts.exact_values import is_changing, is_trivial
from refold.domain.facts.tool_calls import is_lookup
from refold.domain.lazy_pattern import lazy_pattern

from .summary_lines import Line, Section, format_line

NEVER_FILLED = 5
"""Tier of noise, which is used only if there are no other lines."""

_WORK = {Section.MODIFIED, Section.READ, Section.COMMANDS, Section.ACTIONS}
_FRAME = lazy_pattern(r"^(?:user|assistant): (?:\[[^\]]{4,40}\] ?)?(?:\w{2,20}: )?")
_NAMED = lazy_pattern(r"(?<=\w )[A-Z][a-z]+|\d+|《|“")
_WORD = lazy_pattern(r"[a-z0-9_./-]{2,}|[\u3400-\u9fff]+", re.IGNORECASE)
_STOP = frozenset(
    (
        *("the", "and", "for", "with", "that", "this", "what", "was", "were", "are", "about"),
        *("please", "keep", "all", "any", "our", "your", "its", "of", "to", "in", "on"),
    )
)


def focus_words(focus: str | None) -> tuple[str, ...]:
    """Return the words to look for. Chinese has no spaces, so it is split into pairs of characters."""
    words: list[str] = []
    for word in _WORD.findall((focus or "")[:2_000].casefold()):
        if "\u3400" <= word[0] <= "\u9fff":
            words += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
        elif word not in _STOP:
            words.append(word)
    return tuple(dict.fromkeys(words))[:40]


class Ranking:
    """A ranking of the lines of one summary. Lower tiers are kept first; within a tier, higher scores."""

    def __init__(self, lines: Sequence[Line], focus: str | None) -> None:
        self._chat = not any(line.section in _WORK for line in lines)
        positions = [line.position for line in lines if line.position is not None]
        self._oldest = min(positions, default=0)
        self._span = max(1, max(positions, default=0) - self._oldest)
        self._focus = focus_words(focus)
        asked = [line for line in lines if line.section is Section.REQUESTS]
        asked.sort(key=lambda line: line.position or 0)
        telling = [line for line in asked if not cues.ACKNOWLEDGEMENT.fullmatch(line.text)] or asked
        self.first = telling[0] if telling else None
        self.latest = asked[-1] if asked else None
        self._essential = {id(x) for x in (self.first, self.latest, *telling[-1:])}

    def tier(self, line: Line) -> int:
        """Return the tier: from 0, which is dropped last, to ``NEVER_FILLED``."""
        tier = self._own_tier(line)
        return max(0, tier - 2) if self._focus_score(line) else tier

    def score(self, line: Line) -> float:
        """Return the score. Newer, more frequent and more informative lines score higher."""
        at = self._oldest if line.position is None else line.position
        # Facts about a person do not age as work does.
        newness = 0.3 if line.section is Section.FACTS else 1.0
        score = newness * (at - self._oldest) / self._span + math.log2(line.count) * 0.4
        if self._focus:
            score += 2.0 * self._focus_score(line)
        return score + self._telling(line)

    def _own_tier(self, line: Line) -> int:
        match line.section:
            case Section.REQUESTS:
                if id(line) in self._essential:
                    return 0
                if cues.ACKNOWLEDGEMENT.fullmatch(line.text):
                    return NEVER_FILLED
                if self._chat:
                    return 3 if cues.ASKING.search(line.text) else 4
                return 1 if len(line.text) < 300 and cues.is_binding(line.text) else 2
            case Section.DECISIONS:
                if not line.text.startswith("user: "):
                    return 2
                return 0 if cues.PROHIBITION.search(line.text) else 1
            case Section.MODIFIED | Section.TASKS | Section.EARLIER:
                return 1
            case Section.STATE:
                return 2 if line.text.startswith("last result") else 1
            case Section.FACTS:
                return 2
            case Section.FAILURES:
                return 3 if " ⇒ " in line.text else 2
            case Section.COMMANDS:
                return 4 if is_trivial(line.text.lstrip("`")) else 3
            case Section.ACTIONS:
                return 4 if is_lookup(line.text) else 1
            case Section.VALUES:
                return 3
            case Section.READ:
                return 4

    def _telling(self, line: Line) -> float:
        match line.section:
            case Section.DECISIONS:
                return 2.0 * cues.weight(line.text)
            case Section.FACTS:
                plain = _FRAME.sub("", line.text)
                spoken = 0.3 if line.text.startswith("user: ") else 0.0
                facts = min(3, len(cues.FACT.findall(plain))) * 0.6
                return facts + min(4, len(_NAMED.findall(plain))) * 0.3 + spoken + _length(plain)
            case Section.EARLIER:
                return 0.5 * cues.weight(line.text)
            case Section.COMMANDS:
                return 0.5 if is_changing(line.text) else 0.0
            case Section.REQUESTS:
                return min(len(line.text), 200) / 200
            case Section.STATE:
                return 2.0 if line.text.startswith("assistant said") else 1.0
            case Section.TASKS:
                return 1.0 if line.text.startswith("todo") else 0.0
            case _:
                return 0.0

    def _focus_score(self, line: Line) -> float:
        if not self._focus:
            return 0.0
        text = line.text.casefold()
        return sum(word in text for word in self._focus) / len(self._focus)


def _length(text: str) -> float:
    """Return a small bonus for longer text, up to the length of a full sentence."""
    return min(len(text.encode("utf-8", "replace")), 120) / 240


class TextCounter(Protocol):
    """A counter of tokens in texts. Every ``TokenCounter`` is one."""

    def count_text(self, text: str) -> int:
        """Return the number of tokens of a text."""
        ...


@dataclass(frozen=True, slots=True)
class Room:
    """The allowed length of a summary."""

    target: int
    """Desired number of tokens."""
    limit: int
    """Maximum number of tokens."""
    characters: int
    """Maximum number of characters. The summary must be smaller than its source."""


# Share of the target for each section in the first round. The sum exceeds one, because few
# conversations have all sections.
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
# Maximum number of lines of a section. Every distinct failure should fit.
_MOST = {
    Section.READ: 40,
    Section.COMMANDS: 40,
    Section.ACTIONS: 60,
    Section.FAILURES: 8,
    Section.VALUES: 40,
    Section.TASKS: 40,
}
_MOST_ELSE = 400
# Tokens of one line: share of the target, and maximum. The minimum keeps a line readable.
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
_EXACT = {Section.MODIFIED, Section.READ}  # A truncated path is useless.
_FLOOR = 30
_FEW = 80
_WORTH_FILLING = 3  # Later tiers only get the share of their section.
_WORTH_CUTTING = 26  # Minimum room in tokens for one more essential line.


def fit(
    lines: Sequence[Line],
    preamble: Sequence[str],
    focus: str | None,
    room: Room,
    counter: TextCounter,
) -> str:
    """Return the text of the summary, or an empty text if no line fits."""
    fitting = _Fitting(Ranking(lines, focus), room, counter)
    for text in preamble:
        fitting.take_preamble(text)
    fitting.choose(lines)
    return fitting.text()


class _Fitting:
    """A choice of lines: the chosen ones and the remaining room."""

    def __init__(self, ranking: Ranking, room: Room, counter: TextCounter) -> None:
        self._ranking = ranking
        self._room = room
        self._counter = counter
        self._target = min(room.target, room.limit)
        self._tokens = self._target
        self._characters = room.characters
        self._ample = False
        self._costs: dict[str, int] = {}
        self._tiers: list[int] = []
        self._shown: dict[int, tuple[Line, str, int]] = {}
        self._preamble: list[str] = []
        self._taken: list[tuple[int, Line]] = []
        self._spent: dict[Section, int] = {}
        self._number: dict[Section, int] = {}

    def take_preamble(self, text: str) -> None:
        """Add a line before the sections if it needs at most an eighth of the room."""
        cost = self._cost(text)
        if cost <= self._target // 8 and len(text) + 1 <= self._characters // 8:
            self._tokens -= cost
            self._characters -= len(text) + 1
            self._preamble.append(text)

    def choose(self, lines: Sequence[Line]) -> None:
        """Choose lines of every section up to its share, then further ones while there is room."""
        # If all lines fit, none is cut below its maximum.
        self._ample = len(lines) < _FEW and (
            sum(self._cost(format_line(line)) for line in lines) < 0.9 * self._target
        )
        self._tiers = [self._ranking.tier(line) for line in lines]
        tiers = [
            (tier, -self._ranking.score(line), i)
            for i, (tier, line) in enumerate(zip(self._tiers, lines, strict=True))
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
        """Return the text. Drop the least important lines while the counter finds it too long."""
        while self._taken:
            text = self._join_parts()
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
        line, text, cost = self._measured(index, line)
        headed = self._cost(heading) if heading else 0
        rest = self._tokens - headed
        if shared:
            rest = min(
                rest, max(_FLOOR, int(self._target * _SHARE[section])) - self._spent.get(section, 0)
            )
        if tier == 0 and section not in _EXACT and cost > rest >= _WORTH_CUTTING:
            line = self._shorten(line, rest - 2)
            text = format_line(line)
            cost = self._cost(text)
        size = len(text) + 1 + len(heading)
        if cost > rest or size > self._characters:
            return False
        self._tokens -= cost + headed
        self._characters -= size
        self._spent[section] = self._spent.get(section, 0) + cost
        self._number[section] = self._number.get(section, 0) + 1
        self._taken.append((index, line))
        return True

    def _measured(self, index: int, line: Line) -> tuple[Line, str, int]:
        """Return the line as it may be taken, its text and its cost. Most lines are tried twice."""
        known = self._shown.get(index)
        if known is None:
            text, room = format_line(line), self._line_room(line, self._tiers[index])
            cost = self._cost(text)
            if cost > room:
                line = self._shorten(line, room)
                text = format_line(line)
                cost = self._cost(text)
            known = self._shown[index] = line, text, cost
        return known

    def _line_room(self, line: Line, tier: int) -> int:
        share, ceiling = _LINE.get(line.section, _LINE_ELSE)
        if line is self._ranking.latest:
            share, ceiling = _LATEST_REQUEST
        elif line is self._ranking.first:
            share, ceiling = _FIRST_REQUEST
        elif line.section is Section.DECISIONS and tier == 0:
            share, ceiling = _PROHIBITION
        if self._ample:
            return ceiling
        return max(_FLOOR, min(ceiling, int(self._target * share)))

    def _shorten(self, line: Line, tokens: int) -> Line:
        if line.section in _EXACT:
            return line
        for _ in range(6):
            cost = self._cost(format_line(line))
            if cost <= tokens:
                break
            length = int(len(line.text) * tokens / cost) - 4
            cut = shorten if line.section in _QUOTED else squeeze
            line = replace(line, text=cut(line.text, max(12, length)))
        return line

    def _cost(self, text: str) -> int:
        cost = self._costs.get(text)
        if cost is None:
            cost = self._costs[text] = self._counter.count_text(text + "\n")
        return cost

    def _join_parts(self) -> str:
        return "\n\n".join(filter(None, ["\n".join(self._preamble), *self._parts()]))

    def _parts(self) -> Iterable[str]:
        chosen = [line for _, line in sorted(self._taken, key=lambda pair: pair[0])]
        for section in Section:
            own = [line for line in chosen if line.section is section]
            own.sort(key=lambda line: -1_000_000_000 if line.position is None else line.position)
            if own:
                yield "\n".join([f"## {section.value}", *map(format_line, own)])

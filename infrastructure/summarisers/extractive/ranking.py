"""Says which lines are the last to be dropped, by tier and by score within a tier."""

import math
import re
from collections.abc import Sequence

from refold.domain.ledger import cues
from refold.domain.ledger.commands import is_changing, is_trivial
from refold.domain.ledger.deeds import looks_only

from .lines import Line, Section

NEVER_FILLED = 5
"""Lines of this tier are noise: they are taken only when there is nothing else."""

_WORK = {Section.MODIFIED, Section.READ, Section.COMMANDS, Section.ACTIONS}
_FRAME = re.compile(r"^(?:user|assistant): (?:\[[^\]]{4,40}\] ?)?(?:\w{2,20}: )?")
_NAMED = re.compile(r"(?<=\w )[A-Z][a-z]+|\d+|《|“")
_WORD = re.compile(r"[a-z0-9_./-]{2,}|[\u3400-\u9fff]+", re.IGNORECASE)
_STOP = frozenset(
    (
        *("the", "and", "for", "with", "that", "this", "what", "was", "were", "are", "about"),
        *("please", "keep", "all", "any", "our", "your", "its", "of", "to", "in", "on"),
    )
)


def focus_words(focus: str | None) -> tuple[str, ...]:
    """The words to look for; Chinese is cut into pairs of characters, as it has no blanks."""
    words: list[str] = []
    for word in _WORD.findall((focus or "")[:2_000].casefold()):
        if "\u3400" <= word[0] <= "\u9fff":
            words += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
        elif word not in _STOP:
            words.append(word)
    return tuple(dict.fromkeys(words))[:40]


class Ranking:
    """Ranks the lines of one summary. Lower tiers are kept first; in a tier, higher scores."""

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
        """From 0, the last to be dropped, to ``NEVER_FILLED``."""
        tier = self._own_tier(line)
        return max(0, tier - 2) if self._wanted(line) else tier

    def score(self, line: Line) -> float:
        """Newer, more often used and more telling lines are higher."""
        at = self._oldest if line.position is None else line.position
        # What is true of a person does not age as work does.
        newness = 0.3 if line.section is Section.FACTS else 1.0
        score = newness * (at - self._oldest) / self._span + math.log2(line.count) * 0.4
        if self._focus:
            score += 2.0 * self._wanted(line)
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
                return 1 if len(line.text) < 300 and cues.binding(line.text) else 2
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
                return 4 if looks_only(line.text) else 1
            case Section.VALUES:
                return 3
            case Section.READ:
                return 4

    def _telling(self, line: Line) -> float:
        match line.section:
            case Section.DECISIONS:
                return 2.0 * cues.weight(line.text)
            case Section.FACTS:
                told = _FRAME.sub("", line.text)
                spoken = 0.3 if line.text.startswith("user: ") else 0.0
                facts = min(3, len(cues.FACT.findall(told))) * 0.6
                return facts + min(4, len(_NAMED.findall(told))) * 0.3 + spoken + _length(told)
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

    def _wanted(self, line: Line) -> float:
        if not self._focus:
            return 0.0
        text = line.text.casefold()
        return sum(word in text for word in self._focus) / len(self._focus)


def _length(text: str) -> float:
    """A little for a sentence that says more; nothing beyond a full one."""
    return min(len(text.encode("utf-8", "replace")), 120) / 240

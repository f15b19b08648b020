"""Choose the ledger lines to show within a limit, with a fair share for each kind."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

from refold.domain.facts import cues
from refold.domain.facts.exact_values import is_everyday, kind_of_value
from refold.domain.facts.fact import Fact
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.ledger import LedgerLine, LineKind
from refold.domain.value import replace

from .line import LATER_OK, WORDS, Gathered, merge_pair, merged_lines

_ECHOED: tuple[LineKind, ...] = ("modified", "read", "value")


def merge_ledger(before: Iterable[LedgerLine], fresh: Gathered) -> tuple[LedgerLine, ...]:
    """Merge new lines into an existing ledger, in the order of their newest use.

    Repeated lines are counted. A failure whose call has succeeded since is marked.
    """
    known = map(_with_author, before)
    kept = merged_lines((*known, *fresh.lines))
    for echo in fresh.echoes:
        for kind in _ECHOED:
            found = kept.get((kind, echo.text, (), None))
            if found is not None:
                kept[kind, echo.text, (), None] = merge_pair(echo, found)
                break
    lines = [
        _mark_success(line, fresh.succeeded) if line.kind == "failure" else line
        for line in kept.values()
    ]
    for closing in fresh.closings:
        lines = _close_requests(lines, closing)
    return tuple(_supersede(lines))


_CLAIMED = "claimed"


def _close_requests(lines: Sequence[LedgerLine], closing: Fact) -> list[LedgerLine]:
    """Note what became of the newest requests before a sentence that says so.

    What a person said counts more than what the model claims. Quoted requests stay as they are.
    """
    asked = [x for x in lines if _is_own_request(x) and x.position < closing.position]
    newest = max((line.position for line in asked), default=-1)
    is_claim = closing.by == "model"
    state = f"{_CLAIMED} {closing.state}" if is_claim else closing.state
    note = "" if closing.state == "open" else f"{state} in [{closing.position}]"

    def is_meant(line: LedgerLine) -> bool:
        if line.position != newest or not _is_own_request(line):
            return False
        return not (is_claim and line.note and not line.note.startswith(_CLAIMED))

    return [replace(line, note=note) if is_meant(line) else line for line in lines]


LineState = Literal[
    "",
    "open",
    "done",
    "withdrawn",
    "overridden",
    "claimed done",
    "claimed withdrawn",
    "claimed overridden",
    "ok",
    "failed",
    "failed, later ok",
]
"""State of a line: of a request, a command or a failure; empty for other lines, and if it is unknown.

``claimed``: the model says so, and no person did.
"""
_ENDED = lazy_pattern(rf"((?:{_CLAIMED} )?(?:done|withdrawn|overridden)) in \[(\d+)\]")


def state_of(line: LedgerLine) -> tuple[LineState, int | None]:
    """Return the recorded state of a line, and the position of the message that ended a request, or None."""
    match line.kind:
        case "request" if not line.note:
            return "open", None
        case "request" if found := _ENDED.fullmatch(line.note):
            return cast("LineState", found[1]), int(found[2])
        case "command" if line.note in ("ok", "failed"):
            return cast("LineState", line.note), None
        case "failure":
            return ("failed, later ok" if line.note.endswith(LATER_OK) else "failed"), None
        case _:
            return "", None


def _is_own_request(line: LedgerLine) -> bool:
    return line.kind == "request" and line.author != "quoted"


_SHORTEST_ABOUT = 8
"""Characters of the words before a value that say what it is about."""
_DIGITS = lazy_pattern(r"\d+")


def _supersede(lines: Sequence[LedgerLine]) -> list[LedgerLine]:
    """Keep the newest of several values that the same words give, with the value before it.

    Only what persons and the model say counts: a program prints other values every time.
    """
    newest: dict[tuple[str, str], LedgerLine] = {}
    now: dict[LedgerLine, LedgerLine | None] = {}
    values = [line for line in lines if line.kind == "value" and line.said_by != "tool"]
    values.sort(key=lambda line: line.position)
    for line in values:
        about = line.note.casefold()
        if len(about) < _SHORTEST_ABOUT:
            continue
        if kind_of_value(line.text) not in ("number", "version"):
            continue
        key = about, _DIGITS.sub("0", line.text)
        before = newest.get(key)
        newest[key] = line
        if before is not None and before.position < line.position:
            now[before], now[line] = None, replace(line, was=before.text)
    if not now:
        return list(lines)
    changed = (now.get(line, line) for line in lines)
    return [line for line in changed if line is not None]


def _with_author(line: LedgerLine) -> LedgerLine:
    """Set the author to ``unknown`` if the line is from a ledger that did not record authors."""
    if line.author or line.said_by != "user" or line.kind not in WORDS:
        return line
    return replace(line, author="unknown")


def _mark_success(line: LedgerLine, succeeded: Mapping[str, int]) -> LedgerLine:
    if succeeded.get(line.note, -1) < line.position:
        return line
    return replace(line, note=line.note + LATER_OK)


_BY = {"user": 1.5, "assistant": 0.75, "tool": 0.0}
_MOST_FOR_USE = 3.0


class Ranking:
    """A ranking of the lines of one ledger by comparison. Lines with a higher rank are kept longer."""

    def __init__(self, lines: Sequence[LedgerLine]) -> None:
        positions = [line.position for line in lines]
        self._oldest = min(positions, default=0)
        self._span = max(1, max(positions, default=0) - self._oldest)
        asked = [line.position for line in lines if line.kind == "request"]
        self._crowds = Counter(line.position for line in lines if line.kind == "value")
        self._first, self._latest = min(asked, default=-1), max(asked, default=-1)

    def score(self, line: LedgerLine) -> float:
        """Return how important a line is among lines of its kind."""
        newness = (line.position - self._oldest) / self._span
        used = min(_MOST_FOR_USE, math.log2(line.count)) if line.count != 1 else 0.0
        match line.kind:
            case "request":
                return newness + used + (self._open(line) if not line.note else -1.0)
            case "rule" | "prohibition":
                return 0.5 * newness + used + 2 * cues.weight(_text_with_headings(line))
            case "decision":
                return newness + used + cues.weight(_text_with_headings(line)) + _BY[line.said_by]
            case "command":
                return newness + 1.5 * used - (1.5 if is_everyday(line.text) else 0.0)
            case "failure":
                return newness + used - (2.0 if line.note.endswith(LATER_OK) else 0.0)
            case "value":
                # Tools repeat themselves, so their values count less; an item of a long list also
                # counts less.
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


def _text_with_headings(line: LedgerLine) -> str:
    """Return the text with its headings in front, which can reverse its meaning."""
    return " ".join((*line.under, line.text)) if line.under else line.text


MOST_HIDDEN: dict[LineKind, int] = {
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
"""Number of lines of each kind that are kept without being shown.

Their counts continue and they may be shown later, so a temporary lack of room loses nothing important. The
numbers limit the size of the event.
"""

# Shares of the room for each kind in three rounds: minimum, normal, and if room is left. In each
# round requests and prohibitions of the user come first, so other kinds cannot displace them.
_SHARES: dict[LineKind, tuple[float, float, float]] = {
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
_SHARES_BESIDE_INDEX: dict[LineKind, tuple[float, float, float]] = {
    "prohibition": (0.22, 0.8, 1.0),
    "rule": (0.22, 0.8, 1.0),
    "request": (0.4, 0.9, 1.0),
    "decision": (0.12, 0.3, 1.0),
    "modified": (0.0, 0.0, 1.0),
    "command": (0.0, 0.0, 1.0),
    "value": (0.0, 0.1, 0.4),
    "failure": (0.04, 0.1, 0.15),
    "read": (0.0, 0.0, 0.3),
}
"""The same where an index lists paths, commands and values in fewer tokens, so that words come first.

On recorded sessions, with a budget of 5 %, 77 % of what was asked is shown, and 60 % with the other shares; of the
paths 66 and 68 %.
"""


class Fitted(NamedTuple):
    """Chosen lines: shown ones in the order of the conversation, then hidden ones, most important first."""

    lines: tuple[LedgerLine, ...] = ()
    shown: int = 0
    """Number of lines that are shown."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Functions that return the rendered size of a line, in tokens."""

    line: Callable[[LedgerLine], int]
    heading: Callable[[LedgerLine], int]
    """Tokens of the heading before the first line of a kind and an author."""


def choose_lines(
    lines: Sequence[LedgerLine],
    room: int,
    costs: Costs,
    *,
    failures: int = 8,
    has_index: bool = False,
) -> Fitted:
    """Choose the lines to show within ``room`` tokens. ``lines`` must not contain duplicates."""
    return LineChooser(lines, costs, failures=failures, has_index=has_index).choose(room)


_Group = tuple[LineKind, str | None]
"""Kind and author of lines under one heading."""


_Ranked = tuple[int, LedgerLine]
"""A line after its place among the lines as they were given."""


class LineChooser:
    """Chooses lines for one room after the other. Each line is ranked and measured once."""

    def __init__(
        self,
        lines: Sequence[LedgerLine],
        costs: Costs,
        *,
        failures: int = 8,
        has_index: bool = False,
    ) -> None:
        """Rank the lines, which must not contain duplicates. At most ``failures`` failures are kept."""
        self._shares = _SHARES_BESIDE_INDEX if has_index else _SHARES
        self._measure = costs
        self.costs: list[int | None] = [None] * len(lines)
        """Costs of the lines that were measured, without headings."""
        self._headings: dict[_Group, int] = {}
        ranking = Ranking(lines)
        scores = [-score for score in map(ranking.score, lines)]
        ranked = sorted(
            range(len(lines)), key=lambda at: (scores[at], lines[at].kind, lines[at].text)
        )
        self._of_kind: dict[LineKind, list[_Ranked]] = {kind: [] for kind in self._shares}
        for at in ranked:
            self._of_kind[lines[at].kind].append((at, lines[at]))
        del self._of_kind["failure"][failures:]

    def choose(self, room: int) -> Fitted:
        """Choose the lines to show within ``room`` tokens."""
        choice = _Choice(room, self)
        for most in range(3):
            for kind, shares in self._shares.items():
                choice.take(kind, self._of_kind[kind], int(room * shares[most]))
        hidden = [
            line
            for kind, most in MOST_HIDDEN.items()
            for line in [x for at, x in self._of_kind[kind] if at not in choice.taken][:most]
        ]
        # Lines of one message keep their order.
        taken = sorted(choice.taken.items(), key=lambda item: (item[1].position, item[0]))
        return Fitted((*(line for _, line in taken), *hidden), len(taken))

    def measure(self, at: int, line: LedgerLine) -> int:
        """Return the cost of a line without a heading, and remember it."""
        cost = self.costs[at] = self._measure.line(line)
        return cost

    def heading(self, group: _Group, line: LedgerLine) -> int:
        """Return the cost of the heading of a group that has this line."""
        if group not in self._headings:
            self._headings[group] = self._measure.heading(line)
        return self._headings[group]


class _Choice:
    def __init__(self, room: int, chooser: LineChooser) -> None:
        self.taken: dict[int, LedgerLine] = {}
        self._left = room
        self._chooser = chooser
        self._spent: dict[LineKind, int] = {}
        self._headed: set[_Group] = set()

    def take(self, kind: LineKind, ranked: Sequence[_Ranked], allowed: int) -> None:
        """Take the lines of a kind in their order, as far as there is room for them and their kind.

        A line that a shown line already contains is left out.
        """
        taken, chooser, spent = self.taken, self._chooser, self._spent.get(kind, 0)
        costs, has_heading = chooser.costs, set[str | None]()
        for at, line in ranked:
            if self._left <= 0 or spent >= allowed:
                break
            if at in taken:
                continue
            cost = costs[at]
            if cost is None:
                cost = chooser.measure(at, line)
            author = line.author
            if author not in has_heading:
                if (kind, author) in self._headed:
                    has_heading.add(author)
                else:
                    cost += chooser.heading((kind, author), line)
            if cost <= self._left and spent + cost <= allowed and not self._is_said(line):
                taken[at] = line
                self._left -= cost
                spent += cost
                self._headed.add((kind, author))
        self._spent[kind] = spent

    def _is_said(self, line: LedgerLine) -> bool:
        """Return whether a shown line contains this value as whole words."""
        if line.kind != "value":
            return False
        near = [known.text for known in self.taken.values() if line.text in known.text]
        if not near:
            return False
        whole = re.compile(rf"(?<![\w/.-]){re.escape(line.text)}(?![\w/-]|\.\w)")
        return any(map(whole.search, near))

"""Choose the entries of the index to show: those that predict their use again, for their size."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .entry import STANDING, IndexEntry, Kind, Source

_WORTH: dict[Kind, float] = {"said": 2.0, "path": 2.2, "command": 1.7, "name": 0.6, "value": 0.3}
"""Weight of a kind when kinds compete for the same room."""
_SHARES: dict[Kind, float] = {"said": 0.22, "path": 0.6, "command": 0.4, "name": 0.3, "value": 0.1}
"""Share of the room that a kind may take before other kinds had their turn."""
_BY: dict[Source, float] = {
    "person": 2.5,
    "unknown": 2.5,
    "model": 0.4,
    "call": 0.0,
    "result": -0.5,
}
MOST_KEPT: dict[Kind, int] = {"said": 60, "path": 200, "command": 80, "name": 250, "value": 50}
"""Number of entries of each kind that are kept, shown or not. It limits the size of the event."""


class Shown(NamedTuple):
    """The entries of a summary: shown ones, then the others, the most useful first."""

    entries: tuple[IndexEntry, ...] = ()
    shown: int = 0
    """Number of entries that are shown."""
    left_out: int = 0
    """Tokens of the kept entries that had no room."""


def choose_entries(
    entries: Sequence[IndexEntry],
    room: int,
    cost: Callable[[str], int],
    is_visible: Callable[[str], bool],
) -> Shown:
    """Choose the entries to show within ``room`` tokens.

    ``cost`` returns the tokens of a text, and ``is_visible`` whether the request shows it anyway. Where the work
    stood comes first; other entries follow by what predicts that they are used again, divided by their size.
    """
    standing = [e for e in entries if e.kind in STANDING]
    ranked = _rank([e for e in entries if e.kind not in STANDING])
    choice = _Choice(room, cost, is_visible)
    order = list(STANDING)
    standing.sort(key=lambda entry: (order.index(entry.kind), -entry.position, entry.text))
    for entry in standing:
        choice.take(entry, room)
    candidates = [
        (_WORTH[entry.kind] * score / choice.cost(entry), entry) for score, entry in ranked
    ]
    candidates.sort(key=lambda pair: (-pair[0], pair[1].kind, pair[1].text))
    for share in (_SHARES, None):
        for _, entry in candidates:
            choice.take(entry, int(room * share[entry.kind]) if share else room)
    chosen = [e for e in (*standing, *(entry for _, entry in ranked)) if e in choice.taken]
    kept = _kept(standing, ranked, choice.taken)
    left_out = sum(choice.cost(entry) for entry in kept if entry not in choice.passed)
    return Shown((*chosen, *kept), len(chosen), left_out)


def _kept(
    standing: Sequence[IndexEntry],
    ranked: Sequence[tuple[float, IndexEntry]],
    taken: set[IndexEntry],
) -> list[IndexEntry]:
    """Return the entries to keep without showing them."""
    left = dict(MOST_KEPT)
    kept = [entry for entry in standing if entry not in taken]
    for _, entry in ranked:
        left[entry.kind] -= 1
        if left[entry.kind] >= 0 and entry not in taken:
            kept.append(entry)
    return kept


def _rank(entries: Sequence[IndexEntry]) -> list[tuple[float, IndexEntry]]:
    """Return the entries with their scores, the highest first."""
    positions = [entry.position for entry in entries]
    oldest = min(positions, default=0)
    span = max(1, max(positions, default=0) - oldest)

    def score(entry: IndexEntry) -> float:
        newness = (entry.position - oldest) / span
        last = (entry.last_call - oldest) / span if entry.last_call >= 0 else 0.0
        return (
            1.0
            + 1.5 * math.log2(1 + entry.calls)
            + 0.5 * math.log2(entry.messages)
            + newness
            + 0.4 * last
            + _BY[entry.by]
            + (0.5 if entry.edited else 0.0)
        )

    scored = [(score(entry), entry) for entry in entries]
    return sorted(scored, key=lambda pair: (-pair[0], pair[1].kind, pair[1].text))


class _Choice:
    def __init__(
        self, room: int, cost: Callable[[str], int], is_visible: Callable[[str], bool]
    ) -> None:
        self.taken: set[IndexEntry] = set()
        self._left = room
        self._cost = cost
        self._is_visible = is_visible
        self._costs: dict[str, int] = {}
        self._spent: dict[Kind, int] = {}
        self._texts = ""
        self.passed: set[IndexEntry] = set()
        """Entries that the request shows anyway."""

    def cost(self, entry: IndexEntry) -> int:
        """Return the tokens of an entry. A command has a line of its own."""
        found = self._costs.get(entry.text)
        if found is None:
            found = self._costs[entry.text] = self._cost(f" {entry.text}")
        return found + (0 if entry.kind in ("path", "name", "value") else 5)

    def take(self, entry: IndexEntry, allowed: int) -> None:
        """Take an entry if there is room for it and its kind, unless the request shows it anyway."""
        if entry in self.taken or entry in self.passed:
            return
        cost, spent = self.cost(entry), self._spent.get(entry.kind, 0)
        if cost > self._left or spent + cost > allowed:
            return
        if has_whole(self._texts, entry.text) or self._is_visible(entry.text):
            self.passed.add(entry)
            return
        self.taken.add(entry)
        self._texts += f"\n{entry.text}"
        self._left -= cost
        self._spent[entry.kind] = spent + cost


def has_whole(text: str, value: str) -> bool:
    """Return whether a text has a value as whole words."""
    at = text.find(value)
    while at >= 0:
        if not _goes_on(text[at - 1 : at]) and not _goes_on(
            text[at + len(value) : at + len(value) + 1]
        ):
            return True
        at = text.find(value, at + 1)
    return False


def _goes_on(character: str) -> bool:
    return bool(character) and (character.isalnum() or character in "_-/")

"""Entries of the index: exact values of covered messages, and the choice of those to show."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from refold.domain.facts import cues
from refold.domain.facts.exact_values import steps_and_pipes
from refold.domain.facts.fact import VALUES, Fact, ResultNames
from refold.domain.facts.fact import Source as Origin
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.ledger import STANDING, EntryKind, EntrySource, IndexEntry
from refold.domain.text_cuts import last_mark

_Key = tuple[EntryKind, str]
_SOURCES: tuple[EntrySource, ...] = ("person", "unknown", "model", "call", "result")
_RANK = {source: rank for rank, source in enumerate(_SOURCES)}


def merge_entries(
    known: Iterable[IndexEntry], fresh: Iterable[IndexEntry]
) -> tuple[IndexEntry, ...]:
    """Return known and new entries, each text once. The new ones come from later messages."""
    kept: dict[_Key, IndexEntry] = {entry[:2]: entry for entry in known}
    take = kept.pop
    for entry in fresh:
        key = entry[:2]
        before = take(key, None)
        kept[key] = entry if before is None else _merge(before, entry)
    standing: dict[EntryKind, list[_Key]] = {kind: [] for kind in STANDING}
    for key in [key for key in kept if key[0] in STANDING]:
        standing[key[0]].append(key)
    for kind, keys in standing.items():
        keys.sort(key=lambda key: kept[key].position)
        for key in keys[: -STANDING[kind]]:
            del kept[key]
    return tuple(kept.values())


def _merge(before: IndexEntry, entry: IndexEntry) -> IndexEntry:
    _, _, position, messages, calls, last_call, by, edited = before
    kind, text, place, more, further, newest, source, written = entry
    return _as_entry(
        (
            kind,
            text,
            position if position > place else place,
            messages + more,
            calls + further,
            last_call if last_call > newest else newest,
            by if _RANK[by] <= _RANK[source] else source,
            edited or written,
        )
    )


_as_entry: Callable[[tuple[Any, ...]], IndexEntry] = partial(tuple.__dict__["__new__"], IndexEntry)
"""Makes an entry of all its fields. There are many, and a call with names takes twice as long."""


_LONGEST: Mapping[EntryKind, int] = {
    "decision": 300,
    "ran": 300,
    "result": 240,
    "file": 200,
    "said": 300,
    "path": 200,
    "command": 1_200,
    "name": 60,
    "value": 240,
}
"""Maximum length of each kind in characters. Of a longer decision or result the beginning is kept."""
_SHORTEST = 4
_SHORTEST_STEP = 6
_SOURCE_OF: Mapping[Origin, EntrySource] = {
    "person": "person",
    "unknown": "unknown",
    "quoted": "unknown",
    "program": "result",
    "model": "model",
    "call": "call",
    "result": "result",
}


_Place = tuple[EntryKind, str, int]
"""Kind and text of a value with the position of its message."""


def entries_of(facts: Iterable[Fact], names: Iterable[ResultNames] = ()) -> tuple[IndexEntry, ...]:
    """Return the exact values among these facts and names, and where the work stood after them."""
    reader = _Reader()
    for fact in facts:
        if fact[0] == "name":
            reader.take_value("name", fact)
        elif fact[0] in VALUES:
            reader.take_value("value", fact)
        else:
            reader.take(fact)
    return merge_entries(_entries_of_names(names, reader.places), reader.found)


def _entries_of_names(
    results: Iterable[ResultNames], known: Collection[_Place]
) -> Iterator[IndexEntry]:
    """Yield the names of results, each once. Those that are ``known`` from the same message count there."""
    counts, newest = Counter[str](), dict[str, int]()
    apart = {position for kind, _, position in known if kind == "name"}
    for position, names in results:
        texts: Collection[str] = names.keys()
        if position in apart:
            texts = [text for text in names if ("name", text, position) not in known]
        counts.update(texts)
        newest |= dict.fromkeys(texts, position)
    shortest, longest = _SHORTEST, _LONGEST["name"]
    for text, position in newest.items():
        if shortest <= len(text) <= longest:  # A name is one word.
            yield _as_entry(("name", text, position, counts[text], 0, -1, "result", False))


class _Reader:
    def __init__(self) -> None:
        self.found: list[IndexEntry] = []
        self.places: dict[_Place, int] = {}
        """Places in ``found`` of the values of each message."""

    def take(self, fact: Fact) -> None:
        """Take a fact that is neither a name nor a value."""
        match fact.kind:
            case "path" if fact.state == "edited":
                self._add("path", fact, edited=True)
                self._add("file", fact)
            case "path" if fact.state == "read":
                pass  # It counts where the call names it.
            case "path":
                self.take_value("path", fact)
            case "command" if fact.state:
                self._add("command", fact)
                self._add("ran", fact)
                for step in _steps(fact):
                    self._add("command", fact._replace(text=step))
            case "outcome" if fact.called_at >= 0:
                self._add("result", fact)
            case "said" if fact.by != "model":
                self.take_value("said", fact)
            case "decision" if fact.by == "model":
                self._decision(fact)
            case "command":
                self.take_value("value", fact)
            case _:
                pass

    def _decision(self, fact: Fact) -> None:
        """Add a decision in place of an earlier one of the same message."""
        last = self.found[-1] if self.found else None
        if last is not None and last.kind == "decision" and last.position == fact.position:
            self.found.pop()
        self._add("decision", fact)

    def _add(self, kind: EntryKind, fact: Fact, *, edited: bool = False) -> None:
        entry = _entry(kind, fact, edited=edited)
        if entry is not None:
            # The paths of a call count where it names them.
            self.found.append(entry._replace(messages=0, calls=0) if edited else entry)

    def take_value(self, kind: EntryKind, fact: Fact) -> None:
        """Take an exact value, once for each message."""
        entry = _entry(kind, fact)
        if entry is None:
            return
        at = self.places.setdefault((kind, entry.text, entry.position), len(self.found))
        if at == len(self.found):
            self.found.append(entry)
            return
        known = self.found[at]
        self.found[at] = _merge(known, entry)._replace(
            messages=known.messages, calls=max(known.calls, entry.calls), edited=known.edited
        )


def _entry(kind: EntryKind, fact: Fact, *, edited: bool = False) -> IndexEntry | None:
    """Return the entry of a fact, or None if it is too short or too long."""
    text = " ".join(fact.text.split())
    if kind in ("decision", "ran", "result"):
        text = _beginning(text, _LONGEST[kind])
    if not _SHORTEST <= len(text) <= _LONGEST[kind]:
        return None
    if text != fact.text and cues.redact(text) != text:
        return None
    is_call = fact.by == "call"
    last_call = fact.position if is_call else -1
    by = _SOURCE_OF[fact.by]
    return _as_entry((kind, text, fact.position, 1, int(is_call), last_call, by, edited))


def _steps(fact: Fact) -> Iterator[str]:
    """Yield the steps of a command that succeeded."""
    if fact.state == "ok":
        yield from (part for part in steps_and_pipes(fact.text) if len(part) >= _SHORTEST_STEP)


def _beginning(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: last_mark(text, (" ",), 3 * limit // 4, limit)[0]]


_WORTH: dict[EntryKind, float] = {
    "said": 2.0,
    "path": 2.2,
    "command": 2.1,
    "name": 0.6,
    "value": 0.3,
}
"""Weight of a kind when kinds compete for the same room."""
_SHARES: dict[EntryKind, float] = {
    "said": 0.22,
    "path": 0.6,
    "command": 0.4,
    "name": 0.3,
    "value": 0.1,
}
"""Share of the room that a kind may take before other kinds had their turn."""
_BY: dict[EntrySource, float] = {
    "person": 2.5,
    "unknown": 2.5,
    "model": 0.4,
    "call": 0.0,
    "result": -0.5,
}
MOST_KEPT: dict[EntryKind, int] = {"said": 60, "path": 200, "command": 80, "name": 250, "value": 50}
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
    visible: str = "",
) -> Shown:
    """Choose the entries to show within ``room`` tokens.

    ``cost`` returns the tokens of a text, and ``visible`` is what the request shows anyway. Where the work stood
    comes first; other entries follow by what predicts that they are used again, divided by their size.
    """
    order = list(STANDING)
    standing = [e for e in entries if e[0] in STANDING]
    standing.sort(key=lambda entry: (order.index(entry.kind), -entry.position, entry.text))
    ranked = _rank([e for e in entries if e[0] not in STANDING])
    every = [*standing, *[one[-1] for one in ranked]]
    costs = _costs_of(every, cost)
    choice = _Choice(room, visible, every, costs)
    first = len(standing)
    choice.take(range(first), dict.fromkeys(STANDING, room))
    by_use = [
        (_WORTH[kind] * score / costs[place], kind, text, place)
        for place, (score, kind, text, _, _) in enumerate(ranked, first)
    ]
    by_use.sort()
    left: Sequence[int] = [one[-1] for one in by_use]
    for share in (_SHARES, None):
        allowed: dict[EntryKind, int] = dict.fromkeys(_WORTH, room)
        if share is not None:
            allowed = {kind: int(room * part) for kind, part in share.items()}
        left = choice.take(left, allowed)
    chosen = [every[place] for place in sorted(choice.taken)]
    kept = list(_kept(every, first, choice.taken))
    left_out = sum([costs[place] for place in kept if place not in choice.passed])
    return Shown((*chosen, *[every[place] for place in kept]), len(chosen), left_out)


_OWN_LINE = 5
_BRIEF: frozenset[EntryKind] = frozenset({"path", "name", "value"})


def _costs_of(entries: Iterable[IndexEntry], cost: Callable[[str], int]) -> list[int]:
    """Return the tokens of each entry. A command has a line of its own."""
    brief = _BRIEF
    return [
        cost(f" {entry[1]}") if entry[0] in brief else cost(f" {entry[1]}") + _OWN_LINE
        for entry in entries
    ]


def _kept(every: Sequence[IndexEntry], first: int, taken: Collection[int]) -> Iterator[int]:
    """Yield the places of the entries to keep without showing them. Ranked ones begin at ``first``."""
    yield from [place for place in range(first) if place not in taken]
    left = dict(MOST_KEPT)
    for place in range(first, len(every)):
        kind = every[place][0]
        rest = left[kind] = left[kind] - 1
        if rest >= 0 and place not in taken:
            yield place


_Ranked = tuple[float, EntryKind, str, int, IndexEntry]
"""The score of an entry with a minus, so that the highest comes first; then what decides between equal ones."""


def _rank(entries: Sequence[IndexEntry]) -> list[_Ranked]:
    """Return the entries with their scores, the highest first."""
    positions = [entry.position for entry in entries]
    oldest = min(positions, default=0)
    span = max(1, max(positions, default=0) - oldest)
    log2 = math.log2
    ranked = list[_Ranked]()
    for place, entry in enumerate(entries):
        kind, text, position, messages, calls, last_call, by, edited = entry
        score = 1.0
        if calls:
            score += 1.5 * log2(1 + calls)
        if messages != 1:
            score += 0.5 * log2(messages)
        score += (position - oldest) / span
        if last_call >= 0:
            score += 0.4 * ((last_call - oldest) / span)
        score += _BY[by]
        if edited:
            score += 0.5
        ranked.append((-score, kind, text, place, entry))
    ranked.sort()
    return ranked


class _Choice:
    """The entries that are taken for a room. ``costs`` are those of ``entries``."""

    def __init__(
        self, room: int, visible: str, entries: Sequence[IndexEntry], costs: Sequence[int]
    ) -> None:
        self.taken: set[int] = set()
        """Places of the entries to show."""
        self.passed: set[int] = set()
        """Places of the entries that the request shows anyway."""
        self._left = room
        self._entries, self._costs = entries, costs
        self._spent: dict[EntryKind, int] = {}
        self._visible, self._texts = visible, [""]
        self._words = whole_words(visible)
        """The words that the request shows, with those of the entries that are taken."""

    def take(self, places: Iterable[int], allowed: Mapping[EntryKind, int]) -> list[int]:
        """Take entries, and return the places of those for which there is no room, or none for their kind.

        An entry that the request shows anyway is passed.
        """
        entries, costs, spent, words = self._entries, self._costs, self._spent, self._words
        rest: list[int] = []
        for place in places:
            entry, cost = entries[place], costs[place]
            kind, text = entry[0], entry[1]
            spends = spent.get(kind, 0) + cost
            if cost > self._left or spends > allowed[kind]:
                rest.append(place)
                continue
            is_word = text.isidentifier() and text.isascii()
            own = (text,) if is_word else _WHOLE_WORD.findall(text)
            if words.issuperset(own) and (is_word or self._shows(text)):
                self.passed.add(place)
                continue
            self.taken.add(place)
            self._texts.append(text)
            words.update(own)
            self._left -= cost
            spent[kind] = spends
        return rest

    def _shows(self, text: str) -> bool:
        if has_whole(self._visible, text):
            return True
        self._texts = ["\n".join(self._texts)]
        return has_whole(self._texts[0], text)


_WHOLE_WORD = lazy_pattern(r"[\w/-]+")
"""A run of characters that go on. A text that has a value as whole words has each of its runs."""
_WORDS_APART = bytes(
    byte if byte > 127 or chr(byte).isalnum() or chr(byte) in "_/-" else 32 for byte in range(256)
)
"""Translation of UTF-8 that replaces each ASCII character that ends a run by a space."""


def whole_words(text: str) -> set[str]:
    """Return the different words of a text that ``_WHOLE_WORD`` finds."""
    apart = text.encode("utf-8", "surrogatepass").translate(_WORDS_APART)
    words = set(apart.decode("utf-8", "surrogatepass").split())
    for mixed in [word for word in words if not word.isascii()]:
        words.remove(mixed)
        words.update(_WHOLE_WORD.findall(mixed))
    return words


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

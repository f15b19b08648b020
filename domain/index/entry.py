"""An entry of the index: an exact value of covered messages, and how often it was used."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from refold.domain.facts import cues
from refold.domain.facts.exact_values import steps_and_pipes
from refold.domain.facts.fact import VALUES, Fact
from refold.domain.facts.fact import Source as Place
from refold.domain.text_cuts import last_mark

Kind = Literal["decision", "ran", "result", "file", "said", "path", "command", "name", "value"]
"""Kind of an entry.

The last decisions of the model, the last command that ran, the end of its result, and the file that was edited last
say where the work stood. ``said`` is a sentence that a person typed. A path, a shell command or one of its steps, a
name composed of several words, and a number, version, id or address are exact values.
"""

STANDING: dict[Kind, int] = {"decision": 3, "ran": 1, "result": 1, "file": 1}
"""Kinds that say where the work stood, and how many of the newest entries are kept of each."""

Source = Literal["person", "unknown", "model", "call", "result"]
"""Where a value stood.

In words of a person, of a user message whose author was not given, or of the model, in the input of a tool call, or
in the result of one.
"""


class IndexEntry(NamedTuple):
    """An exact value with its uses. It is stored as a list, because there are many of them."""

    kind: Kind
    text: str
    """Text as it stood in the message, on one line. Line breaks of a command are spaces."""
    position: int
    """Position of the newest covered message with the text."""
    messages: int = 1
    """Number of covered messages with the text."""
    calls: int = 0
    """Number of these messages that have it in the input of a tool call."""
    last_call: int = -1
    """Position of the newest of these calls, or -1."""
    by: Source = "result"
    """Where it stood. Of several, a person counts before the model, then a call, then a result."""
    edited: bool = False
    """Whether a tool call wrote the file at this path."""


_Key = tuple[Kind, str]
_SOURCES: tuple[Source, ...] = ("person", "unknown", "model", "call", "result")


def merge_entries(
    known: Iterable[IndexEntry], fresh: Iterable[IndexEntry]
) -> tuple[IndexEntry, ...]:
    """Return known and new entries, each text once. The new ones come from later messages."""
    kept: dict[_Key, IndexEntry] = {(entry.kind, entry.text): entry for entry in known}
    for entry in fresh:
        key: _Key = (entry.kind, entry.text)
        before = kept.pop(key, None)
        kept[key] = entry if before is None else _merge(before, entry)
    old = {key for kind, most in STANDING.items() for key in _of_kind(kept, kind)[:-most]}
    return tuple(entry for key, entry in kept.items() if key not in old)


def _of_kind(kept: Mapping[_Key, IndexEntry], kind: Kind) -> list[_Key]:
    """Return the keys of a kind, the newest last."""
    return sorted((key for key in kept if key[0] == kind), key=lambda key: kept[key].position)


def _merge(before: IndexEntry, entry: IndexEntry) -> IndexEntry:
    return entry._replace(
        position=max(before.position, entry.position),
        messages=before.messages + entry.messages,
        calls=before.calls + entry.calls,
        last_call=max(before.last_call, entry.last_call),
        by=min(before.by, entry.by, key=_SOURCES.index),
        edited=before.edited or entry.edited,
    )


_LONGEST: Mapping[Kind, int] = {
    "decision": 300,
    "ran": 300,
    "result": 200,
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
_SPACES = re.compile(r"\s+")
_SOURCE_OF: Mapping[Place, Source] = {
    "person": "person",
    "unknown": "unknown",
    "quoted": "unknown",
    "program": "result",
    "model": "model",
    "call": "call",
    "result": "result",
}


def entries_of(facts: Iterable[Fact]) -> tuple[IndexEntry, ...]:
    """Return the exact values among these facts, and where the work stood after them."""
    reader = _Reader()
    for fact in facts:
        reader.take(fact)
    return merge_entries((), reader.found)


class _Reader:
    def __init__(self) -> None:
        self.found: list[IndexEntry] = []
        self._here: dict[tuple[Kind, str, int], int] = {}
        """Places in ``found`` of the values of each message."""

    def take(self, fact: Fact) -> None:
        match fact.kind:
            case "path" if fact.state == "edited":
                self._add("path", fact, edited=True)
                self._add("file", fact)
            case "path" if fact.state == "read":
                pass  # It counts where the call names it.
            case "path" | "name":
                self._value(fact.kind, fact)
            case "command" if fact.state:
                self._add("command", fact)
                self._add("ran", fact)
                for step in _steps(fact):
                    self._add("command", fact._replace(text=step))
            case "outcome":
                self._add("result", fact)
            case "said":
                self._value("said", fact)
            case "decision" if fact.by == "model":
                # Only the last one of a message.
                if self.found and self.found[-1][:3:2] == ("decision", fact.position):
                    self.found.pop()
                self._add("decision", fact)
            case "command":
                self._value("value", fact)
            case kind if kind in VALUES:
                self._value("value", fact)
            case _:
                pass

    def _add(self, kind: Kind, fact: Fact, *, edited: bool = False) -> None:
        entry = _entry(kind, fact, edited=edited)
        if entry is not None:
            # The paths of a call count where it names them.
            self.found.append(entry._replace(messages=0, calls=0) if edited else entry)

    def _value(self, kind: Kind, fact: Fact) -> None:
        entry = _entry(kind, fact)
        if entry is None:
            return
        key = (kind, entry.text, entry.position)
        at = self._here.get(key)
        if at is None:
            self._here[key] = len(self.found)
            self.found.append(entry)
            return
        known = self.found[at]
        self.found[at] = known._replace(
            calls=max(known.calls, entry.calls),
            last_call=max(known.last_call, entry.last_call),
            by=min(known.by, entry.by, key=_SOURCES.index),
        )


def _entry(kind: Kind, fact: Fact, *, edited: bool = False) -> IndexEntry | None:
    """Return the entry of a fact, or None if it is too short or too long."""
    text = _SPACES.sub(" ", fact.text).strip()
    if kind in ("decision", "ran", "result"):
        text = _beginning(text, _LONGEST[kind])
    if not _SHORTEST <= len(text) <= _LONGEST[kind]:
        return None
    if text != fact.text and cues.redact(text) != text:
        return None
    is_call = fact.by == "call"
    last_call = fact.position if is_call else -1
    by = _SOURCE_OF[fact.by]
    return IndexEntry(kind, text, fact.position, 1, int(is_call), last_call, by, edited)


def _steps(fact: Fact) -> Iterator[str]:
    """Yield the steps of a command that succeeded."""
    if fact.state == "ok":
        yield from (part for part in steps_and_pipes(fact.text) if len(part) >= _SHORTEST_STEP)


def _beginning(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: last_mark(text, (" ",), limit // 2, limit)[0]]

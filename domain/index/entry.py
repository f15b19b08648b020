"""An entry of the index: an exact value of covered messages, and how often it was used."""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

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

"""The text of the index: a title for each group, and rows that begin with the places of their values."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from refold.domain.ledger import STANDING, EntryKind, EntrySource, IndexEntry

_TITLES: Mapping[EntryKind, str] = {
    "path": "## Files",
    "command": "## Commands that ran",
    "name": "## Names",
    "value": "## Other values",
}
_STANDING = "## Where the work stood before the messages below"
_SAID_BY: Mapping[EntrySource, str] = {
    "person": "## Sentences of the user",
    "unknown": "## Sentences in messages whose author is not recorded",
}
_POSITION, _TEXT = attrgetter("position"), attrgetter("text")
INDEX_HEADINGS = (_STANDING, *_SAID_BY.values(), *_TITLES.values())
"""All headings of the index in the order of rendering."""
_LABELS: Mapping[EntryKind, str] = {
    "decision": "last decision: ",
    "ran": "last command: ",
    "result": "last result ended with: ",
    "file": "file in work: ",
}


class IndexRow(NamedTuple):
    """A row as it is rendered, and the entries that it shows."""

    text: str
    entries: Sequence[IndexEntry]


def index_text(entries: Sequence[IndexEntry]) -> str:
    """Return the index as text, or an empty string without entries.

    Like a ledger line, each row begins with the bracketed position of its source, or with those of its oldest and
    newest source.
    """
    groups = index_rows(entries)
    return "\n".join("\n".join([title, *[row.text for row in rows]]) for title, rows in groups)


def index_rows(entries: Sequence[IndexEntry]) -> Iterator[tuple[str, Sequence[IndexRow]]]:
    """Yield each group of the index that has entries: its title and its rows, in the order of rendering."""
    kinds: dict[EntryKind, list[IndexEntry]] = {}
    for entry in entries:
        kinds.setdefault(entry.kind, []).append(entry)
    standing = [e for e in entries if e.kind in STANDING]
    groups = [(_STANDING, [_place_row(e, f"{_LABELS[e.kind]}{e.text}") for e in standing])]
    said = kinds.get("said", [])
    groups += [
        (title, _said_rows([e for e in said if e.by == by])) for by, title in _SAID_BY.items()
    ]
    groups += [(title, _rows(kind, kinds.get(kind, []))) for kind, title in _TITLES.items()]
    yield from [(title, rows) for title, rows in groups if rows]


def index_title(entry: IndexEntry) -> str:
    """Return the title of the group that shows an entry."""
    if entry.kind in STANDING:
        return _STANDING
    return _SAID_BY.get(entry.by, "") if entry.kind == "said" else _TITLES[entry.kind]


def _rows(kind: EntryKind, entries: Sequence[IndexEntry]) -> list[IndexRow]:
    own = sorted(entries, key=_POSITION)
    if kind == "command":
        return [_place_row(entry, entry.text) for entry in own]
    if kind == "path":
        return list(_rows_by_folder(own))
    return [_row(own)] if own else []


def _place_row(entry: IndexEntry, text: str) -> IndexRow:
    return IndexRow(f"[{entry.position}] {text}", (entry,))


def _said_rows(entries: Iterable[IndexEntry]) -> list[IndexRow]:
    """Return a row for each message."""
    messages: dict[int, list[IndexEntry]] = {}
    for entry in sorted(entries, key=_POSITION):
        messages.setdefault(entry.position, []).append(entry)
    return [
        IndexRow(f"[{position}] " + " ".join([e.text for e in own]), own)
        for position, own in messages.items()
    ]


def _rows_by_folder(entries: Sequence[IndexEntry]) -> Iterator[IndexRow]:
    """Yield a row for each folder with several paths, and one for all other paths."""
    folders: dict[str, list[IndexEntry]] = {}
    for entry in sorted(entries, key=_TEXT):
        folders.setdefault(entry.text.rpartition("/")[0], []).append(entry)
    alone = [own[0] for own in folders.values() if len(own) == 1]
    for own in folders.values():
        if len(own) > 1:
            yield _row(own)
    if alone:
        yield _row(alone)


def _row(entries: Sequence[IndexEntry]) -> IndexRow:
    positions = [entry.position for entry in entries]
    first, last = min(positions), max(positions)
    place = f"{first}" if first == last else f"{first}–{last}"
    return IndexRow(f"[{place}] " + " ".join([entry.text for entry in entries]), entries)

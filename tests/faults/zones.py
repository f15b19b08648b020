"""Zones of the files of a store: which bytes of which file are a header, a leaf, a frame, a key.

Knows the formats of SQLite, and of refold only the names of its files and of three tables.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .sample_store import LOG, Store

PAGE = 4096
WAL_HEADER, FRAME_HEADER = 32, 24


class Range(NamedTuple):
    """Bytes of a file."""

    file: str
    start: int
    stop: int


Find = Callable[[Path], Iterator[Range]]


def of_whole(name: str) -> Find:
    """All bytes of a file, if it is there."""

    def find(folder: Path) -> Iterator[Range]:
        path = folder / name
        if path.exists() and path.stat().st_size:
            yield Range(name, 0, path.stat().st_size)

    return find


def of_bytes(name: str, start: int, stop: int) -> Find:
    """The same bytes of a file always."""

    def find(folder: Path) -> Iterator[Range]:
        if (folder / name).exists() and (folder / name).stat().st_size >= stop:
            yield Range(name, start, stop)

    return find


def of_pages(name: str, tables: Sequence[str], kind: str) -> Find:
    """The pages of some tables or their indexes, of one kind: ``leaf``, ``internal``, ``overflow``."""

    def find(folder: Path) -> Iterator[Range]:
        for table, number, of_kind in _pages(folder / name):
            if of_kind == kind and table.startswith(tuple(tables)) and number > 1:
                yield Range(name, (number - 1) * PAGE, number * PAGE)

    return find


def _pages(path: Path) -> list[tuple[str, int, str]]:
    if not path.exists():
        return []
    # As the file is by itself, without its WAL; nothing is changed by looking.
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    try:
        return connection.execute("SELECT name, pageno, pagetype FROM dbstat").fetchall()
    except sqlite3.DatabaseError:
        return []
    finally:
        connection.close()


def of_frames(name: str, *, header: bool) -> Find:
    """The headers, or the pages, of the frames of a WAL."""

    def find(folder: Path) -> Iterator[Range]:
        size = (folder / name).stat().st_size if (folder / name).exists() else 0
        for start in range(WAL_HEADER, size - PAGE, FRAME_HEADER + PAGE):
            middle = start + FRAME_HEADER
            yield Range(name, start, middle) if header else Range(name, middle, middle + PAGE)

    return find


def of_texts(words: Sequence[str], pages: Find) -> Find:
    """Where these words stand on some pages; only their last three characters, the number of a key."""

    def find(folder: Path) -> Iterator[Range]:
        for page in pages(folder):
            content = (folder / page.file).read_bytes()
            for word in words:
                start = content.find(word.encode(), page.start, page.stop)
                if start >= 0:
                    yield Range(page.file, start + len(word) - 3, start + len(word))

    return find


def of_others(store: Store) -> Find:
    """Files that were not there when the store was made, of whichever version of refold made them."""
    known = {p.name for p in store.folder.iterdir()}

    def find(folder: Path) -> Iterator[Range]:
        for path in sorted(folder.iterdir()):
            if path.is_file() and path.name not in known and path.stat().st_size:
                yield Range(path.name, 0, path.stat().st_size)

    return find


def zones_of(store: Store) -> Mapping[str, Find]:
    """All zones of a store by name, those that are empty here left out."""
    views, recall, vectors = "agent.views.db", "agent.recall.db", "agent.vectors.db"
    keys = [s.key for s in store.said if s.key]
    key_pages = of_pages(LOG, ["message_keys", "sqlite_autoindex_message_keys"], "leaf")
    found: dict[str, Find] = {
        "log header": of_bytes(LOG, 0, 100),
        "log schema": of_bytes(LOG, 100, PAGE),
        "events internal": of_pages(LOG, ["stored_events"], "internal"),
        "events leaf": of_pages(LOG, ["stored_events"], "leaf"),
        "events index": of_pages(LOG, ["sqlite_autoindex_stored_events"], "leaf"),
        "events overflow": of_pages(LOG, ["stored_events"], "overflow"),
        "snapshots": of_pages(LOG, ["stored_snapshots"], "leaf"),
        "other tables": of_pages(LOG, ["dictionaries", "encryption_keys", "plain_heads"], "leaf"),
        "key pages": key_pages,
        "key texts": of_texts(keys, key_pages),
        "wal header": of_bytes(f"{LOG}-wal", 0, WAL_HEADER),
        "wal frame header": of_frames(f"{LOG}-wal", header=True),
        "wal page": of_frames(f"{LOG}-wal", header=False),
        "shm": of_whole(f"{LOG}-shm"),
        "anchor": of_whole(f"{LOG}.anchor"),
    }
    for name in (views, recall, vectors):
        word = name.split(".")[1]
        found[f"{word} header"] = of_bytes(name, 0, 100)
        found[f"{word} schema"] = of_bytes(name, 100, PAGE)
        found[f"{word} pages"] = of_pages(name, [""], "leaf")
        found[f"{word} wal"] = of_whole(f"{name}-wal")
        found[f"{word} shm"] = of_whole(f"{name}-shm")
    for path in sorted(store.folder.glob("*.lock")):
        found[f"lock {path.name}"] = of_lock(path.name)
    return {
        name: find for name, find in found.items() if next(find(store.folder), None) is not None
    }


def of_lock(name: str) -> Find:
    """A lock file, which has no bytes."""

    def find(folder: Path) -> Iterator[Range]:
        if (folder / name).exists():
            yield Range(name, 0, (folder / name).stat().st_size)

    return find

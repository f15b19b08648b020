"""Distinguish damage of a write-ahead log from a torn tail.

A power loss or a killed process leaves a torn tail: some frames of the last commit, followed by
leftovers of other commits that were never completed. A commit is synced before the next one is written.
So a frame after the last frame of a commit proves that everything before it was on the disk. If there
is a bad frame before it, the file was damaged later, and SQLite would drop every commit from there on.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import repeat
from pathlib import Path
from typing import BinaryIO, NamedTuple

from eventsourcing.persistence import StoredEvent

from refold.infrastructure.event_store.anchor import Anchor, Anchored, anchor_path
from refold.infrastructure.event_store.envelope import (
    GENESIS,
    LONGEST_FRAME,
    EnvelopeError,
    EventMapper,
    Place,
    link_in,
    parse_frame,
)
from refold.infrastructure.event_store.plain_shapes import CodecError, NewerShape
from refold.infrastructure.maintenance.row_proof import DAMAGE, RawRow, RowReader
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite, write_ahead_path

from .frames import (
    FILE_HEAD,
    Chain,
    MainFile,
    has_every_page,
    is_without_pages,
    read_chain,
    read_frame,
)
from .page_images import Carved, PageImages, carved_rows


class Break(NamedTuple):
    """The frame at which SQLite stops reading, and what follows it."""

    frame: int | None
    """Index of the bad or first missing frame, or None for the file header."""
    frames: int
    """Number of frames that were certainly stored."""
    commits: int
    """Number of commits that SQLite would drop."""


class _Run(NamedTuple):
    """A run of frames that follow each other. The first frame need not follow another one."""

    first: int
    last: int


def break_in(chain: Chain) -> Break | None:
    """Return the break of the chain if more frames were stored after it, or None."""
    bad = None if not chain.header.is_whole else next(_bad(chain), len(chain.frames))
    if bad == len(chain.frames):
        return None
    proved = [run for run in _runs(chain) if _is_proved(chain, run)]
    if not any(run.first >= (bad or 0) for run in proved):
        return None
    frames = stored_frames(chain)
    commits = sum(bool(frame.size) for frame in chain.frames[bad or 0 : frames])
    return Break(bad, frames, commits)


def stored_frames(chain: Chain) -> int:
    """Return the number of frames that were certainly stored.

    They end with the last commit that is proved, or that SQLite reaches from the start of the file.
    """
    frames = 0
    for run in _runs(chain):
        reached = run.first == 0 and chain.header.is_whole and chain.is_linked(0)
        if reached or _is_proved(chain, run):
            commits = (i for i in range(run.last, run.first - 1, -1) if chain.frames[i].size)
            frames = next((index + 1 for index in commits), frames)
    return frames


def _bad(chain: Chain) -> Iterator[int]:
    return (i for i in range(len(chain.frames)) if not chain.is_linked(i))


def _runs(chain: Chain) -> Iterator[_Run]:
    first = 0
    for index in range(1, len(chain.frames)):
        if not chain.is_linked(index):
            yield _Run(first, index - 1)
            first = index
    if chain.frames:
        yield _Run(first, len(chain.frames) - 1)


def _is_proved(chain: Chain, run: _Run) -> bool:
    """Return whether a frame of this run was written after the sync of a commit in this run."""
    for index in range(run.first, run.last):
        one, after = chain.frames[index : index + 2]
        # Without powersafe overwrite, SQLite fills a sector up with copies of the commit's frame.
        is_repeated = (after.page, after.size) == (one.page, one.size)
        # A torn frame may combine the commit mark of one commit with the checksum of another.
        if one.size and not is_repeated and chain.is_proved(index):
            return True
    return False


def anchored_break(log: Path, file: BinaryIO, chain: Chain) -> Break | None:
    """Return the break if the last commit is damaged and the anchor proves that it was stored, or None.

    Raises:
        OSError: a file cannot be read.
    """
    first = stored_frames(chain)
    last = _tail(chain, first)
    newest = Anchor(anchor_path(log)).newest() if first < last else None
    if newest is None or _is_read(log, newest):
        return None
    images = PageImages(file, chain, last)
    rows = carved_rows(images, MainFile(log, images.page_size), first)
    place = next((index for index, row in rows if row.number <= newest.number), None)
    if place is None:
        return None
    ends = (index + 1 for index in range(place, last) if chain.frames[index].size)
    bad = (index for index in range(first, last) if not chain.is_linked(index))
    return Break(next(bad, last), next(ends, last), 1)


def _tail(chain: Chain, first: int) -> int:
    """Return the exclusive end of the frames of this generation after ``first``. One may be damaged."""
    last = len(chain.frames)
    salts = chain.header.salts
    others = (
        index
        for index in range(first + 1, last)
        if chain.frames[index].salts != salts and chain.frames[index - 1].salts != salts
    )
    return next(others, last + 1) - 1 if first < last else first


def _is_read(log: Path, newest: Anchored) -> bool:
    """Return whether SQLite reads the event ``newest``. Return True if SQLite cannot answer."""
    query = (
        "SELECT originator_id, originator_version, topic, substr(state, 1, ?) FROM stored_events "
        "WHERE rowid=?"
    )
    uri = f"{log.absolute().as_uri()}?mode=ro"
    try:
        with closing(open_sqlite(uri, uri=True, timeout=1)) as connection:
            row = connection.execute(query, (LONGEST_FRAME, newest.number)).fetchone()
    except sqlite3.OperationalError as error:
        return "no such table" not in str(error)
    except sqlite3.Error:
        return True
    return row is not None and link_in(StoredEvent(*row).state) == newest.link


LOOKS = 5
"""Number of attempts to read a file that others are writing."""


class WriteAheadDamage(NamedTuple):
    """The damage of a write-ahead log."""

    chain: Chain
    found: Break | None
    """The break, or None if the write-ahead log is intact but its database is missing or empty."""

    @property
    def frames(self) -> int:
        """Number of frames that were certainly stored."""
        return stored_frames(self.chain) if self.found is None else self.found.frames


def examine(log: Path) -> WriteAheadDamage | None:
    """Return the damage of the write-ahead log of ``log``, or None.

    If others are writing the file, only a frame that stays bad counts. A frame that is followed by a
    commit and another frame is never rewritten before a new file header is.

    Raises:
        OSError: the write-ahead log cannot be read.
    """
    path = write_ahead_path(log)
    for _ in range(LOOKS):
        damage = _read(path, log)
        if damage is None or _is_still_there(path, damage):
            break
    else:
        return None
    if damage is not None and _is_harmless(path, log, damage):
        return None
    return damage


def read_write_ahead(path: Path) -> Chain | None:
    """Return the frames of a file, or None if it has none.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return read_chain(file)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _read(path: Path, log: Path) -> WriteAheadDamage | None:
    chain = read_write_ahead(path)
    if chain is None:
        return None
    found = break_in(chain) or _newest_anchored(path, log, chain)
    if found is None and not (stored_frames(chain) and is_without_pages(log)):
        return None
    return WriteAheadDamage(chain, found)


def _newest_anchored(path: Path, log: Path, chain: Chain) -> Break | None:
    try:
        with path.open("rb") as file:
            return anchored_break(log, file, chain)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_still_there(path: Path, damage: WriteAheadDamage) -> bool:
    """Return whether a second read shows the same bad bytes in the same generation.

    The frame before is compared as well: it may have been read before a rewrite, and the bad frame
    after it.
    """
    chain = damage.chain
    frame = damage.found.frame if damage.found else None
    frames = () if frame is None else range(max(frame - 1, 0), frame + 1)
    try:
        with path.open("rb") as file:
            again = [read_frame(file, chain, index) for index in frames]
            file.seek(0)
            raw = file.read(FILE_HEAD)
    except (FileNotFoundError, NotADirectoryError):
        return False
    if raw != chain.header.raw:
        return False
    return all(map(_is_same, repeat(chain), frames, again))


def _is_same(chain: Chain, index: int, data: bytes) -> bool:
    """Return whether a frame is unchanged, or is still missing."""
    if index == len(chain.frames):
        return len(data) < chain.header.frame_size
    return chain.is_same_frame(index, data)


def _is_harmless(path: Path, log: Path, damage: WriteAheadDamage) -> bool:
    """Return whether only the file header is bad and the database already has every page.

    A power loss leaves this state while SQLite starts to reuse the file from its beginning.
    """
    if damage.found is None or damage.found.frame is not None:
        return False
    with path.open("rb") as file:
        return has_every_page(log, file, damage.chain, damage.frames)


RowsOf = Callable[[sqlite3.Connection], RowReader]
"""A function that creates the reader of a log's rows."""


class MendedRows(RowReader):
    """A reader that replaces damaged or missing rows of a log with those found in page images."""

    def __init__(
        self, connection: sqlite3.Connection, mapper: EventMapper, found: Carved, kept: Carved
    ) -> None:
        """Create a reader. ``found`` has rows of the current write-ahead log, ``kept`` those of copies.

        Copies may belong to an abandoned history, so their rows are used only if they fit their
        neighbours.
        """
        super().__init__(connection)
        self._mapper = mapper
        self._found = dict(found)
        for number, rows in self._fitting(kept):
            self._found[number] = [*self._found.get(number, ()), *rows]

    def rows(self) -> Iterator[RawRow]:
        """Return every row, in the order of the log."""
        missing = sorted(self._found)
        at = 0
        for row in super().rows():
            while at < len(missing) and missing[at] < row.number:
                yield from self._best(self._found[missing[at]])
                at += 1
            if at < len(missing) and missing[at] == row.number:
                yield from self._best([row, *self._found[row.number]])
                at += 1
            else:
                yield row
        for number in missing[at:]:
            yield from self._best(self._found[number])

    def _best(self, rows: Sequence[RawRow]) -> Iterator[RawRow]:
        """Yield the newest row that can be proved, or else the newest one."""
        yield next((row for row in rows if self._is_proved(row)), rows[0])

    def _is_proved(self, row: RawRow) -> bool:
        try:
            self._mapper.open(Place(row.stream, row.version, row.name), row.state)
        except NewerShape:
            return True
        except (EnvelopeError, CodecError):
            return False
        return True

    def _fitting(self, kept: Carved) -> Iterator[tuple[int, list[RawRow]]]:
        """Yield the rows that follow the log's own rows or lead to them."""
        streams: dict[str, list[RawRow]] = defaultdict(list)
        for rows in kept.values():
            for row in filter(self._is_proved, rows):
                streams[row.stream].append(row)
        for stream, rows in streams.items():
            for row in self._follow_links(stream, rows):
                yield row.number, [row]

    def _follow_links(self, stream: str, rows: Iterable[RawRow]) -> Iterator[RawRow]:
        links = dict(self._links(stream))
        for row in sorted(rows, key=lambda row: row.version):
            envelope = parse_frame(row.state)
            known = links.get(row.version)
            before = links.get(row.version - 1, ("", GENESIS if row.version == 1 else ""))
            after = links.get(row.version + 1)
            fits = (
                envelope.previous == before[1]
                if known is None
                else known == (envelope.previous, envelope.link())
            )
            if fits or (known is None and after is not None and after[0] == envelope.link()):
                links[row.version] = (envelope.previous, envelope.link())
                yield row

    def _links(self, stream: str) -> Iterator[tuple[int, tuple[str, str]]]:
        """Yield the previous link and the link of each event of a stream."""
        query = "SELECT originator_version, substr(state, 1, ?) FROM stored_events WHERE originator_id=?"
        try:
            for version, frame in self._connection.execute(query, (LONGEST_FRAME, stream)):
                try:
                    envelope = parse_frame(frame)
                except EnvelopeError:
                    continue
                yield version, (envelope.previous, envelope.link())
        except DAMAGE:
            return

"""Telling a damaged last commit from a torn one: the anchor knows whether it was acknowledged.

Nothing follows the last commit that would prove that it was synced. But the anchor is written after the
sync: where SQLite does not read the newest event that it knows, and events up to that one lie behind the
last commit, a frame there was damaged since, or the file was cut.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from eventsourcing.persistence import StoredEvent

from refold.infrastructure.log.anchor import Anchor, Anchored, anchor_path
from refold.infrastructure.log.stored.envelope import LONGEST_FRAME
from refold.infrastructure.log.stored.mapper import link_of
from refold.infrastructure.sqlite_connection import open_sqlite

from .breaks import Break, stored_frames
from .carving import carved_rows
from .chain import Chain
from .images import PageImages
from .main_file import MainFile


def anchored_break(log: Path, file: BinaryIO, chain: Chain) -> Break | None:
    """Return where the last commit is damaged, if the anchor proves that it was stored; else None.

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
    """Return where the frames of this generation end that follow ``first``; one may be damaged."""
    last = len(chain.frames)
    salts = chain.header.salts
    others = (
        index
        for index in range(first + 1, last)
        if chain.frames[index].salts != salts and chain.frames[index - 1].salts != salts
    )
    return next(others, last + 1) - 1 if first < last else first


def _is_read(log: Path, newest: Anchored) -> bool:
    """Return whether SQLite reads the event, or whether it could not be asked."""
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
    return row is not None and link_of(StoredEvent(*row)) == newest.link

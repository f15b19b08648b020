"""Finding where an event belongs that does not belong where it lies: put elsewhere, or copied."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from refold.application.event_log import Damage
from refold.infrastructure.log.stored.codec import CodecError
from refold.infrastructure.log.stored.envelope import (
    GENESIS,
    LONGEST_FRAME,
    EnvelopeError,
    Place,
    framed,
)
from refold.infrastructure.log.stored.mapper import EventMapper

from .rows import DAMAGE

MOST = 1_000
"""Damaged events that are looked into."""


class _Found(NamedTuple):
    stream: str
    version: int
    name: str
    state: object


def whereabouts(
    connection: sqlite3.Connection, mapper: EventMapper, found: Sequence[Damage]
) -> Iterator[Damage]:
    """The findings, those of events that belong elsewhere told as such.

    An event names the link of the one before it: that tells its place, and its digest proves it.
    """
    damaged = {(d.thread_id, d.version) for d in found if d.kind == "digest"}
    rows = [row for place in list(damaged)[:MOST] for row in _row(connection, *place)]
    wanted: dict[str, list[_Found]] = {}
    for row in rows:
        if (previous := _previous(row.state)) is not None:
            wanted.setdefault(previous, []).append(row)
    homes = dict(_homes(connection, mapper, wanted)) if wanted else {}
    for damage in found:
        home = homes.get((damage.thread_id, damage.version))
        if damage.kind != "digest" or home is None:
            yield damage
            continue
        kind = "reordered" if home in damaged or not _row(connection, *home) else "duplicate"
        detail = f"the event that belongs at {home[1]} of conversation {home[0]!r} lies here"
        yield damage._replace(kind=kind, detail=detail)


def _homes(
    connection: sqlite3.Connection, mapper: EventMapper, wanted: dict[str, list[_Found]]
) -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    """Of damaged events, by their places, the places where they belong."""
    for row in wanted.get(GENESIS, []):
        yield from _proved(mapper, row, row.stream, 1, wanted)
    query = "SELECT originator_id, originator_version, substr(state, 1, ?) FROM stored_events"
    try:
        for stream, version, frame in connection.execute(query, (LONGEST_FRAME,)):
            try:
                link = framed(frame).link()
            except EnvelopeError:
                continue
            for row in wanted.get(link, []):
                yield from _proved(mapper, row, stream, version + 1, wanted)
    except DAMAGE:
        return


def _proved(
    mapper: EventMapper, row: _Found, stream: str, version: int, wanted: dict[str, list[_Found]]
) -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    """That ``row`` belongs there, if so; and then where those belong that follow it."""
    while True:
        try:
            envelope, _ = mapper.open(Place(stream, version, row.name), row.state)
        except (EnvelopeError, CodecError):
            return
        yield (row.stream, row.version), (stream, version)
        following = wanted.get(envelope.link())
        if not following:
            return
        (row, *_), version = following, version + 1


def _row(connection: sqlite3.Connection, stream: str, version: int) -> list[_Found]:
    query = (
        "SELECT originator_id, originator_version, topic, state FROM stored_events "
        "WHERE originator_id=? AND originator_version=?"
    )
    try:
        return [_Found(*row) for row in connection.execute(query, (stream, version))]
    except DAMAGE:
        return []


def _previous(state: object) -> str | None:
    try:
        return framed(state).previous
    except EnvelopeError:
        return None

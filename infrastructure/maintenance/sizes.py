"""How large a log is and what of: one pass over the stored rows, of which hardly any is decoded."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from refold.application.maintenance.maintenance_results import (
    ConversationSize,
    FileSize,
    Share,
    Sizes,
    added,
)
from refold.domain.events import MessageAppended
from refold.infrastructure.event_store.anchor import anchor_path
from refold.infrastructure.event_store.codec import CodecError
from refold.infrastructure.event_store.envelope import (
    ERASED,
    LONGEST_FRAME,
    MAGIC,
    EnvelopeError,
    Place,
)
from refold.infrastructure.event_store.mapper import EventMapper
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.projection_store.derived_places import DERIVED, derived_path
from refold.infrastructure.sqlite.second_look import translated

from .known_damage import checked_path

PLAIN, ERASED_FRAME, DAMAGED = "plain", "erased", "damaged"
MESSAGE = "message_appended"
FIELDS = 6
"""Of a frame; one more names an encoding."""

# The message is a part of its payload: SQLite cuts it out, and Python need not parse any of it.
_ROWS = f"""
SELECT originator_id, topic, frame_kind(substr(state, 1, {LONGEST_FRAME})) AS kind, count(*),
    coalesce(sum(length(state)), 0), coalesce(sum(
        CASE WHEN topic = '{MESSAGE}' AND json_valid(payload) AND frame_kind(substr(state, 1,
            {LONGEST_FRAME})) IN ('{PLAIN}', '{ERASED_FRAME}')
        THEN length(CAST(json_extract(payload, '$.message') AS BLOB)) END), 0)
FROM (SELECT *, CAST(substr(state, instr(state, x'0A') + 1) AS TEXT) AS payload FROM stored_events)
GROUP BY originator_id, topic, kind ORDER BY min(originator_version)
"""
_ENCODED = f"""
SELECT originator_id, originator_version, topic, state FROM stored_events
WHERE topic = '{MESSAGE}' AND frame_kind(substr(state, 1, {LONGEST_FRAME}))
    NOT IN ('{PLAIN}', '{ERASED_FRAME}', '{DAMAGED}')
"""
_SNAPSHOTS = """
SELECT originator_id, count(*), coalesce(sum(length(state)), 0) FROM stored_snapshots
GROUP BY originator_id
"""


class _Group(NamedTuple):
    """Rows of one stream with the same name and frame."""

    stream: str
    name: str
    frame: str
    events: int
    bytes: int
    message_bytes: int


def measure(log: SQLiteLog) -> Sizes:
    """The sizes of a log, all of one moment."""
    datastore, mapper = log.parts()
    with translated(log.path), datastore.transaction(commit=False) as c:
        c.sqlite_cursor.row_factory = None
        connection = c.sqlite_cursor.connection
        connection.create_function("frame_kind", 1, frame_kind, deterministic=True)
        c.execute(_ROWS)
        groups = [
            _Group(_named(stream), _named(name), *rest) for stream, name, *rest in c.fetchall()
        ]
        c.execute(_SNAPSHOTS)
        snapshots = {_named(stream): (count, size) for stream, count, size in c.fetchall()}
        decoded = _decoded_bytes(c.sqlite_cursor, mapper) if _encoded(groups) else {}
    streams: dict[str, list[_Group]] = defaultdict(list)
    for group in groups:
        streams[group.stream].append(group)
    sizes = [
        _conversation(stream, own, snapshots.get(stream, (0, 0)), decoded.get(stream, 0))
        for stream, own in streams.items()
    ]
    return Sizes(
        conversations=tuple(sorted(sizes, key=lambda size: -size.bytes)),
        frames=added([Share(name=g.frame, count=g.events, bytes=g.bytes) for g in groups]),
        files=tuple(_files(log.path)),
    )


def _named(column: object) -> str:
    return column if isinstance(column, str) else DAMAGED


def frame_kind(head: object) -> str:
    """How a row is stored, told from the beginning of its bytes."""
    if not isinstance(head, bytes):
        return DAMAGED
    fields = head.partition(b"\n")[0].split(b" ")
    if fields[0] not in (MAGIC, ERASED) or len(fields) < FIELDS:
        return DAMAGED
    # Without the numbers of dictionaries and keys: they say nothing about sizes.
    steps = fields[FIELDS].decode("ascii", "replace").split(",") if len(fields) > FIELDS else []
    kinds = [ERASED_FRAME] if fields[0] == ERASED else []
    return "+".join([*kinds, *(step.partition(":")[0] for step in steps)]) or PLAIN


def _encoded(groups: Iterable[_Group]) -> bool:
    return any(g.name == MESSAGE and g.frame not in (PLAIN, ERASED_FRAME, DAMAGED) for g in groups)


def _decoded_bytes(cursor: sqlite3.Cursor, mapper: EventMapper) -> dict[str, int]:
    """The bytes of messages that SQLite cannot look into, by stream."""
    found: dict[str, int] = defaultdict(int)
    for stream, version, name, state in cursor.execute(_ENCODED):
        try:
            _, event = mapper.open(Place(stream, version, name), state)
        except (EnvelopeError, CodecError):
            continue
        if not isinstance(event, MessageAppended):
            continue  # Of an erased conversation, nothing is left of it.
        message = event.message.model_dump(exclude_defaults=True)
        compact = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        found[stream] += len(compact.encode("utf-8", "surrogatepass"))
    return found


def _conversation(
    stream: str, groups: list[_Group], snapshots: tuple[int, int], decoded: int
) -> ConversationSize:
    return ConversationSize(
        thread_id=stream,
        messages=sum(g.events for g in groups if g.name == MESSAGE),
        events=sum(g.events for g in groups),
        bytes=sum(g.bytes for g in groups),
        message_bytes=decoded + sum(g.message_bytes for g in groups),
        snapshots=snapshots[0],
        snapshot_bytes=snapshots[1],
        kinds=added([Share(name=g.name, count=g.events, bytes=g.bytes) for g in groups]),
        erased_events=sum(g.events for g in groups if g.frame.startswith(ERASED_FRAME)),
    )


def _files(log: Path) -> Iterable[FileSize]:
    names = {"log": log, "wal": Path(f"{log}-wal")}
    for name in DERIVED:
        path = Path(derived_path(log, name))
        names |= {name: path, f"{name} wal": Path(f"{path}-wal")}
    names |= {"anchor": anchor_path(log), "checked": checked_path(log)}
    for name, path in names.items():
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            continue
        yield FileSize(name=name, path=path, bytes=size)

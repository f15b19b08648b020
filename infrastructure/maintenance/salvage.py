"""Copy the intact events of a damaged log, and infer the positions of lost messages from their neighbours."""

import os
import sqlite3
from collections.abc import Container, Iterator, Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path

from eventsourcing.persistence import StoredEvent

from refold.application.errors import NewerLog, TargetExists
from refold.application.maintenance.maintenance_results import LostEvent, Salvaged
from refold.application.ports.conversation_log import Damage
from refold.domain.events import (
    ConversationErased,
    Event,
    EventLost,
    MessageAppended,
    MessageErased,
)
from refold.domain.notes import MemoriesChosen
from refold.infrastructure.event_store.anchor import Anchor, anchor_path
from refold.infrastructure.event_store.anchor_check import HeldLog
from refold.infrastructure.event_store.encodings import Encodings
from refold.infrastructure.event_store.encryption import Keys, KeySource
from refold.infrastructure.event_store.envelope import (
    EnvelopeError,
    EventMapper,
    Place,
    UnsealedEvent,
    link_in,
    random_hex,
)
from refold.infrastructure.event_store.plain_shapes import CodecError
from refold.infrastructure.event_store.recorder import Head, LogRecorder
from refold.infrastructure.event_store.shelf import SQLiteShelf
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.files.private_files import new_file
from refold.infrastructure.sqlite.sqlite_failures import translate_errors
from refold.infrastructure.write_ahead.examination import RowsOf

from .backup import keep_anchor
from .check import Held, check_connection
from .row_proof import RawRow, RowReader

MESSAGE = "message_appended"


def lost_positions(
    messages: Mapping[int, int], good: Container[int], names: Mapping[int, str], last: int
) -> dict[int, int]:
    """Return the positions of lost messages by version.

    ``messages`` has versions and positions of the intact ones, ``good`` the versions of all intact
    events, and ``names`` the event names in the columns of damaged rows.
    """
    found: dict[int, int] = {}
    version, position = 0, -1
    ends = [(v, p) for v, p in sorted(messages.items()) if v <= last]
    for upper, following in ends:
        lost = [v for v in range(version + 1, upper) if v not in good]
        found |= _share_out(lost, range(position + 1, following), names)
        version, position = upper, following
    # After the last intact message, the name is the only evidence.
    at = position
    for lost_version in range(version + 1, last + 1):
        if lost_version not in good and names.get(lost_version) == MESSAGE:
            at += 1
            found[lost_version] = at
    return found


def _share_out(lost: list[int], positions: range, names: Mapping[int, str]) -> dict[int, int]:
    """Choose as many lost events as there are positions, starting with those that are named messages."""
    named = [v for v in lost if names.get(v) == MESSAGE]
    unknown = [v for v in lost if v not in names]
    other = [v for v in lost if v in names and v not in named]
    chosen = sorted([*named, *unknown, *other][: len(positions)])
    return dict(zip(chosen, positions, strict=False))


WRITTEN_AT_ONCE = 500
LOST_KINDS = frozenset(
    {
        "digest",
        "dictionary",
        "unsealed",
        "unreadable",
        "foreign",
        "restored",
        "reordered",
        "duplicate",
    }
)
"""Kinds of damage whose events are not copied. An event that is only out of order is copied."""


def salvage(
    source: sqlite3.Connection,
    mapper: EventMapper,
    to: Path,
    *held: Held,
    key: KeySource | None = None,
    rows: RowsOf = RowReader,
) -> Salvaged:
    """Copy every intact event in ``source`` into the new log ``to``. The source is not changed.

    ``rows`` reads its events.

    Raises:
        TargetExists: a file exists at ``to``.
        NewerLog: only a newer refold can read an event.
        LogError: the new log cannot be written; no file was created.
    """
    refuse_target(to)
    damage = check_connection(source, mapper, *held, rows=rows).damage
    for found in damage:
        if found.kind == "newer":
            raise NewerLog(f"{found.detail}; install a newer refold to salvage this log")
    streams = _plans(rows(source), mapper, damage)
    with new_file(to, replace=False) as made:
        copied = 0
        with closing(SQLiteLog(made, anchor=False, key=key)) as log:
            datastore, target = log.parts()
            recorder = LogRecorder(datastore, Encodings(Keys(key), SQLiteShelf(datastore)))
            batch: list[tuple[StoredEvent, str | None]] = []
            for row, kept in _rows(rows(source), mapper, target, streams):
                copied += kept
                batch.append(row)
                if len(batch) >= WRITTEN_AT_ONCE:
                    _write(recorder, batch, to)
                    batch = []
            _write(recorder, batch, to)
            marks = list(HeldLog(made, Anchor(None), recorder).marks())
    keep_anchor(anchor_path(Path(os.path.realpath(to))), marks)
    lost = tuple(
        _lost_event(found, streams.get(found.thread_id)) for found in damage if _is_loss(found)
    )
    return Salvaged(path=to, events=copied, conversations=len(streams), lost=lost)


def refuse_target(to: Path) -> None:
    """Reject a target path at which a file exists.

    Raises:
        TargetExists: a file exists at the path.
    """
    if to.is_file():
        raise TargetExists(to, "already exists; give another path")


class _Plan:
    """The knowledge about a stream before it is copied."""

    def __init__(self) -> None:
        self.good: dict[int, int] = {}
        """Row numbers of the events to copy, by version."""
        self.messages: dict[int, int] = {}
        """Positions of intact messages, by version."""
        self.names: dict[int, str] = {}
        """Names of the damaged events, by version."""
        self.rewritten: dict[int, str] = {}
        self.gone = 0
        self.last = 0
        """Last version that is copied or replaces a damaged event."""
        self.positions: Mapping[int, int] = {}
        """Inferred positions of the lost messages, by version."""

    def note(self, row: RawRow, event: Event) -> None:
        version = row.version
        self.good[version] = row.number
        match event:
            case MessageAppended(position=position):
                self.messages[version] = position
            case EventLost(position=int(position)):
                self.messages[version] = position
            case MessageErased(rewritten=rewritten) | MemoriesChosen(rewritten=rewritten):
                self.rewritten.update((r.version, r.remains) for r in rewritten)
            case ConversationErased():
                self.gone = version
            case _:
                pass

    def vouches(self, version: int, remains: bytes) -> bool:
        """Return whether an intact event confirms what an erasure left of the event with this version."""
        return version < self.gone or self.rewritten.get(version) == sha256(remains).hexdigest()


def _plans(source: RowReader, mapper: EventMapper, damage: tuple[Damage, ...]) -> dict[str, _Plan]:
    bad = {(d.thread_id, d.version) for d in damage if d.kind in LOST_KINDS and not _is_late(d)}
    streams: dict[str, _Plan] = {}
    for row in source.rows():
        plan = streams.setdefault(row.stream, _Plan())
        if row.version in plan.good:
            continue
        try:
            _, event = mapper.open(Place(row.stream, row.version, row.name), row.state)
        except (EnvelopeError, CodecError):
            plan.names[row.version] = row.name
            continue
        if (row.stream, row.version) in bad:
            plan.names[row.version] = row.name
        else:
            plan.note(row, event)
    for plan in streams.values():
        # After this point, only a row without a gap certainly belongs to this conversation.
        plan.last = max(plan.good, default=0)
        while plan.last and plan.last + 1 in plan.names:
            plan.last += 1
        plan.positions = lost_positions(plan.messages, plan.good, plan.names, plan.last)
    return {thread_id: plan for thread_id, plan in streams.items() if plan.last}


def _is_late(damage: Damage) -> bool:
    # Skips an intact event that is stored after later ones, and a duplicate of one in its right
    # place.
    return damage.detail.startswith(("it is stored after", "the log has an event"))


def _rows(
    source: RowReader,
    mapper: EventMapper,
    target: EventMapper,
    streams: Mapping[str, _Plan],
) -> Iterator[tuple[tuple[StoredEvent, str | None], bool]]:
    """Yield the rows of the new log with their keys, in the old order, and whether each was kept."""
    heads = dict.fromkeys(streams, Head())
    waiting: dict[str, dict[int, RawRow]] = {thread_id: {} for thread_id in streams}
    times = dict.fromkeys(streams, "")
    for row in (*_intact(source, streams), *_ends(streams)):
        plan, kept = streams[row.stream], waiting[row.stream]
        if row.name:
            kept[row.version] = row
        while (version := heads[row.stream].version + 1) <= plan.last:
            if version in plan.good and version not in kept:
                break  # The row comes later in the log.
            if version not in plan.good and row.name and version > max(kept, default=0):
                break
            head = heads[row.stream]
            if version in kept:
                made, at = _reseal(kept.pop(version), mapper, target, plan, head)
            else:
                at = times[row.stream] or _next_time(kept, mapper)
                made = _place_of_lost(row.stream, target, plan, head, at)
            times[row.stream] = at
            heads[row.stream] = Head(version, link_in(made[0].state))
            yield made, version in plan.good


def _intact(source: RowReader, streams: Mapping[str, _Plan]) -> Iterator[RawRow]:
    for row in source.rows():
        plan = streams.get(row.stream)
        if plan is not None and plan.good.get(row.version) == row.number:
            yield row


def _ends(streams: Mapping[str, _Plan]) -> Iterator[RawRow]:
    """Yield a row without a name for each stream, which marks its end."""
    for thread_id in streams:
        yield RawRow(0, thread_id, 0, "", b"")


def _reseal(
    row: RawRow, mapper: EventMapper, target: EventMapper, plan: _Plan, head: Head
) -> tuple[tuple[StoredEvent, str | None], str]:
    place = Place(row.stream, row.version, row.name)
    envelope, event = mapper.open(place, row.state)
    erased = envelope.erased and plan.vouches(row.version, envelope.payload)
    made = target.reseal(place, envelope, head.link, random_hex(16), erased=erased)
    return (made, event.key if isinstance(event, MessageAppended) else None), envelope.at


def _place_of_lost(
    stream: str, target: EventMapper, plan: _Plan, head: Head, at: str
) -> tuple[StoredEvent, str | None]:
    version = head.version + 1
    event = EventLost(position=plan.positions.get(version))
    salt = random_hex(16)
    return target.store(UnsealedEvent(stream, version, at, event, head.link, salt))[0], None


def _next_time(kept: Mapping[int, RawRow], mapper: EventMapper) -> str:
    row = kept[min(kept)]
    return mapper.open(Place(row.stream, row.version, row.name), row.state)[0].at


def _write(recorder: LogRecorder, batch: list[tuple[StoredEvent, str | None]], to: Path) -> None:
    rows = [row for row, _ in batch]
    keys = [(str(r.originator_id), k, r.originator_version) for r, k in batch if k is not None]
    if rows:
        with translate_errors(to):
            recorder.insert_events(rows, keys=keys)


def _is_loss(damage: Damage) -> bool:
    copied = damage.kind in ("keys", "chain", "erased") or _is_late(damage)
    return damage.place == "log" and not copied


def _lost_event(damage: Damage, plan: _Plan | None) -> LostEvent:
    return LostEvent(
        thread_id=damage.thread_id,
        version=damage.version,
        kind=damage.kind,
        detail=damage.detail,
        position=plan.positions.get(damage.version) if plan else None,
    )

"""Maintenance of one SQLite log: sizes, checks, repairs and the anchor."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from refold.application.errors import LogError, TargetExists
from refold.application.maintenance.maintenance_results import (
    AnchorState,
    BackedUp,
    Compressed,
    ConversationSize,
    ErasedPlace,
    FileSize,
    KnownErasures,
    Salvaged,
    Share,
    Sizes,
    combine_shares,
)
from refold.application.ports.conversation_log import Damage
from refold.application.ports.log_keeper import Checked
from refold.domain.events import MessageAppended
from refold.infrastructure.event_store.anchor import Mark, anchor_of, anchor_path, read_exported
from refold.infrastructure.event_store.encryption import KeySource
from refold.infrastructure.event_store.envelope import (
    ERASED,
    LONGEST_FRAME,
    MAGIC,
    EnvelopeError,
    EventMapper,
    Place,
)
from refold.infrastructure.event_store.plain_shapes import CodecError
from refold.infrastructure.event_store.snapshots import SQLiteSnapshots
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.files.log_place import DERIVED, derived_path
from refold.infrastructure.files.private_files import new_file
from refold.infrastructure.sqlite.sqlite_failures import as_shortage, translate_errors
from refold.infrastructure.write_ahead.damaged_copies import damaged_copies

from . import log_keeper as repairing
from .backup import back_up, earlier_logs, refuse_own
from .check import Held
from .mended_log import add_write_ahead_damage, erasures_in, is_to_be_mended, salvage_file
from .salvage import salvage
from .scrubber import checked_path
from .table_checks import KEYS, LOG, SNAPSHOTS

PLAIN, ERASED_FRAME, DAMAGED = "plain", "erased", "damaged"
MESSAGE = "message_appended"
FIELDS = 6
"""Number of fields in a frame. An encoding adds one."""

# The message is a part of its payload. SQLite extracts it, so that Python parses nothing.
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


class Group(NamedTuple):
    """Rows of one stream with the same name and frame."""

    stream: str
    name: str
    frame: str
    events: int
    bytes: int
    message_bytes: int


def measure(log: SQLiteLog) -> Sizes:
    """Measure the sizes of a log at one moment."""
    datastore, mapper = log.parts()
    with translate_errors(log.path), datastore.transaction(commit=False) as c:
        c.sqlite_cursor.row_factory = None
        connection = c.sqlite_cursor.connection
        connection.create_function("frame_kind", 1, frame_kind, deterministic=True)
        c.execute(_ROWS)
        groups = [
            Group(_column_name(stream), _column_name(name), *rest)
            for stream, name, *rest in c.fetchall()
        ]
        c.execute(_SNAPSHOTS)
        snapshots = {_column_name(stream): (count, size) for stream, count, size in c.fetchall()}
        decoded = _decoded_bytes(c.sqlite_cursor, mapper) if _has_encoded(groups) else {}
    return sizes_of(groups, snapshots, decoded, _files(log.path))


def sizes_of(
    groups: Sequence[Group],
    snapshots: Mapping[str, tuple[int, int]],
    decoded: Mapping[str, int],
    files: Iterable[FileSize],
) -> Sizes:
    """Return the sizes of a log with these rows.

    ``snapshots`` has the number and bytes of the snapshots of each stream, and ``decoded`` the bytes of messages
    that the groups do not count.
    """
    streams: dict[str, list[Group]] = defaultdict(list)
    for group in groups:
        streams[group.stream].append(group)
    sizes = [
        _conversation(stream, own, snapshots.get(stream, (0, 0)), decoded.get(stream, 0))
        for stream, own in streams.items()
    ]
    return Sizes(
        conversations=tuple(sorted(sizes, key=lambda size: -size.bytes)),
        frames=combine_shares([Share(name=g.frame, count=g.events, bytes=g.bytes) for g in groups]),
        files=tuple(files),
    )


def _column_name(column: object) -> str:
    return column if isinstance(column, str) else DAMAGED


def frame_kind(head: object) -> str:
    """Return how a row is stored, from the first bytes of it."""
    if not isinstance(head, bytes):
        return DAMAGED
    fields = head.partition(b"\n")[0].split(b" ")
    if fields[0] not in (MAGIC, ERASED) or len(fields) < FIELDS:
        return DAMAGED
    # Without the numbers of dictionaries and keys, which say nothing about sizes.
    steps = fields[FIELDS].decode("ascii", "replace").split(",") if len(fields) > FIELDS else []
    kinds = [ERASED_FRAME] if fields[0] == ERASED else []
    return "+".join([*kinds, *(step.partition(":")[0] for step in steps)]) or PLAIN


def _has_encoded(groups: Iterable[Group]) -> bool:
    return any(g.name == MESSAGE and g.frame not in (PLAIN, ERASED_FRAME, DAMAGED) for g in groups)


def _decoded_bytes(cursor: sqlite3.Cursor, mapper: EventMapper) -> dict[str, int]:
    """Count the bytes of messages that SQLite cannot parse, by stream."""
    found: dict[str, int] = defaultdict(int)
    for stream, version, name, state in cursor.execute(_ENCODED):
        try:
            _, event = mapper.open(Place(stream, version, name), state)
        except (EnvelopeError, CodecError):
            continue
        if not isinstance(event, MessageAppended):
            continue  # Nothing is left of the events of an erased conversation.
        message = event.message.model_dump(exclude_defaults=True)
        compact = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        found[stream] += len(compact.encode("utf-8", "surrogatepass"))
    return found


def _conversation(
    stream: str, groups: list[Group], snapshots: tuple[int, int], decoded: int
) -> ConversationSize:
    return ConversationSize(
        thread_id=stream,
        messages=sum(g.events for g in groups if g.name == MESSAGE),
        events=sum(g.events for g in groups),
        bytes=sum(g.bytes for g in groups),
        message_bytes=decoded + sum(g.message_bytes for g in groups),
        snapshots=snapshots[0],
        snapshot_bytes=snapshots[1],
        kinds=combine_shares([Share(name=g.name, count=g.events, bytes=g.bytes) for g in groups]),
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


ANCHOR = "anchor"
"""Place name in reports about damage of the anchor."""


def check(log: SQLiteLog, exported: Path | None) -> Checked:
    """Report all damage of a log, its snapshots and its anchor.

    Raises:
        LogError: the exported anchor cannot be read, or files are short to read the log's own one.
    """
    others: list[Held] = []
    if exported is not None:
        others.append(Held(read_exported(exported), f"the anchor {exported}"))
    _, damaged = log.held.anchor.lines()
    unread = log.held.anchor.unread
    if unread is not None and (short := as_shortage(f"the anchor {log.held.anchor.path}", unread)):
        raise short from unread
    checked = log.held.check(log.parts()[1], *others)
    if damaged:
        detail = f"{damaged} lines of {log.held.anchor.path} are damaged"
        found = Damage(ANCHOR, "", 0, "unreadable", detail)
        checked = checked._replace(damage=(*checked.damage, found))
    return checked if str(log.path) == ":memory:" else add_write_ahead_damage(log.path, checked)


def repair(log: SQLiteLog, damage: Sequence[Damage]) -> Iterator[str]:
    """Repair everything that needs no change of events, and yield a sentence for each repair."""
    snapshots = [(d.thread_id, d.version) for d in damage if d.place == SNAPSHOTS]
    if snapshots:
        SQLiteSnapshots(log.parts()[0], "stored_snapshots").drop(snapshots)
        yield f"{len(snapshots)} damaged snapshots were removed; loads read the events instead"
    if any(d.place == KEYS for d in damage):
        if any(d.place == LOG for d in damage):
            return  # The index may have keys of events that the log lacks.
        log.renew_keys()
        yield "the index of keys was rebuilt from the messages"
    if any(d.place == ANCHOR for d in damage):
        if any(d.place == LOG for d in damage):
            return  # The log may lack events that other lines of the anchor record.
        renew(log)
        yield "the anchor was rebuilt from the log"


def renew(log: SQLiteLog) -> None:
    """Rebuild the anchor from the log.

    Raises:
        LogError: the anchor cannot be written.
    """
    with log.writing():
        try:
            log.held.renew()
        except OSError as error:
            raise LogError(
                f"the anchor {log.held.anchor.path} cannot be written: {error}"
            ) from error


def _refuse_existing(out: Path) -> None:
    if out.exists():
        raise TargetExists(out, "already exists; give another path")


def _export(out: Path, marks: Sequence[Mark]) -> None:
    """Write an anchor into a new file, safely even if power is lost."""
    _refuse_existing(out)
    try:
        with new_file(out, replace=False) as made:
            made.write_bytes(anchor_of(marks))
    except OSError as error:
        raise LogError(f"the anchor {out} cannot be written: {error}") from error


def anchor(log: SQLiteLog, *, out: Path | None, accept: bool) -> AnchorState:
    """Return the state of the anchor. Export it to ``out``, or rebuild it from the log with ``accept``.

    Raises:
        LogBehindAnchor: the log lacks stored events, and ``accept`` is false.
        TargetExists: a file exists at ``out``.
    """
    if out is not None:
        refuse_own(out, log.path)
        _refuse_existing(out)
    if accept:
        renew(log)
    with log.writing(or_reading=True):
        log.held.admit()
        marks = list(log.held.marks())
    if out is not None:
        _export(out, marks)
    path = log.held.anchor.path
    known = len(log.held.anchor.lines()[0]) if out is None else len(marks)
    return AnchorState(path=out or path, conversations=known, accepted=accept)


class SQLiteKeeper:
    """A ``LogKeeper`` of one SQLite file."""

    def __init__(self, log: SQLiteLog, key: KeySource | None = None) -> None:
        """Create a keeper. ``key`` encrypts a new log that salvage creates."""
        self._log = log
        self._key = key

    def check(self, exported: Path | None) -> Checked:
        """Report all damage of the log, its snapshots and its anchor."""
        with translate_errors(self._log.path):
            checked = repairing.check(self._log, exported)
        for found in checked.damage:
            if found.place == LOG and found.thread_id:
                self._log.known.note_event(found.thread_id, found.version)
        return checked

    def repair(self, damage: Sequence[Damage]) -> Sequence[str]:
        """Repair what can be repaired, and return a sentence for each repair."""
        with translate_errors(self._log.path):
            return tuple(repairing.repair(self._log, damage))

    def anchor(self, *, out: Path | None, accept: bool) -> AnchorState:
        """Return the state of the anchor, exported or rebuilt if that is wanted."""
        with translate_errors(self._log.path):
            return repairing.anchor(self._log, out=out, accept=accept)

    def salvage(self, to: Path) -> Salvaged:
        """Copy every intact event into the new log ``to``."""
        refuse_own(to, self._log.path)
        datastore, mapper = self._log.parts()
        lines, _ = self._log.held.anchor.lines()
        held = Held(lines, f"the anchor {self._log.held.anchor.path}")
        if is_to_be_mended(self._log.path):
            with translate_errors(self._log.path):
                return salvage_file(self._log.path, to, held, key=self._key)
        with translate_errors(self._log.path), datastore.transaction(commit=False) as c:
            connection = c.sqlite_cursor.connection
            usual = connection.text_factory
            try:
                return salvage(connection, mapper, to, held, key=self._key)
            finally:
                connection.text_factory = usual

    def backup(self, to: Path, *, replace: bool) -> BackedUp:
        """Copy the log into the file ``to`` and check the copy."""
        datastore, mapper = self._log.parts()
        return back_up(datastore, mapper, to, path=self._log.path, replace=replace)

    def erasures_in(self, other: Path) -> KnownErasures:
        """Return the erasures that another log records."""
        return erasures_in(other, self._log.parts()[1])

    def compress(self, *, keep: int) -> Compressed:
        """Compress payloads, except for the newest ``keep`` events of each conversation."""
        return self._log.compress(keep)

    def damaged_copies(self) -> Sequence[Path]:
        """Return the copies of damaged write-ahead logs next to the log."""
        return damaged_copies(self._log.path)

    def earlier_logs(self) -> Sequence[Path]:
        """Return the logs that were moved away from this path, newest last."""
        return earlier_logs(self._log.path)

    def erased_places(self) -> Sequence[ErasedPlace]:
        """Return nothing: finished erasures leave nothing in the files of the log."""
        return ()

    def wait_for_erasures(self, seconds: float) -> bool:
        """Return True: there is nothing to wait for."""
        del seconds
        return True

    def sizes(self) -> Sizes:
        """Measure the sizes of the log."""
        return measure(self._log)

"""An open log's file, and the parts that read it, write it and check it."""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from eventsourcing.sqlite import SQLiteAggregateRecorder

from refold.application.conversation.turn_lock import Turns, TurnsInMemory
from refold.infrastructure.files.fork_gate import GATE
from refold.infrastructure.files.lock import WriteLock
from refold.infrastructure.maintenance.known_damage import KnownDamage, ScrubFile, checked_path
from refold.infrastructure.maintenance.row_proof import RowProver
from refold.infrastructure.observability.notices import Notice, nobody
from refold.infrastructure.sqlite import network
from refold.infrastructure.sqlite.read_only import ReadOnlyPlace, RefusingLock, read_only_place
from refold.infrastructure.sqlite.second_look import translated
from refold.infrastructure.sqlite.sqlite_failures import retried
from refold.infrastructure.write_ahead.damaged_copies import refuse_damaged

from .anchor import Anchor, anchor_path
from .encodings import Encodings
from .encryption import Keys, KeySource
from .file_format import check_place, closed_on_error, make_log
from .held_log import HeldLog, refuse_lost
from .mapper import EventMapper
from .proven_keys import ProvenKeys
from .recorder import LOCK_TIMEOUT, DurableDatastore, LogRecorder
from .shelf import SQLiteShelf
from .snapshots import SnapshotStore
from .turn_files import FileTurns, NoTurns


class LogFile(NamedTuple):
    """The parts of one open log."""

    lock: WriteLock
    datastore: DurableDatastore
    recorder: LogRecorder
    encodings: Encodings
    mapper: EventMapper
    snapshots: SnapshotStore
    held: HeldLog
    keys: ProvenKeys
    known: KnownDamage
    turns: Turns


def open_log_file(
    path: Path,
    *,
    create: bool,
    anchor: bool,
    key: KeySource | None,
    told: Callable[[Notice], None] = nobody,
) -> LogFile:
    """Open the log at ``path``, or make one; see ``SQLiteLog``."""
    in_memory = str(path) == ":memory:"
    place = anchor_path(path.absolute()) if anchor and not in_memory else None
    kept = Anchor(place, of=path)
    reading = None if in_memory else _checked_place(path, kept, create=create)
    in_shared = in_memory or (reading is not None and reading.in_memory)
    name = _name_in_memory() if in_shared else str(path.absolute())
    datastore = DurableDatastore(name, reading=reading)
    encodings = Encodings(Keys(key), SQLiteShelf(datastore, trusted=in_memory))
    recorder, mapper = LogRecorder(datastore, encodings), EventMapper(encodings)
    snapshots = SQLiteAggregateRecorder(datastore, "stored_snapshots")
    with translated(path), closed_on_error(datastore):
        retried(lambda: make_log(None if in_memory else path, [recorder, snapshots]))
        encodings.unlock()
        if not in_memory:
            network.NETWORK.look(path, told)
    lock = None if in_memory else Path(f"{name}.lock")
    checked = None if in_memory else checked_path(path.absolute())
    scrub = ScrubFile(checked, of=path, writable=reading is None)
    return LogFile(
        RefusingLock(reading) if reading else WriteLock(lock, LOCK_TIMEOUT),
        datastore,
        recorder,
        encodings,
        mapper,
        SnapshotStore(snapshots, encodings, told),
        HeldLog(path, kept, recorder),
        ProvenKeys(recorder, mapper, told),
        KnownDamage(scrub, RowProver(datastore, mapper), told),
        _turns(path.absolute(), in_memory=in_memory, reads=reading is not None),
    )


def _turns(path: Path, *, in_memory: bool, reads: bool) -> Turns:
    if in_memory:
        return TurnsInMemory()
    return NoTurns(path) if reads else FileTurns(path)


def _checked_place(path: Path, kept: Anchor, *, create: bool) -> ReadOnlyPlace | None:
    """Check that a log can lie there; how to read it, where it cannot be written."""
    # Before anything is read: a descriptor that is closed here would end the locks of the log.
    GATE.refuse(path)
    with translated(path):
        retried(lambda: refuse_damaged(path))
        refuse_lost(path, kept)
        check_place(path, create=create)
        return read_only_place(path)


def _name_in_memory() -> str:
    return f"file:refold-{secrets.token_hex(8)}?mode=memory&cache=shared"

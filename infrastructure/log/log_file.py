"""An open log's file, and the parts that read it, write it and check it."""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from eventsourcing.sqlite import SQLiteAggregateRecorder

from refold.infrastructure.observing.notices import Notice, nobody

from .anchor import Anchor, anchor_path
from .anchoring import HeldLog, refuse_lost
from .file.failures import translated
from .file.file_format import check_place, closed_on_error, make_log
from .file.lock import WriteLock
from .file.retries import retried
from .file.sqlite import LOCK_TIMEOUT, DurableDatastore, LogRecorder
from .snapshots import SnapshotStore
from .stored.encodings import Encodings
from .stored.encryption import Keys, KeySource
from .stored.mapper import EventMapper
from .stored.shelf import SQLiteShelf


class LogFile(NamedTuple):
    """The parts of one open log."""

    lock: WriteLock
    datastore: DurableDatastore
    recorder: LogRecorder
    encodings: Encodings
    mapper: EventMapper
    snapshots: SnapshotStore
    held: HeldLog


def open_log_file(
    path: Path,
    *,
    create: bool,
    anchor: bool,
    key: KeySource | None,
    told: Callable[[Notice], None] = nobody,
) -> LogFile:
    """Open the log at ``path``, or make one; see ``SQLiteLog``."""
    keys = Keys(key)
    in_memory = str(path) == ":memory:"
    place = anchor_path(path.absolute()) if anchor and not in_memory else None
    kept = Anchor(place, of=path)
    if in_memory:
        name = f"file:refold-{secrets.token_hex(8)}?mode=memory&cache=shared"
    else:
        refuse_lost(path, kept)
        check_place(path, create=create)
        name = str(path.absolute())
    datastore = DurableDatastore(name)
    encodings = Encodings(keys, SQLiteShelf(datastore, trusted=in_memory))
    recorder = LogRecorder(datastore, encodings)
    snapshots = SQLiteAggregateRecorder(datastore, "stored_snapshots")
    with translated(path), closed_on_error(datastore):
        retried(lambda: make_log(None if in_memory else path, [recorder, snapshots]))
        encodings.unlock()
    return LogFile(
        WriteLock(None if in_memory else Path(f"{name}.lock"), LOCK_TIMEOUT),
        datastore,
        recorder,
        encodings,
        EventMapper(encodings),
        SnapshotStore(snapshots, encodings, told),
        HeldLog(path, kept, recorder),
    )

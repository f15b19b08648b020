"""The recorders of a log do what the library's own test cases ask of any recorder."""

import tempfile
import threading
from pathlib import Path
from unittest import TestCase
from uuid import UUID, uuid4

# The modules are named, not their classes: what is named here, pytest would run by itself.
from eventsourcing.persistence import AggregateRecorder, StoredEvent
from eventsourcing.tests import persistence as cases

from refold.infrastructure.event_store.file_format import create_tables
from refold.infrastructure.event_store.recorder import DurableDatastore, LogRecorder
from refold.infrastructure.event_store.snapshots import SQLiteSnapshots
from tests.support.witness import SHM


class Places(TestCase):
    """A store of its own for each case, in a folder that goes with it; streams are named by text."""

    in_memory = False

    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory(dir=SHM)
        self.addCleanup(self.folder.cleanup)
        self.threads = frozenset(threading.enumerate())

    def close(self, store: DurableDatastore) -> None:
        """Close a store that nobody uses: a case of the library may end before its readers do."""
        for thread in frozenset(threading.enumerate()) - self.threads:
            thread.join(timeout=30)
        store.close()

    def new_originator_id(self) -> UUID | str:
        return f"talk {uuid4()}"

    def new_store(self) -> tuple[LogRecorder, SQLiteSnapshots]:
        """Events and snapshots of a new log, as the log itself makes them."""
        shared = f"file:{uuid4().hex}?mode=memory&cache=shared"
        name = shared if self.in_memory else str(Path(self.folder.name) / "log.db")
        store = DurableDatastore(name)
        self.addCleanup(self.close, store)
        events, snapshots = LogRecorder(store), SQLiteSnapshots(store, "stored_snapshots")
        create_tables(store, [events, snapshots])
        return events, snapshots


class TestEventsInAFile(Places, cases.ApplicationRecorderTestCase[LogRecorder]):
    def create_recorder(self) -> LogRecorder:
        return self.new_store()[0]

    def test_a_stream_named_by_a_uuid_is_found_again(self) -> None:
        recorder, stream = self.create_recorder(), uuid4()
        recorder.insert_events([StoredEvent(stream, 1, "topic", b"state")])
        assert [row.state for row in recorder.select_events(stream)] == [b"state"]

    def test_many_events_take_few_statements_and_have_their_log_positions(self) -> None:
        recorder, statements = self.create_recorder(), list[str]()
        recorder.insert_events([StoredEvent("other", 1, "topic", b"")])
        with recorder.datastore.transaction(commit=True) as c:
            c.sqlite_cursor.connection.set_trace_callback(statements.append)
        rows = [StoredEvent("talk", version, "topic", b"%d" % version) for version in range(1, 41)]
        numbers = recorder.insert_events(rows)
        assert numbers == list(range(2, 42))
        stored = recorder.select_notifications(start=2, limit=100)
        assert [(one.id, one.state) for one in stored] == [
            (row.originator_version + 1, row.state) for row in rows
        ]
        assert sum(one.startswith("INSERT INTO stored_events") for one in statements) == 3


class TestEventsInMemory(TestEventsInAFile):
    in_memory = True


class TestSnapshotsInAFile(Places, cases.AggregateRecorderTestCase):
    def create_recorder(self) -> AggregateRecorder:
        return self.new_store()[1]


class TestSnapshotsInMemory(TestSnapshotsInAFile):
    in_memory = True

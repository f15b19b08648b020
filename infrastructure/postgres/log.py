"""The log on a PostgreSQL server."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

from refold.application.errors import LogDamaged
from refold.application.maintenance.maintenance_results import ErasedPlace, Sizes
from refold.application.ports.conversation_log import Damage, LoggedEvent
from refold.application.ports.log_keeper import Checked
from refold.infrastructure.event_store.anchor import Anchored
from refold.infrastructure.event_store.conversation_loader import StreamLoader
from refold.infrastructure.event_store.encodings import Encodings
from refold.infrastructure.event_store.encryption import Keys, KeySource
from refold.infrastructure.event_store.envelope import EventMapper
from refold.infrastructure.event_store.recorder import Head, Row, SealedRows
from refold.infrastructure.event_store.snapshots import SnapshotStore
from refold.infrastructure.event_store.stored_log import LogParts, StoredLog
from refold.infrastructure.event_store.stream_copies import StreamCopier
from refold.infrastructure.event_store.stream_reads import SCAN_BATCH, StreamReader
from refold.infrastructure.maintenance.table_checks import KEYS, LOG, SNAPSHOTS
from refold.infrastructure.observability.log_observer import Notice, ignore

from .connections import Address, Store, to_text
from .eraser import PostgresEraser
from .event_rows import PostgresRecorder
from .failures import as_log_errors, retry
from .remains import ErasedRemains
from .schema import prepare_schema
from .server_check import check_log
from .server_copy import ServerCopyEnd
from .server_sizes import measure
from .stream_rows import PostgresCopyRows, PostgresKeys, PostgresShelf, PostgresSnapshots
from .turns import PostgresTurns

R = TypeVar("R")
_ADVICE = (
    "if the server lost its last commits, as at a failover to a replica that was behind, or was restored, open the "
    "memory again: it goes on with what the server has. Otherwise run `refold verify` to see all damage, and restore "
    "the log with pg_restore or point-in-time recovery"
)
"""Advice about damage on a server."""


class _NothingHeld:
    """The ``Holding`` of a log without an anchor."""

    def known(self, thread_id: str) -> Anchored | None:
        """Return None."""
        del thread_id
        return None

    def hold(self, thread_id: str, known: Anchored | None, head: Head, at: int | None) -> None:
        """Accept every load."""


class PostgresLog(StoredLog):
    """A ``ConversationLog`` on a server, which several machines share."""

    def __init__(
        self,
        address: Address,
        *,
        create: bool = True,
        key: KeySource | None = None,
        notify: Callable[[Notice], None] = ignore,
    ) -> None:
        """Open the log at ``address``. With ``create``, create its schema if it is missing.

        ``key`` encrypts all events of a new log.

        Raises:
            LogError: the server cannot be used, or the schema is not suitable; see ``prepare_schema``.
            LogLocked: the log is encrypted, and the key is missing or wrong; or it has plain events.
        """
        self.address = address
        self.store = Store(address)
        self.turns = PostgresTurns(address)
        keys = Keys(key)
        shelf = PostgresShelf(self.store, shown=address.shown)
        encodings = Encodings(keys, shelf)
        try:
            with as_log_errors(address.shown):
                prepare_schema(self.store, create=create)
                self.store.look_for_pooler()
                shelf.begin(keys)
                encodings.unlock()
                self.is_replica = retry(self.store.ask_if_replica)
                """True if the server was a replica when the log was opened."""
        except BaseException:
            self.store.close()
            raise
        super().__init__(
            address.shown, self._parts_of(keys, EventMapper(encodings), encodings, notify)
        )

    def _parts_of(
        self,
        keys: Keys,
        mapper: EventMapper,
        encodings: Encodings,
        notify: Callable[[Notice], None],
    ) -> LogParts:
        self._recorder = PostgresRecorder(self.store, keys)
        self._remains = ErasedRemains(self.store)
        self._eraser = PostgresEraser(self._recorder, mapper, self._remains)
        self._copy_rows = PostgresCopyRows(self._recorder)
        snapshots = SnapshotStore(PostgresSnapshots(self.store), encodings, notify)
        reader = StreamReader(self._recorder, mapper, _forget_nothing)
        return LogParts(
            mapper,
            reader,
            StreamLoader(reader, snapshots, _NothingHeld()),
            snapshots,
            StreamCopier(self._copy_rows, mapper),
            self._eraser,
            PostgresKeys(self._recorder, mapper),
        )

    def finish_erasures(self, drop: Callable[[], bool]) -> bool:
        """Remove the keys of erased content for good. Return whether nothing is left."""
        with self._guard():
            number = retry(self._eraser.pending)
            if number is None:
                return True
            if self.store.is_replica:
                return False  # The primary removes them, and this server follows.
            return drop() and retry(lambda: self._eraser.finish(number))

    def erased_places(self) -> Sequence[ErasedPlace]:
        """Return where keys of erased content may still be."""
        with self._guard():
            return retry(lambda: tuple(self._remains.places()))

    def wait_for_erasures(self, seconds: float) -> bool:
        """Switch and checkpoint the write-ahead log until it has no keys of erased content."""
        with self._guard():
            return retry(lambda: self._remains.wait(seconds))

    def newest(self) -> int:
        """Return the log position of the newest event."""
        with self._guard():
            return self._recorder.max_notification_id() or 0

    def scan(self, after: int = 0) -> Iterator[LoggedEvent]:
        """Yield all events after a log position."""
        self._check_open()
        with self._guard():
            yield from self._scan(after, {})

    def check(self) -> Iterator[Damage]:
        """Yield all damage of the log."""
        yield from self.checked().damage

    def checked(self) -> Checked:
        """Read everything and report damage of the log, its keys and its snapshots."""
        with self._guard():
            return retry(lambda: check_log(self._recorder, self._parts.mapper))

    def repair(self, damage: Sequence[Damage]) -> Iterator[str]:
        """Repair snapshots and the index of keys from the events. Yield a sentence for each repair."""
        with self._guard():
            places = [(d.thread_id, d.version) for d in damage if d.place == SNAPSHOTS]
            if places:
                PostgresSnapshots(self.store).drop(places)
                yield f"{len(places)} damaged snapshots were removed; loads read the events instead"
            threads = {d.thread_id for d in damage if d.place == KEYS}
            if threads and not any(d.place == LOG for d in damage):
                for thread_id in sorted(threads):
                    self._copy_rows.renew_keys(thread_id, self._parts.mapper)
                yield "the index of keys was rebuilt from the messages"

    def sizes(self) -> Sizes:
        """Measure the sizes of the log."""
        with self._guard():
            return retry(lambda: measure(self.store))

    def copy_end(self) -> ServerCopyEnd:
        """Return this log as an end of a copy."""
        return ServerCopyEnd(self._recorder, self._eraser, self._parts.mapper)

    def close(self) -> None:
        """Close the log. Do nothing in a process that was forked from the one that opened it."""
        if self._process.is_this:
            self._closed = True
            self._remembered.clear()
            self.store.close()

    @contextmanager
    def _guard(self) -> Generator[None]:
        self._check_open()
        with as_log_errors(self.address.shown):
            try:
                yield
            except LogDamaged as error:
                raise LogDamaged(
                    error.thread_id, error.version, error.problem, advice=_ADVICE
                ) from error

    def _rows_after(self, number: int) -> Sequence[Row]:
        return self._recorder.rows_after(number, SCAN_BATCH)

    def _store(self, thread_id: str, sealed: SealedRows, before: Head) -> None:
        self._recorder.append(sealed.rows, keys=sealed.keys, follows={thread_id: before})

    def _alone(self, thread_id: str, tries: int) -> AbstractContextManager[object]:
        # The first attempt stores what a remembered state led to, with one statement. After a conflict, the lock
        # of the stream comes first, so that the decision stays valid.
        return self._locked("stream", to_text(thread_id)) if tries else nullcontext()

    def _keep_away(self, thread_id: str) -> None:
        # An append has one such lock, and erasures run one at a time, so they do not wait for each other in a circle.
        self.store.lock("stream", to_text(thread_id))

    def _erasing(self) -> AbstractContextManager[object]:
        return self._locked("copies")

    def _copying(self) -> AbstractContextManager[object]:
        return self._locked("copies", shared=True)

    @contextmanager
    def _locked(self, purpose: str, name: str = "", *, shared: bool = False) -> Generator[None]:
        with self.store.transaction():
            self.store.lock(purpose, name, shared=shared)
            yield

    def _retry(self, attempt: Callable[[], R]) -> R:
        return retry(attempt)

    def _admit(self, thread_ids: Sequence[str]) -> None:
        del thread_ids

    def _note_heads(self, heads: Mapping[str, tuple[Head, int | None]]) -> None:
        del heads


def _forget_nothing() -> None:
    """Do nothing: a server caches its own pages."""

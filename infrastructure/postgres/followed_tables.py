"""A fold of the log in tables on the server, which several machines share and which may be dropped at any time."""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import TypeVar

from psycopg import Connection
from psycopg.rows import TupleRow

from refold.application.errors import LogBusy, LogError
from refold.application.ports.conversation_log import ConversationLog, Damage, LoggedEvent
from refold.application.runtime.opening_process import OpeningProcess
from refold.application.runtime.plain_lines import plain_logger, strip_quotations
from refold.infrastructure.observability.log_observer import Notice, ignore
from refold.infrastructure.projection_store.catch_up import (
    FollowedLog,
    NoAnswer,
    query_with_repairs,
)
from refold.infrastructure.projection_store.checkpoint import (
    POSITIONS,
    FoldOutdated,
    Progress,
    events_after,
    left_in,
    nothing_left,
    progress_in,
    reading_from,
    still_valid,
    unerased,
    write_reading_from,
)
from refold.infrastructure.projection_store.projection import Content, begin, create_tables
from refold.infrastructure.projection_store.projection_check import (
    claimed_position,
    compare_tables,
    fold_all,
    unreadable,
)
from refold.infrastructure.projection_store.row_checksums import (
    BROKEN,
    FoldDamaged,
    blamed_on_file,
)
from refold.infrastructure.projection_store.tables import Tables

from .connections import Store
from .failures import FoldMissing, FoldUnusable, as_fold_errors, retry
from .fold_tables import (
    IN_ORDER,
    FoldNames,
    PostgresTables,
    declared_by,
    swap_tables,
)

AHEAD = 5_000
"""Maximum number of events that are read before the tables are locked."""
ERASING_PATIENCE_MS = 5_000
"""Milliseconds that an erasure waits for folds and rebuilds of other machines."""
REBUILDS = 5
"""Maximum number of rebuilds because content was erased during the one before."""

logger = plain_logger(__name__)
Answer = TypeVar("Answer")


class FollowedTables:
    """A fold of the log in tables next to the log, which several machines keep up to date together.

    Locks are taken in this order: that of rebuilds, that of folds, then tables. All belong to transactions.

    - A machine that folds new events holds the lock of folds, and reads the checkpoint again under it. Rows and
      checkpoint are committed together.
    - A rebuild fills new tables in one transaction and renames them at the end. Others go on with the old ones.
    - A reader locks the table of checkpoints before its snapshot is taken, so it sees tables of one rebuild.

    The tables are not in the write-ahead log. A crash of the server empties them, and the next query folds the
    log again. Where they cannot be used (a replica, a role without rights, tables of a newer refold), the fold is
    kept in the memory of this process, and a warning is logged.
    """

    def __init__(
        self,
        store: Store,
        content: Content,
        log: ConversationLog,
        *,
        notify: Callable[[Notice], None] = ignore,
    ) -> None:
        """Create the fold. The first query creates its tables. ``notify`` is called for each rebuild of damage.

        Names of tables begin with the name of ``content``: ``views_messages``. Projections have versions of their
        own, and any machine may rebuild their tables, so these are no part of the schema's upgrades.
        """
        self._store = store
        self._content = content
        self._log = log
        self._notify = notify
        self._declared = declared_by(content)
        self._live = FoldNames(store.address.schema, content.name)
        self._new = FoldNames(store.address.schema, f"{content.name}_new")
        self._process = OpeningProcess(store.address.shown)
        # Threads wait here and not with a connection of the pool, which the one that folds needs.
        self._folding = threading.Lock()
        self._own = threading.local()
        self._in_memory: FollowedLog | None = None
        self._compared = ""
        """Mark of a checkpoint that was compared with the log."""
        self._damaged = False
        """True if a rebuild because of damage has begun."""

    def answer(self, question: Callable[[Tables], Answer]) -> Answer:
        """Catch up with the log, then query at one moment. Rebuild damaged tables and retry.

        Raises:
            LogError: the log cannot be read, or the server cannot be used.
        """
        self._process.check()

        def ask() -> Answer:
            self._own.seen = 0
            if self._in_memory is not None:
                return self._in_memory.answer(question)
            return self._ask(question)

        try:
            return query_with_repairs(
                lambda: retry(ask),
                is_replaced=lambda: self._in_memory is None and retry(self._is_replaced),
                repair=self._repair,
            )
        except NoAnswer as error:
            raise self._no_rebuild(error.__cause__ or error) from error

    def check(self) -> Iterator[Damage]:
        """Compare the tables with a fresh fold of the log in SQLite, and change neither.

        Events that are not folded in yet are not damage, and neither are tables that will be folded again.
        """
        self._process.check()
        if self._in_memory is not None:
            return self._in_memory.check()
        try:
            with blamed_on_file():
                return iter(retry(lambda: tuple(self._differences())))
        except (FoldOutdated, FoldUnusable) as error:
            logger.info("%s is not checked: %s", self._content.title, error)
            return iter(())
        except BROKEN as error:
            return iter((unreadable(self._content.name, self._content.title, error),))

    def look_into(self, look: Callable[[Tables], Answer]) -> Answer | None:
        """Query the tables without folding new events. Return None if there are none."""
        self._process.check()
        try:
            with self._reading() as db:
                return look(db)
        except (FoldMissing, FoldUnusable):
            return None

    def distrust(self, problem: str) -> None:
        """Rebuild the damaged tables."""
        self._process.check()
        self._own.seen = 0
        self._repair(FoldDamaged(problem), 0)

    def rebuild(self) -> int:
        """Fold the log into new tables, swap them in, and return the number of folded items (``Content.count``)."""
        self._process.check()
        if self._in_memory is not None:
            return self._in_memory.rebuild()
        try:
            self._build(None)
        except FoldUnusable as error:
            self._move_to_memory(error)
        return self.answer(self._content.count)

    def forget_erased(self) -> bool:
        """Remove erased content from all tables, and return whether no byte of it is left.

        It is folded in, then all tables are written again. If that is not possible, they are dropped.
        """
        self._process.check()
        if self._in_memory is not None and not self._in_memory.forget_erased():
            return False
        try:
            with blamed_on_file():
                return retry(self._forget)
        except LogBusy as error:
            logger.warning("%s keeps erased content: %s", self._content.title, error)
            return False
        except (LogError, RecursionError, *BROKEN) as error:
            logger.info("%s is folded again: %s", self._content.title, error)
            return self.drop()

    def drop(self) -> bool:
        """Drop the tables, and return whether nothing is left."""
        self._process.check()
        if self._in_memory is not None and not self._in_memory.drop():
            return False
        try:
            retry(self._drop)
        except (LogError, *BROKEN) as error:
            logger.warning("%s cannot be dropped: %s", self._content.title, error)
            return False
        return True

    def _drop(self) -> None:
        with self._alone() as live:
            swap_tables(live, self._new, ())

    def close(self) -> None:
        """Release the fold in memory. The connections belong to the log."""
        if self._process.is_this and self._in_memory is not None:
            self._in_memory.close()

    def _ask(self, question: Callable[[Tables], Answer]) -> Answer:
        while True:
            self._catch_up()
            with self._reading() as db:
                # Tables that a rebuild swapped in since may be behind those that were caught up.
                if db.identity() != self._seen:
                    continue
                answer = question(db)
                if self._damaged:
                    self._damaged = False
                    name = f"{self._content.name}.rebuilt"
                    self._notify(Notice(name, "", {self._content.counts: self._content.count(db)}))
                return answer

    @contextmanager
    def _reading(self) -> Generator[PostgresTables]:
        """Run the block in a transaction that sees one moment, and tables of one rebuild."""
        with self._apart(self._live) as db:
            db.command(
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; "
                f"LOCK TABLE {{{POSITIONS}}} IN ACCESS SHARE MODE"
            )
            yield db

    def _differences(self) -> Iterator[Damage]:
        with self._reading() as db:
            found = db.execute(f"SELECT projection, version FROM {{{POSITIONS}}}").fetchall()
            self._refuse_other_versions(found)
            db.begin_check()
            damage = tuple(self._damage_of_columns(db))
            if damage:
                yield from damage
                return
            yield from self._content.damage(db)
            yield from compare_tables(db, self._content, self._log, claimed_position(db)) or ()

    def _damage_of_columns(self, db: PostgresTables) -> Iterator[Damage]:
        found = db.columns()
        for name, declared in self._declared.items():
            if name not in found:
                yield Damage(name, "", 0, "missing", "the table is not there")
            elif not declared.columns.keys() <= found[name]:
                yield Damage(name, "", 0, "differs", "the columns of the table")

    def _is_replaced(self) -> bool:
        with self._apart(self._live) as db:
            return db.identity() != self._seen

    @property
    def _seen(self) -> int:
        """Number of the table of checkpoints that this thread read last, or 0."""
        return getattr(self._own, "seen", 0)

    def _read_progress(self, db: Tables) -> Progress:
        """Return the checkpoint.

        Raises:
            FoldMissing: a crash of the server has emptied the tables.
            FoldUnusable: a newer refold filled them.
            FoldOutdated: an earlier one did.
        """
        rows = db.execute(f"SELECT *, tableoid::bigint FROM {{{POSITIONS}}}").fetchall()
        self._own.seen = rows[0][-1] if rows else 0
        self._refuse_other_versions([(row[0], row[1]) for row in rows])
        return progress_in([row[:-1] for row in rows], self._content.projections)

    def _refuse_other_versions(self, found: Sequence[tuple[str, int]]) -> None:
        versions = self._content.projections
        if not found:
            raise FoldMissing("the tables are empty, as after a crash of the server")
        if any(version > versions.get(name, version) for name, version in found):
            raise FoldUnusable("a newer refold filled the tables")
        if any(version < versions.get(name, version) for name, version in found):
            raise FoldOutdated("an earlier version of refold filled it")

    def _catch_up(self) -> None:
        known = self._stored_progress()
        # The event itself is compared once, and again when there are new ones.
        if known.mark == self._compared and known.number == self._log.newest():
            return
        events = events_after(self._log, known)
        first = next(events, None)
        if first is None:
            self._compared = known.mark
            return
        with self._folding:
            is_done = self._fold(known, chain((first,), events))
            while not is_done:
                known = self._stored_progress()
                is_done = self._fold(known, events_after(self._log, known))

    def _stored_progress(self) -> Progress:
        with self._errors(), self._store.connection() as connection:
            return self._read_progress(self._tables(connection, self._live))

    def _fold(self, known: Progress, events: Iterator[LoggedEvent]) -> bool:
        """Fold the events after a checkpoint in. Return False if others moved the checkpoint meanwhile."""
        # The log is not read in the transaction: giving positions would keep others from it.
        while ahead := list(islice(events, AHEAD)):
            rest, more = iter(ahead), True
            while more:
                relaxed = not self._store.is_inside
                with self._errors(), self._store.transaction() as connection:
                    db = self._tables(connection, self._live)
                    # What a crash of the server takes back here is folded again.
                    db.lock(self._lock_of("fold"), relaxed=relaxed)
                    if self._read_progress(db) != known:
                        return False
                    read_from = reading_from(db)
                    left = left_in(self._log, read_from)
                    batch = still_valid(rest, read_from)
                    known, more = self._content.fold(db, known, batch, left)
        self._compared = known.mark
        return True

    def _lock_of(self, purpose: str) -> int:
        return self._store.address.lock(purpose, self._content.name)

    def _repair(self, error: Exception, tries: int) -> None:
        title = self._content.title
        if isinstance(error, FoldUnusable) or tries > 1:
            self._move_to_memory(error)
            return
        if isinstance(error, FoldOutdated):
            logger.info("rebuilding %s: %s", title, error)
        else:
            shown = self._store.address.shown
            logger.warning("%s of %s: damaged (%s); rebuilding from the log", title, shown, error)
            self._damaged = True
        try:
            self._build(error)
        except FoldUnusable as refused:
            self._move_to_memory(refused)

    def _build(self, error: Exception | None) -> None:
        """Fold the log into new tables and swap them in, unless others repaired the ``error`` already."""
        for _ in range(REBUILDS):
            try:
                retry(lambda: self._build_once(error))
                return
            except FoldUnusable:
                raise
            except FoldOutdated as outdated:
                # Or another process dropped the tables while this one waited for its turn.
                logger.info("rebuilding %s again: %s", self._content.title, outdated)
            except FoldDamaged as damaged:
                raise self._no_rebuild(damaged) from damaged
        raise LogBusy(f"{self._content.title} cannot be rebuilt while content is erased; try again")

    def _no_rebuild(self, cause: BaseException) -> LogError:
        title, shown = self._content.title, self._store.address.shown
        why = f"{title} of {shown} cannot be rebuilt ({strip_quotations(cause)})"
        return LogError(f"{why}; run `refold verify`, the log may be damaged")

    def _build_once(self, error: Exception | None) -> None:
        with self._store.rebuilding, self._apart(self._new) as new:
            self._build_in(new, error)

    def _build_in(self, new: PostgresTables, error: Exception | None) -> None:
        live = self._tables(new.connection, self._live)
        new.lift_time_limits()
        new.lock(self._lock_of("rebuild"))
        if error is not None and self._is_repaired(live, error):
            return
        begin(self._content, new)
        newest = self._log.newest()
        write_reading_from(new, newest)
        fold_all(self._content, new, unerased(self._log.scan(), newest), nothing_left)
        self._finish(new)
        new.lock(self._lock_of("fold"))
        swap_tables(live, self._new, self._declared)

    def _is_repaired(self, live: PostgresTables, error: Exception) -> bool:
        now = live.identity()
        if now and isinstance(error, FoldMissing):
            return bool(live.execute(f"SELECT 1 FROM {{{POSITIONS}}}").fetchall())
        return bool(now and self._seen and now != self._seen)

    def _finish(self, new: PostgresTables) -> None:
        self._content.finish(new)
        for name in self._declared:
            new.command(f"ANALYZE {{{name}}}")

    def _forget(self) -> bool:
        """Fold the erasure in, then copy all rows into new tables, so that no page keeps what was deleted."""
        self._catch_up()
        with self._alone() as live:
            new = self._tables(live.connection, self._new)
            create_tables(self._content, new)
            for name, declared in self._declared.items():
                columns = ", ".join(declared.columns)
                also = f" ORDER BY {IN_ORDER}" if declared.in_order else ""
                source = self._live.table(name)
                new.command(
                    f"INSERT INTO {{{name}}} ({columns}) SELECT {columns} FROM {source}{also}"
                )
            self._finish(new)
            swap_tables(live, self._new, self._declared)
        return True

    @contextmanager
    def _alone(self) -> Generator[PostgresTables]:
        """Run the block in a transaction while no machine folds or rebuilds.

        Raises:
            LogBusy: others fold for too long.
        """
        with self._store.rebuilding, self._folding, self._apart(self._live) as db:
            db.configure(lock_timeout=f"{ERASING_PATIENCE_MS}ms", statement_timeout="0")
            db.lock(self._lock_of("rebuild"))
            db.lock(self._lock_of("fold"))
            yield db

    @contextmanager
    def _apart(self, names: FoldNames) -> Generator[PostgresTables]:
        with self._errors(), self._store.transaction_apart() as connection:
            yield self._tables(connection, names)

    def _tables(self, connection: Connection[TupleRow], names: FoldNames) -> PostgresTables:
        return PostgresTables(connection, names, self._declared, self._store.address.shown)

    @contextmanager
    def _errors(self) -> Generator[None]:
        with as_fold_errors(self._store.address.shown):
            yield

    def _move_to_memory(self, error: Exception) -> None:
        title, shown = self._content.title, self._store.address.shown
        logger.warning("%s cannot be used on %s (%s): kept in memory instead", title, shown, error)
        self._in_memory = FollowedLog(":memory:", self._content, self._log, notify=self._notify)

"""The content of the file of the recall index, and how messages are folded into it."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol

from refold.application.ports.conversation_log import ConversationLog, Damage, LoggedEvent
from refold.application.ports.recall_index import NO_FILTERS, Filters, Found, Judge
from refold.application.recall.passages import (
    Passage,
    UnreadMessage,
    unread_passages,
)
from refold.domain.events import MessageAppended, MessageErased
from refold.domain.messages import gist
from refold.infrastructure.observability.log_observer import Notice, ignore
from refold.infrastructure.projection_store.catch_up import FollowedLog
from refold.infrastructure.projection_store.checkpoint import (
    FoldOutdated,
    Left,
    Progress,
    Total,
    mark_of,
    read_progress,
    reading_from,
    write_progress,
    write_reading_from,
)
from refold.infrastructure.projection_store.projection import Comparable
from refold.infrastructure.projection_store.row_checksums import (
    FoldDamaged,
    Sealed,
    open_row,
    seal_full,
)
from refold.infrastructure.projection_store.tables import Tables

from . import index_search as finding
from .index_tables import (
    EVENTS,
    IS_THERE,
    LOCAL_BITS,
    PASSAGE_COLUMNS,
    PASSAGES,
    POSTINGS,
    PROJECTIONS,
    RUN_BITS,
    RUNS,
    SEGMENT_PLACE_BITS,
    THREAD_COLUMNS,
    THREADS,
    Thread,
    create_tables,
    posted_before,
    put_thread,
    stored_thread,
)
from .proved_counts import Proved
from .segments import PassageDamaged, SegmentPostings, problem_of


class Postings(Protocol):
    """The passages that have a token, as a kind of database keeps them."""

    def lines_of(self, texts: Sequence[tuple[bytes, str]]) -> Sequence[tuple[str, int]]:
        """Return the tokens of the next passages, as ``counted_line`` does for their words and dates."""
        ...

    def take(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Collect the rows of new passages. Numbers must ascend."""
        ...

    def write(self, db: Tables, first: int, stop: int) -> None:
        """Write what was collected or waits, numbered from ``first`` up to ``stop``; later passages may wait.

        The rows of all of them are in the tables.
        """
        ...

    def rows_at(
        self, db: Tables, thread_id: str, thread: Thread, position: int
    ) -> Sequence[tuple[Any, ...]]:
        """Return the rows of the passages of a message.

        Raises:
            FoldDamaged: rows are missing, or some belong to other messages.
        """
        ...

    def remove(self, db: Tables, passages: Sequence[Passage], gone: Total, stop: int) -> None:
        """Remove the passages of a message, whose rows have the total ``gone``.

        Passages from ``stop`` on wait to be written.
        """
        ...


def erase(
    db: Tables,
    total: Total,
    number: int,
    remains: Sequence[LoggedEvent],
    postings: Postings,
) -> Total:
    """Remove erased messages from the index, in the open transaction, and return the new total.

    ``total`` is the old total. ``number`` is the log position of the erasure, which starts a new
    edition. ``remains`` has what the log keeps of the reduced events.

    Raises:
        FoldDamaged: a row of the messages differs from what was stored.
        FoldOutdated: the passages of later messages depend on the erased content.
    """
    for logged in remains:
        if isinstance(logged.event, MessageAppended):
            stop = posted_before(number)
            gone = _erase_message(db, logged, logged.event, postings, stop)
            total = total.plus(Total(-gone.rows, -gone.checksums))
    write_reading_from(db, number)
    return total


def _erase_message(
    db: Tables, logged: LoggedEvent, event: MessageAppended, postings: Postings, stop: int
) -> Total:
    thread = stored_thread(db, logged.thread_id)
    rows = postings.rows_at(db, logged.thread_id, thread, event.position)
    passages = [Passage._make(open_row(PASSAGES, row)[:17]) for row in rows]
    if any(p.position != event.position for p in passages):
        raise FoldDamaged(f"the passages of message {event.position} are not where they should be")
    _expect_same_calls(passages, event)
    gone = Total(len(rows), sum(int(row[-1]) for row in rows))
    answered = frozenset(gist(event.message).results)
    # A result without words answers nothing, but its marker has words.
    calls = tuple(call for call in thread.before.calls if call[0] not in answered)
    thread.before = thread.before._replace(calls=calls)
    thread.take_out(gone, passages)
    if thread.total.rows < 0:
        raise FoldDamaged(f"conversation {logged.thread_id!r} has passages that are not counted")
    put_thread(db, logged.thread_id, thread)
    if passages:
        postings.remove(db, passages, gone, stop)
    return gone


def _expect_same_calls(passages: Sequence[Passage], event: MessageAppended) -> None:
    """Check that no calls of a provider's own tools are removed, because later results refer to them."""
    left = gist(event.message)
    names = {str(block.get("name")) for block in event.message.blocks() if "name" in block}
    for passage in passages:
        if passage.kind == "call" and passage.tool not in names:
            raise FoldOutdated(f"the call of {passage.tool} was erased")
        if passage.kind == "result" and not left.results:
            raise FoldOutdated("the call of a result was erased")


BATCH = 5_000
"""Maximum number of events that are collected before a write and stored in one transaction."""
FULL = 10_000
"""Maximum number of passages that are collected before a write: some 20 million characters."""


def fold_into(
    db: Tables,
    progress: Progress,
    events: Iterator[LoggedEvent],
    left: Left,
    postings: Callable[[], Postings] = SegmentPostings,
) -> tuple[Progress, bool]:
    """Fold the next batch of events in, and store rows and checkpoint in the open transaction."""
    batch = Batch(db, progress.totals[PASSAGES], postings(), progress.number)
    taken, last = 0, None
    while not _is_enough(batch, taken, last) and (logged := next(events, None)):
        taken += 1
        if logged.number <= progress.number:
            continue
        last = logged
        if not logged.is_unread and logged.kind is MessageErased:
            if remains := left(logged):
                # The original must be in the tables before it can be removed from them.
                total = batch.write(logged.number)
                total = erase(db, total, logged.number, remains, postings())
                batch = Batch(db, total, postings(), logged.number)
        else:
            batch.take(logged)
    if last is not None:
        progress = Progress(last.number, mark_of(last), {PASSAGES: batch.write(last.number)})
        write_progress(db, PROJECTIONS, progress)
    return progress, _is_enough(batch, taken, last)


def _is_enough(batch: "Batch", taken: int, last: LoggedEvent | None) -> bool:
    """Return whether the batch must be written now. With many passages, whole segments are written."""
    if taken >= BATCH or batch.is_full:
        return True
    is_end = last is not None and (last.number + 1) % EVENTS == 0
    return is_end and taken > BATCH - EVENTS


AT_ONCE = 250
"""Number of passages that are read and inserted at once: as many as fit the processor's cache."""


class Batch:
    """The passages of many events."""

    def __init__(self, db: Tables, total: Total, postings: Postings, before: int) -> None:
        """Create the batch of the events after ``before``."""
        self._db = db
        self._before = before
        self._postings = postings
        self._total = total
        self._threads: dict[str, Thread] = {}
        self._unread: list[tuple[Thread, UnreadMessage]] = []
        self._count = self._read = 0

    @property
    def is_full(self) -> bool:
        """True if the batch must be written before more events are added."""
        return self._count >= FULL

    def take(self, logged: LoggedEvent) -> None:
        """Add an event. Only messages have passages."""
        message = logged.message
        if message is None:
            return
        thread = self._threads.get(logged.thread_id)
        if thread is None:
            thread = self._threads[logged.thread_id] = stored_thread(self._db, logged.thread_id)
        unread, thread.before = unread_passages(logged, message, thread.before)
        self._unread.append((thread, unread))
        self._count += len(unread.passages)
        if self._count - self._read >= AT_ONCE:
            self._insert()

    def _insert(self) -> None:
        """Read the tokens of passages, and insert their rows."""
        messages, self._unread, self._read = self._unread, [], self._count
        lines = iter(
            self._postings.lines_of([text for _, unread in messages for text in unread.texts])
        )
        rows: list[Sealed] = []
        for thread, run in groupby(messages, itemgetter(0)):
            new = seal_full(
                [row for _, unread in run for row in unread.with_tokens(lines, thread.token)]
            )
            grown = Total(len(new), sum([row[-1] for row in new]))
            thread.add(grown, new)
            self._total = self._total.plus(grown)
            rows += new
        self._postings.take(rows)
        self._db.insert(PASSAGES, rows)

    def write(self, number: int) -> Total:
        """Write all passages up to this event in the open transaction, and return the new total."""
        self._insert()
        first, stop = posted_before(self._before), posted_before(number)
        self._postings.write(self._db, first, stop)
        for thread_id, thread in self._threads.items():
            put_thread(self._db, thread_id, thread)
        return self._total


# Neither may lack what another has.
_EVERY_SEGMENT = f"""SELECT run >> {RUN_BITS} FROM {RUNS}
    UNION SELECT place >> {SEGMENT_PLACE_BITS} FROM {POSTINGS}
    UNION SELECT number >> {LOCAL_BITS} FROM {PASSAGES}"""


class RecallContent:
    """The ``Content`` of the recall index."""

    name = "recall"
    title = "the recall index"
    projections = PROJECTIONS
    counts = "passages"
    late = frozenset[str]()
    schemas = frozenset({"be9a1e851eed13215ebe0789a7ec98d970ea3a689e12b446027bd9de7b0325ca"})
    compared: Sequence[Comparable] = (
        Comparable(
            PASSAGES,
            tuple(PASSAGE_COLUMNS),
            ("number",),
            of_event=True,
            is_final=True,
            where=IS_THERE,
        ),
        Comparable(THREADS, tuple(THREAD_COLUMNS), ("thread",)),
    )

    def create(self, db: Tables) -> None:
        """Create every table except that of checkpoints, in the open transaction."""
        create_tables(db)

    def fold(
        self, db: Tables, progress: Progress, events: Iterator[LoggedEvent], left: Left
    ) -> tuple[Progress, bool]:
        """Fold the next batch of events in, and store rows and checkpoint in the open transaction."""
        return fold_into(db, progress, events, left)

    def finish(self, db: Tables) -> None:
        """Do nothing, because no object slows a bulk load down."""

    def count(self, db: Tables) -> int:
        """Return the number of folded items."""
        return read_progress(db, PROJECTIONS).totals[PASSAGES].rows

    def forget(self, db: Tables) -> None:
        """Empty the tables with final rows, after a check has compared these rows."""
        db.execute(f"DELETE FROM {PASSAGES}")
        db.execute(f"DELETE FROM {POSTINGS}")
        db.execute(f"DELETE FROM {RUNS}")

    def damage(self, db: Tables) -> Iterator[Damage]:
        """Yield the segments whose postings differ from their passages."""
        stop = posted_before(read_progress(db, PROJECTIONS).number)
        for segment in sorted(one for (one,) in db.execute(_EVERY_SEGMENT).fetchall()):
            # The comparison of rows reports a changed passage.
            with suppress(PassageDamaged):
                if problem := problem_of(db, segment, stop):
                    yield Damage(POSTINGS, "", 0, "differs", problem)


RECALL = RecallContent()


class SQLiteRecallIndex:
    """The ``RecallIndex`` in an SQLite file next to the log, which may be deleted at any time.

    If the file cannot be used, the index is kept in memory until it can be used again, and a warning is
    logged.
    """

    def __init__(
        self,
        path: str | Path,
        log: ConversationLog,
        *,
        of: str | Path | None = None,
        notify: Callable[[Notice], None] = ignore,
    ) -> None:
        """Create the index. The file is opened by the first query; ``":memory:"`` uses no disk.

        ``of`` is the log file, which gives the new file its permissions. ``notify`` is called for each
        rebuild because of damage.
        """
        self.followed = FollowedLog(path, RECALL, log, of=of, notify=notify)
        self._proved = Proved()

    def edition(self) -> int:
        """Return the edition of the index. Every erasure starts a new one."""
        return self.followed.answer(reading_from)

    def find(
        self,
        tokens: Sequence[str],
        filters: Filters = NO_FILTERS,
        *,
        limit: int = 50,
        also: Sequence[int] = (),
        judge: Judge | None = None,
    ) -> Found:
        """Find the best passages with these tokens that pass the filters."""
        search = finding.Search(tokens, filters, limit, also, judge)
        return self.followed.answer(lambda db: finding.find(db, search, self._proved))

    def passages(
        self, after: int = 0, limit: int = 1_000, *, filters: Filters = NO_FILTERS
    ) -> Sequence[Passage]:
        """Return the next passages after a number that pass the filters."""
        return self.followed.answer(
            lambda db: finding.in_order(db, after, limit, filters, self._proved)
        )

    def digests(self) -> Collection[str]:
        """Return the digests of all texts."""
        return self.followed.answer(lambda db: finding.every_digest(db, self._proved))

    def check(self) -> Iterator[Damage]:
        """Yield all differences from a replay."""
        return self.followed.check()

    def rebuild(self) -> int:
        """Delete the index, fold the log again, and return the number of passages."""
        return self.followed.rebuild()

    def drop(self) -> bool:
        """Delete the index, and return whether nothing is left."""
        return self.followed.drop()

    def forget_erased(self) -> bool:
        """Remove erased content from all files, and return whether nothing of it is left."""
        return self.followed.forget_erased()

    def close(self) -> None:
        """Release files and connections. A second call does nothing."""
        self.followed.close()

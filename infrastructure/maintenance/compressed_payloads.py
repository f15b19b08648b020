"""Compress stored events that are rarely read: those before the live part of a conversation."""

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from eventsourcing.sqlite import SQLiteCursor

from refold.application.errors import LogDamaged
from refold.application.maintenance.maintenance_results import Compressed
from refold.domain.conversation import Conversation
from refold.infrastructure.event_store.codec import is_packed
from refold.infrastructure.event_store.conversation_loader import StreamLoader
from refold.infrastructure.event_store.encodings import (
    ZSTD,
    DictionaryDamaged,
    Encodings,
    require_zstandard,
    train_dictionary,
)
from refold.infrastructure.event_store.envelope import (
    LONGEST_FRAME,
    Envelope,
    EnvelopeError,
    Place,
    is_place,
    parse_frame,
    stored_bytes,
    unseal,
)
from refold.infrastructure.event_store.recorder import LogRecorder
from refold.infrastructure.event_store.shelf import dictionaries, open_dictionary, put_dictionary
from refold.infrastructure.event_store.snapshots import SnapshotStore
from refold.infrastructure.files.lock import WriteLock
from refold.infrastructure.sqlite.sqlite_failures import retrying


class Old(NamedTuple):
    """The events of a conversation that are rarely read."""

    before: int
    """Exclusive upper bound of the versions."""
    in_use: frozenset[int]
    """Versions below ``before`` that are still read."""


def old_versions(
    recorder: LogRecorder, snapshots: SnapshotStore, loader: StreamLoader, keep: int
) -> dict[str, Old]:
    """Return the rarely read events of each conversation, without its last ``keep`` events.

    Damaged conversations are left out, and so are conversations without rarely read events.
    """
    newest = _newest(recorder)
    found: dict[str, Old] = {}
    for stream, version in newest:
        known = snapshots.newest(stream, None)
        try:
            state = loader.load(stream).loaded.state if known is None else known.state
        except LogDamaged:
            continue
        if not state.older_live:
            end = max(0, min(state.live_from, version + 1 - keep))
            found[stream] = Old(end, _versions_in_use(state))
    return found


def _versions_in_use(state: Conversation) -> frozenset[int]:
    """Return the versions before ``live_from`` that are still read: messages, pins, the summary and a link."""
    live = {version for m in state.live for version in (m.version, *m.offloads, m.recalled_at)}
    pins = {pin.version for pin in state.pins}
    summary = {state.summary.version} if state.summary else set[int]()
    # The link of the event before the first one is read.
    return frozenset({*live, *pins, *summary, state.live_from - 1})


@retrying
def _newest(recorder: LogRecorder) -> list[tuple[str, int]]:
    with recorder.datastore.transaction(commit=False) as c:
        c.execute("SELECT originator_id, max(originator_version) FROM stored_events GROUP BY 1")
        rows = ((stream, version) for stream, version in c.fetchall())
        return [row for row in rows if is_place(*row, "")]


WORTH_IT = 400
"""Minimum stored size of an event in bytes. About half of it is the frame; shorter events hardly shrink."""
BATCH = 200
"""Number of rows in one transaction, during which other writers wait."""
SAMPLE_BYTES, SAMPLED_BYTES = 8 * 1024, 8 * 1024 * 1024
"""Training data of a dictionary: maximum bytes of one payload, and of all together."""

_HEADS = f"SELECT rowid, substr(state, 1, {LONGEST_FRAME}) FROM stored_events"
_ROW = "SELECT originator_id, originator_version, topic, state FROM stored_events WHERE rowid=?"
_ERASURES = "SELECT seq FROM sqlite_sequence WHERE name='pending_erasures'"


class _Sizes(NamedTuple):
    """Sizes of the rewritten rows."""

    events: int = 0
    before: int = 0
    after: int = 0


class LogCompressor:
    """A compressor that rewrites rows in place. Events, digests and links stay the same.

    Each batch is a transaction of its own. If the process is killed, the log stays intact, and the next
    run continues from there.
    """

    def __init__(self, recorder: LogRecorder, encodings: Encodings, lock: WriteLock) -> None:
        self._recorder = recorder
        self._encodings = encodings
        self._lock = lock

    def compress(self, old: Mapping[str, Old]) -> Compressed:
        """Compress the old events of each stream that are not compressed yet.

        Raises:
            InvalidSetting: the library is missing.
        """
        require_zstandard()
        rows = [row for stream, part in old.items() for row in self._plain(stream, part)]
        sizes, number = _Sizes(), None
        if rows:
            number = self._usable_dictionary() or self._new_dictionary(rows)
            sizes = self._rewrite(rows, number)
        return Compressed(
            events=sizes.events,
            bytes_before=sizes.before,
            bytes_after=sizes.after,
            dictionary=number,
            reusable_bytes=self._free_bytes(),
        )

    def renew_dictionaries(self) -> None:
        """Replace all dictionaries, which may contain erased text, with one that is trained on the rest.

        The old dictionaries are deleted on return. If the process dies earlier, call it again. Damaged
        rows stay as they are; they cannot be read without a dictionary either.
        """
        with self._recorder.datastore.transaction(commit=False) as c:
            old = frozenset(number for number, _ in dictionaries(c))
        if not old:
            return
        require_zstandard()
        number: int | None = None
        tried: set[int] = set()
        while rows := self._rows_or_delete(old, tried):
            if not tried:
                number = self._new_dictionary(rows)
            self._rewrite(rows, number, any_size=True)
            tried.update(rows)

    @retrying
    def _rows_or_delete(self, old: Collection[int], tried: Collection[int]) -> list[int]:
        """Return the rows that need one of these dictionaries. If there are none, delete the dictionaries."""
        with self._lock.held(), self._recorder.datastore.transaction(commit=True) as c:
            _begin(c)
            c.execute(_HEADS)
            rows = [n for n, head in c.fetchall() if n not in tried and _dictionary(head) in old]
            if not rows:
                c.executemany("DELETE FROM dictionaries WHERE id=?", [(number,) for number in old])
        return rows

    @retrying
    def _plain(self, stream: str, old: Old) -> list[int]:
        with self._recorder.datastore.transaction(commit=False) as c:
            c.execute(
                f"SELECT rowid, substr(state, 1, {LONGEST_FRAME}), originator_version "
                "FROM stored_events "
                "WHERE originator_id=? AND originator_version<? AND length(state)>?",
                (stream, old.before, WORTH_IT),
            )
            found = c.fetchall()
        return [n for n, head, version in found if version not in old.in_use and _is_plain(head)]

    @retrying
    def _usable_dictionary(self) -> int | None:
        with self._recorder.datastore.transaction(commit=False) as c:
            known = dictionaries(c)
        for number, content in known:
            try:
                open_dictionary(number, content, self._encodings)
            except DictionaryDamaged:
                continue
            return number
        return None

    @retrying
    def _new_dictionary(self, rows: Sequence[int]) -> int | None:
        """Train and store a dictionary. Return its number, or None if there are too few rows."""
        while True:
            with self._recorder.datastore.transaction(commit=False) as c:
                erasures = _erasures(c)
            content = train_dictionary(list(self._samples(rows)))
            if content is None:
                return None
            with self._lock.held(), self._recorder.datastore.transaction(commit=True) as c:
                _begin(c)
                # The samples may contain text that was erased in the meantime. If so, they are
                # taken again.
                if _erasures(c) == erasures:
                    self._recorder.note_key(c)
                    return put_dictionary(c, content, self._encodings)

    def _samples(self, rows: Sequence[int]) -> Iterator[bytes]:
        left = SAMPLED_BYTES
        for number in random.sample(rows, len(rows)):
            with self._recorder.datastore.transaction(commit=False) as c:
                opened = self._open_row(c, number)
            if opened is None:
                continue
            place, _, envelope = opened
            if not envelope.erased and not is_packed(place.name, envelope.shape):
                sample = envelope.payload[:SAMPLE_BYTES]
                yield sample
                left -= len(sample)
                if left < 0:
                    return

    def _rewrite(
        self, rows: Sequence[int], number: int | None, *, any_size: bool = False
    ) -> _Sizes:
        """Rewrite rows with another encoding. With ``any_size``, include rows that would not shrink."""
        total = _Sizes()
        self._encodings.prepare(number)
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            done = self._rewrite_batch(batch, number, total, any_size)
            if done is None:
                break  # An erasure has replaced the dictionary; the next run uses the new one.
            total = done
        return total

    @retrying
    def _rewrite_batch(
        self, rows: Sequence[int], number: int | None, total: _Sizes, any_size: bool
    ) -> _Sizes | None:
        """Rewrite a batch completely or not at all. Return the new sizes, or None if the dictionary is
        gone.
        """
        with self._lock.held(), self._recorder.datastore.transaction(commit=True) as c:
            _begin(c)
            if number is not None and number not in dict(dictionaries(c)):
                return None
            self._recorder.note_key(c)
            for row in rows:
                total = self._rewrite_one(c, row, number, total, any_size)
        return total

    def _rewrite_one(
        self, c: SQLiteCursor, row: int, number: int | None, total: _Sizes, any_size: bool
    ) -> _Sizes:
        opened = self._open_row(c, row)
        if opened is None or opened[2].erased:
            return total
        place, before, envelope = opened
        plain = self._encodings.encoding
        found = [
            stored_bytes(place, envelope._replace(encoding=encoding), self._encodings)
            for encoding in (self._encodings.compressed(number), *([plain] * any_size))
        ]
        after = min(found, key=len)
        if len(after) >= before and not any_size:
            return total
        c.execute("UPDATE stored_events SET state=? WHERE rowid=?", (after, row))
        return _Sizes(total.events + 1, total.before + before, total.after + len(after))

    def _open_row(self, c: SQLiteCursor, number: int) -> tuple[Place, int, Envelope] | None:
        c.execute(_ROW, (number,))
        row = c.fetchone()
        if row is None:
            return None
        stream, version, name, state = row
        place = Place(stream, version, name)
        try:
            return place, len(state), unseal(place, state, self._encodings)
        except EnvelopeError:
            return None  # `refold verify` reports the damage.

    def _free_bytes(self) -> int:
        with self._recorder.datastore.transaction(commit=False) as c:
            c.execute(
                "SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size"
            )
            return int(c.fetchone()[0])


def _begin(c: SQLiteCursor) -> None:
    # The transaction starts with an empty write: one that reads before it writes can be refused at
    # once.
    c.execute("UPDATE stored_events SET state=state WHERE 0")


def _encoding(head: object) -> str | None:
    try:
        envelope = parse_frame(head)
    except EnvelopeError:
        return None
    return None if envelope.erased else envelope.encoding


def _is_plain(head: object) -> bool:
    encoding = _encoding(head)
    return encoding is not None and not encoding.startswith(ZSTD)


def _dictionary(head: object) -> int | None:
    """Return the dictionary that a row needs, or None if it needs none or its head is damaged."""
    kind, _, number = (_encoding(head) or "").partition(",")[0].partition(":")
    return int(number) if kind == ZSTD and number.isascii() and number.isdecimal() else None


def _erasures(c: SQLiteCursor) -> Iterable[object]:
    """Return a value that changes with every further erasure."""
    c.execute("SELECT 1 FROM sqlite_schema WHERE name='sqlite_sequence'")
    if c.fetchone() is None:
        return []
    c.execute(_ERASURES)
    return [row[0] for row in c.fetchall()]

"""Copy a log into another one: new events are appended, erased ones are erased, and all of them are compared."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from refold.application.errors import LogError, OtherHistory
from refold.application.ports.log_copy import CopyEnd, CopyHead, CopyRow, RowPlace

from .maintenance_results import Copied

BATCH = 500
"""Maximum number of rows in memory, and in one transaction."""
BATCH_BYTES = 16 << 20
"""Number of bytes after which a transaction ends."""
PASSES = 5
"""Attempts to find nothing changed in the source while everything is compared."""

Progress = Callable[[str, int, int], None]
"""A function that is called with the step, the log position that it reached, and the last one."""


class _Pass(NamedTuple):
    """Counts of one pass over the source."""

    events: int
    copied: int
    rewritten: int
    same_positions: bool


def ignore_progress(step: str, position: int, last: int) -> None:
    """Show nothing."""


def copy_events(source: CopyEnd, target: CopyEnd, progress: Progress = ignore_progress) -> Copied:
    """Copy all events that ``source`` has now, and compare every one of them afterwards.

    The source may be in use: later events are left for the next copy. A copy that was interrupted is continued.

    Raises:
        OtherHistory: the target has other events for a conversation of the source.
        LogDamaged: an event of a log was changed.
        LogError: a log cannot be used.
    """
    copier = _Copier(source, target, progress)
    heads = target.heads()
    copier.refuse_other_history(heads)
    done = copier.run("copying", heads)
    copied, rewritten = done.copied, done.rewritten
    for _ in range(PASSES):
        # What was erased in the source since it was read is erased in the target by the comparison.
        compared = copier.run("comparing", None)
        copied, rewritten = copied + compared.copied, rewritten + compared.rewritten
        if not compared.copied and not compared.rewritten:
            target.finish()
            return Copied(
                source=source.shown,
                target=target.shown,
                conversations=len(copier.conversations),
                events=compared.events,
                copied=copied,
                rewritten=rewritten,
                same_positions=compared.same_positions,
            )
    raise LogError(
        f"{source.shown} changed during each of {PASSES} comparisons; what was copied is stored, copy again"
    )


class _Copier:
    def __init__(self, source: CopyEnd, target: CopyEnd, progress: Progress) -> None:
        self.conversations: set[str] = set()
        self._source = source
        self._target = target
        self._progress = progress
        self._last = source.newest()

    def refuse_other_history(self, heads: Mapping[str, CopyHead]) -> None:
        """Refuse a target whose events of a conversation are not the first ones of the source."""
        all_heads = list(heads.items())
        for start in range(0, len(all_heads), BATCH):
            part = all_heads[start : start + BATCH]
            places = [RowPlace(t, v) for t, head in part for v in {1, head.version}]
            found = self._source.find(places)
            for thread_id, head in part:
                if RowPlace(thread_id, 1) not in found:
                    continue  # A conversation of the target alone.
                row = found.get(RowPlace(thread_id, head.version))
                if row is None:
                    problem = (
                        f"{self._target.shown} has events that {self._source.shown} does not have"
                    )
                    raise OtherHistory(thread_id, head.version, problem)
                if row.link != head.link:
                    raise self._other(row)

    def run(self, step: str, heads: Mapping[str, CopyHead] | None) -> _Pass:
        """Write what is missing or was erased, batch by batch. ``heads`` is None to compare every event."""
        events = copied = rewritten = 0
        same = True
        for batch in self._batches():
            there = self._find(batch, heads)
            new = [row for row in batch if row.place not in there]
            changed = [row for row in batch if self._is_changed(row, there.get(row.place))]
            if new or changed:
                self._target.write(new, changed)
            events += len(batch)
            copied += len(new)
            rewritten += len(changed)
            same = same and all(
                there[row.place].position == row.position for row in batch if row.place in there
            )
            self.conversations.update(row.place.thread_id for row in batch)
            self._progress(step, batch[-1].position, self._last)
        return _Pass(events, copied, rewritten, same)

    def _batches(self) -> Iterator[list[CopyRow]]:
        after = 0
        while rows := self._source.rows_after(after, BATCH):
            after = rows[-1].position
            batch: list[CopyRow] = []
            size = 0
            for row in rows:
                if row.position > self._last:
                    break
                batch.append(row)
                size += len(row.state)
                if size > BATCH_BYTES:
                    yield batch
                    batch, size = [], 0
            if batch:
                yield batch
            if after >= self._last:
                return

    def _find(
        self, batch: Sequence[CopyRow], heads: Mapping[str, CopyHead] | None
    ) -> Mapping[RowPlace, CopyRow]:
        """Return the rows of the target at the places of these rows."""
        wanted = {row.place for row in batch if heads is None or _is_known(row, heads)}
        if not wanted:
            return {}
        # Usually they are at the same log positions, where they are found fastest.
        near = self._target.rows_after(batch[0].position - 1, len(batch))
        found = {row.place: row for row in near if row.place in wanted}
        rest = [place for place in wanted if place not in found]
        return {**found, **self._target.find(rest)} if rest else found

    def _is_changed(self, row: CopyRow, there: CopyRow | None) -> bool:
        """Return whether a row was erased in the source since it was copied."""
        if there is None or there.state == row.state:
            return False
        if there.link != row.link:
            raise self._other(row)
        if not row.is_erased:
            problem = f"it is erased in {self._target.shown}, and not in {self._source.shown}"
            raise OtherHistory(*row.place, problem)
        return True

    def _other(self, row: CopyRow) -> OtherHistory:
        problem = f"{self._target.shown} has another event here than {self._source.shown}"
        return OtherHistory(*row.place, problem)


def _is_known(row: CopyRow, heads: Mapping[str, CopyHead]) -> bool:
    head = heads.get(row.place.thread_id)
    return head is not None and row.place.version <= head.version

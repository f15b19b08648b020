"""Compare a log with its anchor, and refuse to continue if stored events are missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from refold.application.errors import LogBehindAnchor, LogDamaged

from .anchor import Anchor, Anchored, Mark, fingerprint
from .envelope import LONGEST_FRAME, EventMapper, is_place, link_in
from .recorder import DurableDatastore, Head, LogRecorder

if TYPE_CHECKING:
    from refold.application.ports.log_keeper import Checked
    from refold.infrastructure.maintenance.check import Held

_NEWEST = """
    WITH RECURSIVE streams(id) AS (
        SELECT min(originator_id) FROM stored_events
        UNION ALL
        SELECT (SELECT min(originator_id) FROM stored_events WHERE originator_id > streams.id)
        FROM streams WHERE streams.id IS NOT NULL
    )
    SELECT originator_id, originator_version, topic, substr(state, 1, ?), e.rowid
    FROM streams JOIN stored_events e ON originator_id = streams.id AND originator_version =
        (SELECT max(originator_version) FROM stored_events WHERE originator_id = streams.id)
"""
"""Query for the newest event of each stream. It uses the index and reads no other rows."""


class HeldLog:
    """A log together with its anchor."""

    def __init__(self, path: Path, anchor: Anchor, recorder: LogRecorder) -> None:
        self._path = path
        self.anchor = anchor
        self._recorder = recorder
        self.proved = b""
        """Anchor content that a scan of the log has confirmed."""
        self.is_admitted = anchor.path is None
        """True if the log was compared with its anchor, or has none."""

    def begin(self) -> None:
        """Create the anchor of a new log, under the write lock."""
        if self.anchor.path is not None and not self._recorder.rows_after(0, 1):
            self.is_admitted = self.anchor.begin()

    def known(self, thread_id: str) -> Anchored | None:
        """Return the anchored event of a conversation, or None. Call it before you read the log."""
        return self.anchor.find(thread_id)

    def hold(self, thread_id: str, known: Anchored | None, head: Head, at: int | None) -> None:
        """Reject a load that ended at ``head`` if the anchor knows a newer event.

        ``known`` was read from the anchor before the load. ``at`` is the requested version, if there
        was one.

        Raises:
            LogBehindAnchor: the log lacks events that were stored.
        """
        if known is None:
            return
        expected = known.version if at is None else min(at, known.version)
        if head.version < expected:
            raise self._behind(thread_id, known.version, head.version)
        if head.version >= known.version and self._link(thread_id, known, head) != known.link:
            raise self._other(thread_id, known.version)

    def admit(self) -> None:
        """Refuse to append to a log that lacks stored events of any conversation.

        The log is checked once. Later, each conversation is checked by its newest event.

        Raises:
            LogBehindAnchor: the log lacks events that were stored.
        """
        if self.is_admitted:
            return
        newest = self.anchor.newest()
        if newest is not None and self._link_at(newest.number) != newest.link:
            lines, _ = self.anchor.lines()
            heads = {fingerprint(mark.thread_id): mark for mark in self.marks()}
            for name, line in lines.items():
                mark = heads.get(name)
                if mark is None or mark.version < line.version:
                    found = 0 if mark is None else mark.version
                    raise self._behind("" if mark is None else mark.thread_id, line.version, found)
                if mark.version == line.version and mark.link != line.link:
                    raise self._other(mark.thread_id, line.version)
        self.is_admitted = True

    def keep(self, thread_id: str, head: Head) -> None:
        """Record the event that was committed last, under the write lock."""
        if self.anchor.path is not None:
            number = self._recorder.max_notification_id()
            self.anchor.keep(Mark(thread_id, head.version, head.link, number), self.marks)

    def keep_all(self, heads: Mapping[str, tuple[Head, int | None]]) -> None:
        """Record the newest events of several conversations that were committed together.

        Each comes with its log position, if that is known.
        """
        if self.anchor.path is None:
            return
        unknown = any(number is None for _, number in heads.values())
        numbers = {mark.thread_id: mark.number for mark in self.marks()} if unknown else {}
        for thread_id, (head, number) in heads.items():
            place = numbers[thread_id] if number is None else number
            self.anchor.keep(Mark(thread_id, head.version, head.link, place), self.marks)

    def prove(self, changed: list[Anchored], seen: Mapping[str, int], after: int) -> None:
        """Reject a scan that did not reach the anchored events.

        ``changed`` was read before the scan, which began after the log position ``after``. ``seen`` has
        the newest version of each stream in it.

        Raises:
            LogBehindAnchor: the log lacks events that were stored.
        """
        names = {fingerprint(stream): stream for stream in seen}
        for line in changed:
            stream = names.get(line.fingerprint, "")
            # The scan that reached this position has seen everything before it.
            if line.number > after and seen.get(stream, 0) < line.version:
                raise self._behind(stream, line.version, seen.get(stream, 0))

    def check(self, mapper: EventMapper, *others: Held) -> Checked:
        """Report all damage of the log, including where it disagrees with its anchor and with ``others``."""
        from refold.infrastructure.maintenance.check import Held, check_log

        lines, _ = self.anchor.lines()
        held = Held(lines, f"the anchor {self.anchor.path}")
        found = check_log(self._recorder, mapper, held, *others)
        datastore = self._recorder.datastore
        if found.damage and isinstance(datastore, DurableDatastore):
            # A disk that failed for a moment looks the same.
            datastore.forget_pages()
            found = check_log(self._recorder, mapper, held, *others)
        return found

    def renew(self) -> None:
        """Rebuild the anchor from the log.

        Raises:
            OSError: the anchor cannot be written.
        """
        self.anchor.renew(list(self.marks()))
        self.is_admitted, self.proved = self.anchor.path is None, b""

    def marks(self) -> Iterator[Mark]:
        """Yield the newest event of each conversation according to the log.

        Raises:
            LogDamaged: the columns of a row do not identify an event.
        """
        with self._recorder.datastore.transaction(commit=False) as c:
            c.execute(_NEWEST, (LONGEST_FRAME,))
            rows = c.fetchall()
        for stream, version, name, frame, number in rows:
            if not is_place(stream, version, name):
                raise LogDamaged("", 0, f"row {number} does not identify its event")
            yield Mark(stream, version, link_in(frame), number)

    def _link(self, thread_id: str, known: Anchored, head: Head) -> str:
        if head.version == known.version:
            return head.link
        rows = self._recorder.select_versions(thread_id, [known.version])
        return link_in(rows[0].state) if rows else ""

    def _link_at(self, number: int) -> str:
        rows = self._recorder.rows_after(number - 1, 1)
        return link_in(rows[0][-1]) if rows and rows[0][0] == number else ""

    def _other(self, thread_id: str, version: int) -> LogBehindAnchor:
        what = f"conversation {thread_id!r}" if thread_id else "a conversation"
        return LogBehindAnchor(
            f"{what}: event {version} of the log {self._path} differs from the one that was stored: the log "
            f"was replaced, or restored from an older copy and then changed. {self._way_out()}",
            thread_id=thread_id,
            stored=version,
            found=version,
        )

    def _behind(self, thread_id: str, stored: int, found: int) -> LogBehindAnchor:
        what = (
            f"conversation {thread_id!r} has {found}" if thread_id else "a conversation has fewer"
        )
        return LogBehindAnchor(
            f"{what} events in the log {self._path}, but {stored} were stored: the log was truncated "
            f"or restored from an older copy. {self._way_out()}",
            thread_id=thread_id,
            stored=stored,
            found=found,
        )

    def _way_out(self) -> str:
        return way_out(self._path, self.anchor.path)


def way_out(log: Path, anchor: Path | None) -> str:
    """Return advice for a log that is behind its anchor."""
    return (
        f"Nothing was changed. Restore the newer file; or copy the current content with `refold salvage "
        f"NEW.db --db {log}`; or accept the log as it is with `refold anchor --accept --db {log}` "
        f"(the anchor is {anchor})."
    )


def refuse_lost(log: Path, anchor: Anchor) -> None:
    """Refuse to create a new log where a log is missing or empty but its anchor still has lines.

    Raises:
        LogBehindAnchor: the log was lost.
    """
    if log.exists() and log.stat().st_size:
        return
    lines, _ = anchor.lines()
    if lines:
        state = "is empty" if log.exists() else "is not there"
        raise LogBehindAnchor(
            f"the log {log} {state}, and {len(lines)} conversations were stored in it. "
            f"{way_out(log, anchor.path)}",
            stored=max(line.version for line in lines.values()),
        )

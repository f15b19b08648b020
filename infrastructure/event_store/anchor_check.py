"""Holding a log against its anchor: what was stored once must be there, or nothing goes on."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from eventsourcing.persistence import StoredEvent

from refold.application.errors import LogBehindAnchor, LogDamaged
from refold.application.ports.log_keeper import Checked
from refold.infrastructure.maintenance.check import Held, check_log

from .anchor import Anchor, Anchored, Mark, fingerprint
from .envelope import LONGEST_FRAME, EventMapper, is_place, link_of
from .recorder import DurableDatastore, Head, LogRecorder

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
"""Of each stream its newest event, found in the index without reading the others."""


class HeldLog:
    """A log and its anchor."""

    def __init__(self, path: Path, anchor: Anchor, recorder: LogRecorder) -> None:
        self._path = path
        self.anchor = anchor
        self._recorder = recorder
        self._proved = b""
        """The content of the anchor that a scan of the log has borne out."""
        self._admitted = False

    def hold(self, thread_id: str, known: Anchored | None, head: Head, at: int | None) -> None:
        """Refuse a load that ended at ``head``, if ``known``, read before it, says that more was stored.

        ``at``: the version that was asked for, if one was.

        Raises:
            LogBehindAnchor: as said.
        """
        if known is None:
            return
        expected = known.version if at is None else min(at, known.version)
        if head.version < expected:
            raise self._behind(thread_id, known.version, head.version)
        if head.version >= known.version and self._link(thread_id, known, head) != known.link:
            raise self._other(thread_id, known.version)

    def admit(self) -> None:
        """Refuse to append to a log that lacks what was stored, in whatever conversation.

        Looked at once: later on, each conversation is held by its newest event.

        Raises:
            LogBehindAnchor: as said.
        """
        if self._admitted or self.anchor.path is None:
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
        self._admitted = True

    def keep(self, thread_id: str, head: Head, number: int | None = None) -> None:
        """Note what was just committed, under the write lock. ``number``: its position in the log."""
        if self.anchor.path is not None:
            place = self._recorder.max_notification_id() if number is None else number
            self.anchor.keep(Mark(thread_id, head.version, head.link, place), self.marks)

    def keep_all(self, heads: Mapping[str, tuple[Head, int | None]]) -> None:
        """The same for several conversations that were committed together."""
        unknown = self.anchor.path is not None and any(n is None for _, n in heads.values())
        numbers = {mark.thread_id: mark.number for mark in self.marks()} if unknown else {}
        for thread_id, (head, number) in heads.items():
            self.keep(thread_id, head, numbers.get(thread_id) if number is None else number)

    def prove(self, changed: list[Anchored], seen: Mapping[str, int], after: int) -> None:
        """Refuse a scan that began ``after`` a number and did not come to what is anchored.

        ``changed``: read before the scan; ``seen``: the newest version of each stream in it.

        Raises:
            LogBehindAnchor: as said.
        """
        names = {fingerprint(stream): stream for stream in seen} if changed else {}
        for line in changed:
            stream = names.get(line.fingerprint, "")
            # What lies before was seen by the scan that came so far.
            if line.number > after and seen.get(stream, 0) < line.version:
                raise self._behind(stream, line.version, seen.get(stream, 0))

    def check(self, mapper: EventMapper, *others: Held) -> Checked:
        """Everything that is wrong with the log, as it stands to its anchor and to ``others``."""
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
        """Write the anchor anew from the log as it is.

        Raises:
            OSError: it cannot be written.
        """
        self.anchor.renew(list(self.marks()))
        self._admitted, self._proved = False, b""

    def changed(self) -> tuple[list[Anchored], bytes]:
        """What a scan that begins now must come to, and what to remember when it did."""
        return self.anchor.changed(self._proved)

    def proved(self, content: bytes) -> None:
        """A scan has borne out this content of the anchor."""
        self._proved = content

    def marks(self) -> Iterator[Mark]:
        """The newest event of each conversation, as the log has it.

        Raises:
            LogDamaged: a row does not say which event it is.
        """
        with self._recorder.datastore.transaction(commit=False) as c:
            c.execute(_NEWEST, (LONGEST_FRAME,))
            rows = c.fetchall()
        for stream, version, name, frame, number in rows:
            if not is_place(stream, version, name):
                raise LogDamaged("", 0, f"row {number} does not say which event it is")
            yield Mark(stream, version, link_of(StoredEvent(stream, version, name, frame)), number)

    def _link(self, thread_id: str, known: Anchored, head: Head) -> str:
        if head.version == known.version:
            return head.link
        rows = self._recorder.select_versions(thread_id, [known.version])
        return link_of(rows[0]) if rows else ""

    def _link_at(self, number: int) -> str:
        rows = self._recorder.rows_after(number - 1, 1)
        if not rows or rows[0][0] != number:
            return ""
        _, stream, version, name, state = rows[0]
        return link_of(StoredEvent(stream, version, name, state))

    def _other(self, thread_id: str, version: int) -> LogBehindAnchor:
        what = f"conversation {thread_id!r}" if thread_id else "a conversation"
        return LogBehindAnchor(
            f"{what}: event {version} of the log {self._path} is another one than was stored: the log "
            f"was replaced, or put back and gone on with. {self._way_out()}",
            thread_id=thread_id,
            stored=version,
            found=version,
        )

    def _behind(self, thread_id: str, stored: int, found: int) -> LogBehindAnchor:
        what = (
            f"conversation {thread_id!r} has {found}" if thread_id else "a conversation has fewer"
        )
        return LogBehindAnchor(
            f"{what} events in the log {self._path}, and {stored} were stored: the log was cut, or put "
            f"back to an earlier day. {self._way_out()}",
            thread_id=thread_id,
            stored=stored,
            found=found,
        )

    def _way_out(self) -> str:
        return way_out(self._path, self.anchor.path)


def way_out(log: Path, anchor: Path | None) -> str:
    """What can be done about a log that is behind its anchor."""
    return (
        f"Nothing was changed. Put the newer file back; or copy what is here with `refold salvage "
        f"NEW.db --db {log}`; or, to go on with the log as it is, `refold anchor --accept --db {log}` "
        f"(the anchor is {anchor})."
    )


def refuse_lost(log: Path, anchor: Anchor) -> None:
    """Refuse to begin anew where a log was: its file is gone or empty, and its anchor is not.

    Raises:
        LogBehindAnchor: as said.
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

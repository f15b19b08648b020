"""What is known to be damaged: such a conversation takes no appends until its rows read well again."""

import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

from refold.application.errors import LogDamaged
from refold.infrastructure.log.anchor import fingerprint
from refold.infrastructure.log.file.failures import STORE_ERRORS, may_be_damage
from refold.infrastructure.observing.notices import Figure, Notice

from .row_proof import ProvedRow, RowProver
from .scrub_file import Finding, ScrubFile, ScrubRecord

ADVICE = "run `refold verify`, and restore a backup while there is one from before"


class KnownDamage:
    """The findings of this and other processes. Threads may share it."""

    def __init__(self, file: ScrubFile, prover: RowProver, told: Callable[[Notice], None]) -> None:
        self._file = file
        self.prover = prover
        self._told = told
        self._threads = threading.RLock()
        self._findings: dict[int, Finding] = {}
        self._lifted: dict[int, str] = {}
        self._stamp: tuple[int, int] | None = None
        self.stop_reading: Callable[[], None] = _nothing
        """Ends what reads the log in the background."""
        self.record = ScrubRecord()
        """As it was read or written last."""

    def refuse(self, thread_id: str) -> None:
        """Refuse to append to a conversation that has a damaged row, and still has it now.

        Raises:
            LogDamaged: as said.
        """
        if self._file.stamp != self._stamp:
            self.look()
        if not self._findings:
            return
        name = fingerprint(thread_id).decode()
        for finding in [one for one in self._findings.values() if one.fingerprint == name]:
            if self._is_damaged(finding):
                raise LogDamaged(
                    thread_id,
                    finding.version,
                    f"{finding.problem}; nothing is appended to a conversation that is known to be damaged",
                )

    def look(self) -> None:
        """Take over what the file says."""
        with self._threads:
            stamp = self._file.stamp
            self.record = self._file.read()
            self._findings |= {one.number: one for one in self.record.findings}
            self._stamp = stamp

    def prove_again(self) -> None:
        """Read every damaged row again: tell of those that still are, forget the others."""
        for finding in list(self._findings.values()):
            row = self.prover.at(finding.number)
            if row.problem:
                self._tell(row)
            else:
                self._lift(finding)

    def note(self, row: ProvedRow, *, tell: bool = True) -> bool:
        """Note a damaged row and tell of it, unless it is known; whether it is new."""
        name = fingerprint(row.thread_id).decode()
        with self._threads:
            known = self._findings.get(row.number)
            if known is not None and known.fingerprint == name:
                return False
            self._lifted.pop(row.number, None)
            self._findings[row.number] = Finding(
                number=row.number, fingerprint=name, version=row.version, problem=row.problem
            )
        if tell:
            self._tell(row)
        return True

    @contextmanager
    def noting(self, translated: AbstractContextManager[None]) -> Generator[None]:
        """Have a damaged event that a read comes upon known from then on, and errors ``translated``."""
        try:
            with translated:
                yield
        except LogDamaged as error:
            self.note_event(error.thread_id, error.version)
            raise

    def note_event(self, thread_id: str, version: int) -> None:
        """Note an event that a read found to be damaged or missing, where its row bears that out."""
        try:
            numbers = [self.prover.number_of(thread_id, at) for at in (version, version + 1)]
            rows = [self.prover.at(number) for number in numbers if number is not None]
        except STORE_ERRORS:
            return  # Nothing more can be told of it.
        # Whoever read it tells of it.
        new = [self.note(row, tell=False) for row in rows if row.problem]
        if any(new):
            self.keep(self.record)

    def keep(self, record: ScrubRecord) -> None:
        """Write how far the log was read, with everything that is known."""
        with self._threads:
            self.record = record.replaced(findings=tuple(self._findings.values()))
            if not self.record.log and not self._findings:
                return  # There is nothing to say of an empty log.
            self._file.write(self.record, lifted=self._lifted)
            self._lifted.clear()
            self._stamp = self._file.stamp

    def begin_anew(self) -> None:
        """Forget what was known of another log."""
        with self._threads:
            self._findings.clear()

    def keep_words(self, name: str) -> None:
        """Note which index of words was checked last."""
        self.keep(self.record.replaced(words=name))

    def _is_damaged(self, finding: Finding) -> bool:
        try:
            damaged = bool(self.prover.at(finding.number).problem)
        except STORE_ERRORS as error:
            if may_be_damage(error):
                return True
            raise
        if not damaged:
            self._lift(finding)
            self.keep(self.record)
        return damaged

    def _lift(self, finding: Finding) -> None:
        with self._threads:
            self._findings.pop(finding.number, None)
            self._lifted[finding.number] = finding.problem

    def _tell(self, row: ProvedRow) -> None:
        figures: dict[str, Figure] = {
            "error": "LogDamaged",
            "version": row.version,
            "advice": ADVICE,
        }
        self._told(Notice("log.damaged", row.thread_id, figures))

    def close(self) -> None:
        """End the reading in the background, which uses the connections of the log."""
        self.stop_reading()


def _nothing() -> None:
    """There is nothing to end."""

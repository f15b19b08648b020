"""The scrubber: reads some of the log at each opening, and goes on at the next where it stopped."""

from refold.application.plain_lines import plain_logger
from refold.infrastructure.log.file.failures import STORE_ERRORS

from .known_damage import KnownDamage

BATCH = 256 * 1024
"""Bytes of a step: a few milliseconds, so that nobody waits for its transaction."""
KEPT_EVERY = 1 << 20
"""Bytes after which it is noted how far it is, for a process that is killed."""

logger = plain_logger(__name__)


class LogScrubber:
    """One opening's share of the work, in steps."""

    def __init__(self, known: KnownDamage, budget: int) -> None:
        """``budget``: bytes of stored rows that are read in all."""
        self._prover = known.prover
        self._known = known
        self._left = budget
        self._unkept = 0
        self._begun = False

    def step(self) -> bool:
        """Read the next rows; whether there is more to do at this opening."""
        try:
            if not self._begun:
                self._begun = True
                if not self._begin():
                    return False
            return self._read()
        except STORE_ERRORS as error:
            # No damage, that is found by the rows: others use the log, or its disk fails.
            logger.info("the log is not read any further in the background: %s", error)
            return False

    def interrupt(self) -> None:
        """Do nothing: a step is short."""

    def finish(self) -> None:
        """Note how far it is."""
        if self._unkept:
            self._known.keep(self._known.record)
            self._unkept = 0

    def _begin(self) -> bool:
        """Take over what is known; whether there is anything to read."""
        self._known.look()
        first = self._prover.first()
        if self._known.record.log != first:
            self._known.begin_anew()
            self._known.record = self._known.record.replaced(log=first, after=0, findings=())
        self._known.prove_again()
        return bool(first)

    def _read(self) -> bool:
        record = self._known.record
        rows = self._prover.after(record.after, min(BATCH, self._left))
        found = [self._known.note(row) for row in rows if row.problem]
        read = sum(row.size for row in rows)
        self._left -= read
        self._unkept += read
        # At the end it is read from the start again, by the next opening.
        self._known.record = record.replaced(after=rows[-1].number if rows else 0)
        if any(found) or self._unkept >= KEPT_EVERY or not rows:
            self._unkept += 1
            self.finish()
        return bool(rows) and self._left > 0

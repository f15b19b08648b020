"""How one compaction attempt ends in the log: at once, or where that fails with what is written next."""

from collections.abc import Sequence

from refold.domain.compacting import fail_compaction
from refold.domain.events import Event

from .core import Core
from .errors import LogError
from .event_log import Decision
from .live_attempts import begin, end
from .loaded import LoadedConversation
from .results import CompactionResult
from .unwritten import Unwritten, Written


class AttemptEnd:
    """The end of one attempt of this process."""

    def __init__(self, core: Core, thread_id: str) -> None:
        self._core = core
        self._thread_id = thread_id
        self._attempt_id: str | None = None
        self._is_kept = False

    def begin(self) -> str:
        """Return the id of the attempt, which counts as at work from now on."""
        if self._attempt_id is None:
            self._attempt_id = self._core.new_id()
            begin(self._attempt_id)
        return self._attempt_id

    def leave(self) -> None:
        """Note that nobody works on it any more, unless its end waits to be written."""
        if self._attempt_id is not None and not self._is_kept:
            end(self._attempt_id)

    def failing(
        self, now: LoadedConversation, reason: str, detail: str, calls: int
    ) -> Sequence[Event]:
        """What records that it ended without a summary."""
        if self._attempt_id is None:
            return ()
        return fail_compaction(now.state, self._attempt_id, reason, detail, model_calls=calls)

    def fail(self, reason: str, detail: str, calls: int) -> LoadedConversation | None:
        """Record that; None where it cannot be written yet, and is kept."""

        def decide(now: LoadedConversation) -> Sequence[Event]:
            return self.failing(now, reason, detail, calls)

        try:
            loaded, _ = self._core.log.transact(self._thread_id, decide, at=self._core.clock())
        except LogError as error:
            # Its result was told when it failed.
            self.keep("end of a compaction", decide, lambda _loaded, _events: None, error, None)
            return None
        return loaded

    def keep(
        self,
        what: str,
        decide: Decision,
        written: Written,
        error: LogError,
        told: CompactionResult | None,
    ) -> None:
        """Keep an end that cannot be written yet."""
        self._is_kept = True
        kept = Unwritten(what, decide, written, self._attempt_id, told)
        self._core.unwritten.keep(self._thread_id, kept, error)

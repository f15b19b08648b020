"""The end of a compaction attempt: its events in the log, and its result."""

from collections.abc import Sequence

from refold.application.api.results import CompactionResult, Outcome
from refold.application.conversation.addresses import address_of
from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogError
from refold.application.ports.conversation_log import Decision
from refold.application.runtime.core import Core
from refold.domain.compaction.budget import Budget
from refold.domain.compaction.compacting import fail_compaction, is_breaker_open
from refold.domain.cuts.planner import NothingToCompact
from refold.domain.events import Event, Trigger
from refold.domain.value import build_in_order, replace

from .ladder import Measured, Shortened, measure_as
from .unwritten import Unwritten, Written, begin, end


def outcome_of(
    core: Core,
    budget: Budget,
    before: LoadedConversation,
    after: LoadedConversation,
    outcome: Outcome,
    reason: str = "",
    detail: str = "",
) -> CompactionResult:
    """Return a result with the fields that every outcome has."""
    state = after.state
    left = {position for position, _, _ in after.window.previews}
    gone = [key for key in before.window.previews if key not in after.window.previews]
    released = gone if outcome == "performed" else []
    positions = sorted({position for position, _, _ in released} - left)
    return build_in_order(
        CompactionResult,
        outcome=outcome,
        tokens_before=before.state.tokens + budget.fixed,
        tokens_after=state.tokens + budget.fixed,
        reason=reason,
        detail=detail,
        summary_id=state.summary.summary_id if state.summary else None,
        messages_covered=state.summary.coverage.count if state.summary else 0,
        messages_kept=len(after.window.entries),
        offloads_released=len(released),
        released=tuple(address_of(after.thread_id, position) for position in positions),
        thread_id=after.thread_id,
        breaker_open=is_breaker_open(state, budget.window, core.settings.policy),
    )


def with_sizes(
    core: Core,
    budget: Budget,
    before: LoadedConversation,
    after: LoadedConversation,
    result: CompactionResult,
) -> CompactionResult:
    """Return the result with the sizes of whole requests, as in a context.

    These include what rendering adds, such as a note if the conversation does not begin or end with its
    user.
    """
    sizes = [measure_as(core, core.asked.framed(then), budget).size for then in (before, after)]
    return replace(result, tokens_before=sizes[0], tokens_after=sizes[1])


def idle_outcome(
    core: Core, budget: Budget, loaded: LoadedConversation, idle: NothingToCompact
) -> CompactionResult:
    """Return the result for nothing to do, with the message that prevents a compaction, if any."""
    result = outcome_of(core, budget, loaded, loaded, "nothing_to_do", idle.rule, idle.because)
    versions = [m.version for m in loaded.state.live if m.position == idle.since]
    if not versions:
        return replace(result, blocked_since=idle.since)
    [logged] = core.log.read(loaded.thread_id, versions[0], versions[0])
    return replace(result, blocked_since=idle.since, blocked_at=logged.at or None)


def with_shortened(
    core: Core,
    before: Measured,
    now: Measured,
    done: Shortened,
    results: list[CompactionResult],
    trigger: Trigger,
) -> list[CompactionResult]:
    """Return the results with the shortened parts added.

    If parts were shortened and nothing else was done, that is a result of its own.
    """
    reported = results
    if done.decisions:
        reported = [result for result in results if result.outcome != "nothing_to_do"]
        enough = outcome_of(core, before.plain, before.loaded, now.loaded, "shortened")
        reported = reported or [replace(enough, trigger=trigger)]
    if not reported:
        return []  # The work of other callers was enough.
    reported[0] = replace(reported[0], tokens_before=before.size)
    reported[-1] = replace(
        reported[-1],
        tokens_after=now.size,
        results_offloaded=done.offloaded,
        results_condensed=done.condensed,
    )
    return reported


class AttemptEnd:
    """The end of one attempt of this process."""

    def __init__(self, core: Core, thread_id: str) -> None:
        self._core = core
        self._thread_id = thread_id
        self._attempt_id: str | None = None
        self._is_kept = False

    def begin(self) -> str:
        """Register the attempt as running, and return its id."""
        if self._attempt_id is None:
            self._attempt_id = self._core.new_id()
            begin(self._attempt_id)
        return self._attempt_id

    def leave(self) -> None:
        """Unregister the attempt, unless its end still waits to be written."""
        if self._attempt_id is not None and not self._is_kept:
            end(self._attempt_id)

    def failing(
        self, now: LoadedConversation, reason: str, detail: str, calls: int
    ) -> Sequence[Event]:
        """Return the events that record an end without a summary."""
        if self._attempt_id is None:
            return ()
        return fail_compaction(now.state, self._attempt_id, reason, detail, model_calls=calls)

    def fail(self, reason: str, detail: str, calls: int) -> LoadedConversation | None:
        """Record the end of the attempt without a summary, and return the conversation after it.

        Return None if the log cannot be written now. The end is then kept and written later.
        """

        def decide(now: LoadedConversation) -> Sequence[Event]:
            return self.failing(now, reason, detail, calls)

        try:
            loaded, _ = self._core.log.transact(self._thread_id, decide, at=self._core.clock())
        except LogError as error:
            # Its result was reported when it failed.
            self.keep("end of a compaction", decide, lambda _loaded, _events: None, error, None)
            return None
        return loaded

    def keep(
        self,
        what: str,
        decide: Decision,
        written: Written,
        error: LogError,
        reported: CompactionResult | None,
    ) -> None:
        """Keep an end that cannot be written yet."""
        self._is_kept = True
        kept = Unwritten(what, decide, written, self._attempt_id, reported)
        self._core.unwritten.keep(self._thread_id, kept, error)

"""One attempt to compact a conversation: its lease, its summary and its end."""

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic

from refold.application.api.blocking import in_thread, pause, run_to_end
from refold.application.api.results import CompactionResult, Outcome
from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogError, SummariserError
from refold.application.notes.note_taking import NoteTaking
from refold.application.ports.summariser import Summariser
from refold.application.runtime.core import Core
from refold.application.runtime.foreign_code import (
    Contained,
    Withdrawn,
    describe,
    independent_context,
)
from refold.application.runtime.observers import follow_compaction, notify_compaction
from refold.application.runtime.opening_process import BRIEFLY, waiting_at_most
from refold.application.runtime.plain_lines import plain_logger, raised
from refold.application.summaries.refocusing import plan_refocus
from refold.application.summaries.summariser_calls import Rehearsal, SummariserCalls, rehearse
from refold.application.summaries.summary import Source, source_of, write_summary
from refold.domain.compaction.budget import Budget
from refold.domain.compaction.compacting import (
    ABANDONED,
    CompactionInFlight,
    breaker_closes_at,
    holds_lease,
    perform_compaction,
    request_compaction,
)
from refold.domain.compaction.summary_rules import (
    ExpectedLength,
    Summary,
    SummaryRefused,
    expect_length,
)
from refold.domain.conversation import Conversation
from refold.domain.cuts.planner import (
    NO_WISH,
    CompactionPlan,
    CompactionWish,
    NothingToCompact,
    plan_compaction,
)
from refold.domain.events import (
    CompactionPerformed,
    CompactionRequested,
    Event,
    Trigger,
)
from refold.domain.value import replace

from .attempt_ends import AttemptEnd, idle_outcome, outcome_of
from .ladder import Measured, measure
from .next_request import end_abandoned, is_abandoned, load_without_abandoned
from .unwritten import KeptSummary, reason_of

OVERTAKEN = "overtaken"
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
"""Shortest and longest seconds between two checks."""


class CompactionQueue:
    """The wait of one request for compactions of other callers.

    The total wait is limited by the settings.
    """

    def __init__(self, core: Core, thread_id: str) -> None:
        self._core = core
        self._thread_id = thread_id
        self._until: float | None = None

    async def measure(self, budget: Budget, now: Measured | None = None) -> Measured:
        """Measure the newest version; if it does not fit, first wait for compactions of other callers.

        ``now`` is the newest version if it has just been measured.
        """
        if now is None:
            now = await run_to_end(measure, self._core, self._thread_id, budget)
        if now.size <= budget.limit or now.loaded.state.attempt is None:
            return now
        await self.wait()
        return await run_to_end(measure, self._core, self._thread_id, budget)

    async def wait(self) -> bool:
        """Wait until no living process works on a compaction. Return False if the time is up first."""
        self._until = self._until or monotonic() + self._core.settings.compaction_wait
        seconds = FIRST_PAUSE
        while await in_thread(self._is_anothers):
            left = self._until - monotonic()
            if left <= 0:
                return False
            await pause(min(seconds, left))
            seconds = min(seconds * 1.5, LONGEST_PAUSE)
        return True

    def _is_anothers(self) -> bool:
        core = self._core
        state = load_without_abandoned(core, self._thread_id).state
        if state.attempt is None or is_abandoned(core.owner, state):
            return False
        return holds_lease(state.attempt, core.clock(), core.settings.policy)


def find_overtaking(before: Measured, now: Conversation) -> NothingToCompact | None:
    """Return the reason to do nothing if another caller has made the summary that was due, or None."""
    state, overhead = before.loaded.state, before.size - before.loaded.state.tokens
    if now.summary == state.summary or now.tokens + overhead >= before.budget.trigger:
        return None
    return NothingToCompact(rule=OVERTAKEN, because="another caller has just compacted")


logger = plain_logger(__name__)


class CompactionAttempt:
    """One attempt: requested, then performed or failed. Raises only failures of the log.

    ``force``: run even while the circuit breaker is open. ``wish``: options on demand in addition to the
    settings. ``idle``: reason to do nothing in the initial state, if any. ``seen``: the newest state that is known.
    """

    def __init__(
        self,
        core: Core,
        thread_id: str,
        budget: Budget,
        *,
        trigger: Trigger,
        summariser: Summariser,
        focus: str | None = None,
        force: bool = False,
        wish: CompactionWish = NO_WISH,
        idle: Callable[[Conversation], NothingToCompact | None] = lambda _: None,
        seen: Conversation | None = None,
    ) -> None:
        self._core = core
        self._thread_id = thread_id
        self._budget = budget
        self._trigger: Trigger = trigger
        self._summariser = summariser
        self._focus = focus
        self._force = force
        self._wish, self._idle, self._seen = wish, idle, seen
        self._began, self._began_at = core.clock(), monotonic()
        self._asking = SummariserCalls(summariser, core.settings.policy)
        self._before = LoadedConversation(thread_id)
        self._plan: CompactionPlan | NothingToCompact | None = None
        self._source = Source()
        self._rehearsed: ExpectedLength | None = None
        self._requested: CompactionRequested | None = None
        self._ended: CompactionResult | None = None
        self._end = AttemptEnd(core, thread_id)

    async def run(self) -> CompactionResult:
        """Run the attempt: plan, request, summarise, and record the outcome against the newest state."""
        with follow_compaction(self._core, self._thread_id, self._trigger):
            result = await self.work()
            # "Nothing to do" is reported only to callers that asked for a compaction.
            if result.outcome != "nothing_to_do" or self._trigger == "manual":
                notify_compaction(self._core, result)
        return result

    async def work(self) -> CompactionResult:
        """Run without notifying observers, except after a cancellation; the caller reports the result."""
        try:
            return await self._run()
        except (asyncio.CancelledError, Withdrawn):
            independent_context().run(self._give_up)
            raise
        finally:
            self._end.leave()

    async def _run(self) -> CompactionResult:
        if self._seen is None or expect_length(self._seen, self._summariser.name) is None:
            self._rehearsed = await rehearse(self._summariser, self._core.fallback, self._rehearsal)
        try:
            plan = await run_to_end(self._request)
        except CompactionInFlight as error:
            return self._result("in_flight", self._before, "in_flight", str(error))
        if isinstance(plan, NothingToCompact):
            return await run_to_end(self._rest, plan)
        try:
            with Contained():  # Window and measure of a summariser are user code as well.
                summary = await self._summarise(plan)
        except (SummariserError, SummaryRefused) as error:
            return await run_to_end(self._fail, error.reason, str(error))
        except Exception as error:  # A user's summariser may raise anything.
            logger.warning("summariser %r failed: %s", self._summariser.name, raised(error))
            return await run_to_end(self._fail, "error", describe(error))
        return await run_to_end(self._record, plan, summary)

    def would_rest(self, state: Conversation) -> bool:
        """Return whether the attempt would have nothing to do in this state."""
        return isinstance(self._choose_plan(state), NothingToCompact)

    def _request(self) -> CompactionPlan | NothingToCompact:
        def decide(loaded: LoadedConversation) -> Sequence[Event]:
            self._before = loaded.present()
            self._plan = plan = self._idle(loaded.state) or self._choose_plan(loaded.state)
            if isinstance(plan, NothingToCompact):
                again = plan_refocus(
                    self._core, loaded, self._budget, self._focus, force=self._force
                )
                if again is None:
                    return end_abandoned(self._core, loaded)
                self._plan, self._source = plan, _ = again
                return self._request_of(loaded.state, plan)
            self._source = source_of(self._core, loaded, plan, self._focus, self._summariser)
            return self._request_of(loaded.state, plan)

        _, events = self._core.log.transact(self._thread_id, decide, at=self._core.clock())
        for event in events:
            if isinstance(event, CompactionRequested):
                self._requested = event
        assert self._plan is not None
        return self._plan

    def _choose_plan(self, state: Conversation) -> CompactionPlan | NothingToCompact:
        policy = self._core.settings.policy
        known = expect_length(state, self._summariser.name) or self._rehearsed
        plan = plan_compaction(
            state, self._budget, policy, self._trigger, wish=self._wish, expected=known
        )
        closes_at = breaker_closes_at(state, self._budget.window, policy)
        # An attempt by size checks the guard itself: a request that does not fit must be made
        # smaller.
        may_anyway = self._trigger == "size" or self._force or isinstance(plan, NothingToCompact)
        if closes_at is None or may_anyway:
            return plan
        return NothingToCompact(
            rule="breaker_open",
            because=f"{state.setbacks.count} attempts in a row failed; the next is made when "
            f"the conversation has grown from {state.tokens:,} to {closes_at:,} tokens, or with force",
        )

    def _request_of(self, state: Conversation, plan: CompactionPlan) -> tuple[Event, ...]:
        return request_compaction(
            state,
            plan,
            attempt_id=self._end.begin(),
            at=self._core.clock(),
            trigger=self._trigger,
            policy=self._core.settings.policy,
            summariser=self._summariser.name,
            source_digest=self._source.digest(),
            tokens_before=state.tokens + self._budget.fixed,
            focus=self._focus,
            owner=self._core.owner.name or None,
            owner_gone=is_abandoned(self._core.owner, state),
            rebuilds=bool(self._source.leaves),
        )

    async def _rehearsal(self, writer: Summariser) -> Rehearsal | None:
        """Return a trial of the first summary, or None if the lengths of earlier summaries are known."""
        loaded = await run_to_end(self._core.log.load, self._thread_id)
        if expect_length(loaded.state, self._summariser.name) is not None:
            return None
        plan = await run_to_end(self._choose_plan, loaded.state)
        if isinstance(plan, NothingToCompact):
            return None
        source = await run_to_end(source_of, self._core, loaded, plan, self._focus, writer)
        asking = SummariserCalls(writer, self._core.settings.policy)
        return Rehearsal(
            len(source.messages) + source.skimmed,
            lambda: write_summary(self._core, loaded, source, plan, self._budget, writer, asking),
            plan.target_tokens,
        )

    async def _summarise(self, plan: CompactionPlan) -> Summary:
        notes = NoteTaking(self._core, self._thread_id, self._summariser)
        return await notes.take_during(
            self._before, plan.coverage.stop, lambda: self._summary(plan)
        )

    async def _summary(self, plan: CompactionPlan) -> Summary:
        return await write_summary(
            self._core,
            self._before,
            self._source,
            plan,
            self._budget,
            self._summariser,
            self._asking,
        )

    def _record(self, plan: CompactionPlan, summary: Summary) -> CompactionResult:
        requested = self._requested
        assert requested is not None
        try:
            loaded, events = self._core.log.transact(
                self._thread_id,
                lambda now: perform_compaction(now.state, requested, plan, summary),
                at=self._core.clock(),
            )
        except SummaryRefused as error:
            return self._fail(error.reason, str(error))
        except LogError as error:
            return self._keep(KeptSummary(self, requested, plan, summary), error)
        return self.performed(loaded, events)

    def performed(self, loaded: LoadedConversation, events: Sequence[Event]) -> CompactionResult:
        """Return the result of a summary that was stored with these events."""
        requested = self._requested
        assert requested is not None
        [performed] = [event for event in events if isinstance(event, CompactionPerformed)]
        named = self._source.before.omitted if self._source.before else ()
        return replace(
            self._result("performed", loaded),
            summary_id=performed.summary_id,
            effective=performed.effective,
            is_split_turn=performed.is_split_turn,
            rebuilt=requested.rebuilds,
            omitted=tuple(one for one in performed.omitted if one not in named),
        )

    def _keep(self, kept: KeptSummary, error: LogError) -> CompactionResult:
        """Keep a summary that cannot be written yet."""
        result = self._result("waiting", self._before, reason_of(error), str(error))
        self._end.keep("summary", kept.decide, kept.written, error, result)
        return result

    def notify(self, result: CompactionResult) -> None:
        """Notify the observers."""
        notify_compaction(self._core, result)

    def failed(self, loaded: LoadedConversation, reason: str, detail: str) -> CompactionResult:
        """Return the result of an attempt without a summary."""
        return self._result("failed", loaded, reason, detail)

    def _fail(self, reason: str, detail: str) -> CompactionResult:
        loaded = self._end.fail(reason, detail, self._asking.model_calls)
        return self.failed(loaded or self._before, reason, detail)

    def _give_up(self) -> None:
        if self._requested is None:
            return
        if self._ended is not None:
            # The attempt was cancelled just after its end was recorded: the recorded end counts.
            notify_compaction(self._core, self._ended)
            return
        # A background attempt has no waiting caller: it is cancelled when its memory closes.
        reason = ABANDONED if self._trigger == "background" else "cancelled"
        with waiting_at_most(BRIEFLY):  # A caller waits for the cancellation.
            loaded = self._end.fail(reason, "cancelled", self._asking.model_calls)
        notify_compaction(self._core, self.failed(loaded or self._before, reason, "cancelled"))

    def ending(self, now: LoadedConversation, reason: str, detail: str) -> Sequence[Event]:
        """Return the events that record the end of the attempt without a summary."""
        return self._end.failing(now, reason, detail, self._asking.model_calls)

    def _rest(self, idle: NothingToCompact) -> CompactionResult:
        return self._notified(idle_outcome(self._core, self._budget, self._before, idle))

    def _result(
        self, outcome: Outcome, after: LoadedConversation, reason: str = "", detail: str = ""
    ) -> CompactionResult:
        core, budget, before = self._core, self._budget, self._before
        return self._notified(outcome_of(core, budget, before, after, outcome, reason, detail))

    def _notified(self, result: CompactionResult) -> CompactionResult:
        self._ended = replace(
            result,
            attempt_id=self._requested.attempt_id if self._requested else None,
            trigger=self._trigger,
            summariser=self._summariser.name,
            model_calls=self._asking.model_calls,
            retries=self._asking.retries,
            seconds=self._seconds(),
        )
        return self._ended

    def _seconds(self) -> float:
        """Return the duration so far in seconds, even if the clock was set back."""
        by_clock = (self._core.clock() - self._began).total_seconds()
        return max(by_clock, monotonic() - self._began_at)

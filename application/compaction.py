"""Use case: compact a conversation in two phases. The model works without lock or transaction."""

import asyncio
import json
import logging
from collections.abc import Sequence
from hashlib import sha256

from refold.domain.budget import Budget
from refold.domain.compacting import (
    ABANDONED,
    CompactionInFlight,
    fail_compaction,
    perform_compaction,
    request_compaction,
)
from refold.domain.cuts.planner import CompactionPlan, NothingToCompact, plan_compaction
from refold.domain.events import CompactionRequested, Event, Trigger
from refold.domain.judging import Summary, SummaryRefused

from .abandoning import is_left_behind, settle_left_behind
from .blocking import to_the_end
from .core import Core
from .errors import LogError, SummariserError
from .loaded import LoadedConversation
from .ports import SourceMessage, Summariser, SummaryDraft, SummaryRequest
from .results import CompactionResult, Outcome

logger = logging.getLogger(__name__)


class CompactionAttempt:
    """One attempt: requested, then performed or failed. No failure but of the log is raised."""

    def __init__(
        self,
        core: Core,
        thread_id: str,
        budget: Budget,
        *,
        trigger: Trigger,
        summariser: Summariser,
        focus: str | None = None,
    ) -> None:
        self._core = core
        self._thread_id = thread_id
        self._budget = budget
        self._trigger: Trigger = trigger
        self._summariser = summariser
        self._focus = focus
        self._before = LoadedConversation(thread_id)
        self._plan: CompactionPlan | None = None
        self._requested: CompactionRequested | None = None
        self._idle: NothingToCompact | None = None

    async def run(self) -> CompactionResult:
        """Plan, ask the summariser, record."""
        try:
            return await self._run()
        except asyncio.CancelledError:
            self._give_up()
            raise

    async def _run(self) -> CompactionResult:
        try:
            await to_the_end(self._request)
        except CompactionInFlight as error:
            return self._result("in_flight", self._before, "in_flight", str(error))
        if self._idle is not None:
            return self._result("nothing_to_do", self._before, self._idle.rule, self._idle.because)
        try:
            draft = await self._summariser.summarise(self._summary_request())
        except SummariserError as error:
            return await to_the_end(self._fail, error.reason, str(error))
        except Exception as error:  # A summariser of the user's own may raise anything.
            logger.exception("summariser %r failed", self._summariser.name)
            return await to_the_end(self._fail, "error", f"{type(error).__name__}: {error}")
        return await to_the_end(self._record, draft)

    def _give_up(self) -> None:
        requested = self._requested
        if requested is None:
            return
        # Nobody waits for one in the background: it is cancelled where its memory is closed.
        reason = ABANDONED if self._trigger == "background" else "cancelled"
        try:
            self._core.log.transact(
                self._thread_id,
                lambda now: fail_compaction(now.state, requested.attempt_id, reason, "cancelled"),
                at=self._core.clock(),
            )
        except LogError as error:
            logger.warning("conversation %r: the end was not recorded: %s", self._thread_id, error)

    def _request(self) -> None:
        def decide(loaded: LoadedConversation) -> Sequence[Event]:
            self._before, self._idle = loaded, None
            policy = self._core.settings.policy
            plan = plan_compaction(loaded.state, self._budget, policy, self._trigger)
            if isinstance(plan, NothingToCompact):
                self._idle = plan
                return settle_left_behind(self._core, loaded)
            self._plan = plan
            return request_compaction(
                loaded.state,
                plan,
                attempt_id=self._core.new_id(),
                at=self._core.clock(),
                trigger=self._trigger,
                policy=policy,
                summariser=self._summariser.name,
                source_digest=_digest(self._summary_request()),
                tokens_before=loaded.state.tokens + self._budget.fixed,
                focus=self._focus,
                owner=self._core.owner.name or None,
                owner_gone=is_left_behind(self._core.owner, loaded.state),
            )

        _, events = self._core.log.transact(self._thread_id, decide, at=self._core.clock())
        for event in events:
            if isinstance(event, CompactionRequested):
                self._requested = event

    def _summary_request(self) -> SummaryRequest:
        assert self._plan is not None
        covers = self._plan.coverage.covers
        window = self._before.window
        return SummaryRequest(
            messages=tuple(
                SourceMessage(position=e.position, message=e.message)
                for e in window.entries
                if covers(e.position)
            ),
            previous=window.summary.text if window.summary else None,
            focus=self._focus,
            target_tokens=self._plan.target_tokens,
            limit_tokens=self._plan.limit_tokens,
        )

    def _record(self, draft: SummaryDraft) -> CompactionResult:
        assert self._plan is not None
        assert self._requested is not None
        plan, requested = self._plan, self._requested
        tokens = self._core.counter.count_text(draft.text)
        summary = Summary(
            summary_id=self._core.new_id(),
            text=draft.text,
            text_tokens=tokens,
            tokens=tokens + self._budget.summary_overhead,
            complete=draft.complete,
            summariser=self._summariser.name,
            model=draft.model,
            prompt_fingerprint=draft.prompt_fingerprint,
        )
        try:
            loaded, _ = self._core.log.transact(
                self._thread_id,
                lambda loaded: perform_compaction(loaded.state, requested, plan, summary),
                at=self._core.clock(),
            )
        except SummaryRefused as error:
            return self._fail(error.reason, str(error))
        released = len(self._before.window.previews) - len(loaded.window.previews)
        return self._result("performed", loaded).replaced(
            summary_id=summary.summary_id, offloads_released=max(0, released)
        )

    def _fail(self, reason: str, detail: str) -> CompactionResult:
        assert self._requested is not None
        attempt_id = self._requested.attempt_id
        loaded, _ = self._core.log.transact(
            self._thread_id,
            lambda loaded: fail_compaction(loaded.state, attempt_id, reason, detail),
            at=self._core.clock(),
        )
        logger.warning(
            "conversation %r: compaction by %s failed (%s): the context stays as it was",
            self._thread_id,
            self._summariser.name,
            reason,
        )
        return self._result("failed", loaded, reason, detail)

    def _result(
        self, outcome: Outcome, after: LoadedConversation, reason: str = "", detail: str = ""
    ) -> CompactionResult:
        state, fixed = after.state, self._budget.fixed
        return CompactionResult(
            outcome=outcome,
            tokens_before=self._before.state.tokens + fixed,
            tokens_after=state.tokens + fixed,
            reason=reason,
            detail=detail,
            summariser=self._summariser.name,
            summary_id=state.summary.summary_id if state.summary else None,
            messages_covered=state.summary.coverage.count if state.summary else 0,
            messages_kept=len(after.window.entries),
        )


def _digest(request: SummaryRequest) -> str:
    source = [request.previous, *((m.position, m.message.content) for m in request.messages)]
    return sha256(json.dumps(source).encode("ascii")).hexdigest()

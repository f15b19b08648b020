"""The decisions of a compaction: request it, perform it with an accepted summary, or give it up."""

from datetime import datetime, timedelta

from .conversation import Conversation
from .cuts.planner import CompactionPlan
from .errors import RefoldError
from .events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    Event,
    SummarySuperseded,
    Trigger,
)
from .policy import CompactionPolicy
from .value import Value

ABANDONED = "abandoned"


class CompactionInFlight(RefoldError):
    """Another compaction of this conversation has not ended yet."""


class SummaryRefused(RefoldError):
    """A summary is not fit to stand for what it should cover; ``reason`` is a short constant."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Summary(Value, frozen=True):
    """A finished summary with its measure, ready to be judged and recorded."""

    summary_id: str
    text: str
    text_tokens: int
    tokens: int
    """Of the summary as rendered, with its heading and the guidance that goes with it."""
    complete: bool
    summariser: str
    model: str
    prompt_fingerprint: str


def request_compaction(
    state: Conversation,
    plan: CompactionPlan,
    *,
    attempt_id: str,
    at: datetime,
    trigger: Trigger,
    policy: CompactionPolicy,
    summariser: str,
    source_digest: str,
    tokens_before: int,
    focus: str | None = None,
) -> tuple[Event, ...]:
    """Begin a compaction; one that never ended is settled as abandoned first.

    Raises:
        CompactionInFlight: another one was requested less than a lease ago.
    """
    settled: tuple[Event, ...] = ()
    if state.attempt is not None:
        age = at - state.attempt.requested_at
        if timedelta(0) <= age < timedelta(seconds=policy.lease_seconds):
            raise CompactionInFlight(
                f"compaction {state.attempt.attempt_id} has been running for "
                f"{age.total_seconds():.0f} s; it counts as abandoned after {policy.lease_seconds} s"
            )
        settled = fail_compaction(state, state.attempt.attempt_id, ABANDONED, "it never ended")
    requested = CompactionRequested(
        attempt_id=attempt_id,
        requested_at=at,
        trigger=trigger,
        coverage=plan.coverage,
        supersedes=state.summary.summary_id if state.summary else None,
        source_digest=source_digest,
        summariser=summariser,
        policy=policy,
        tokens_before=tokens_before,
        focus=focus,
    )
    return (*settled, requested)


def perform_compaction(
    state: Conversation, requested: CompactionRequested, plan: CompactionPlan, summary: Summary
) -> tuple[Event, ...]:
    """Record ``summary`` against the newest state: appends since the request are fine.

    Raises:
        SummaryRefused: the summary is not fit, or what it covers changed in the meantime.
    """
    if state.attempt is None or state.attempt.attempt_id != requested.attempt_id:
        raise SummaryRefused("overtaken", "the compaction was given up or overtaken meanwhile")
    active = state.summary.summary_id if state.summary else None
    if active != requested.supersedes:
        raise SummaryRefused("overtaken", "another summary became active meanwhile")
    judge_summary(summary, plan)
    performed = CompactionPerformed(
        attempt_id=requested.attempt_id,
        summary_id=summary.summary_id,
        text=summary.text,
        tokens=summary.tokens,
        coverage=requested.coverage,
        source_digest=requested.source_digest,
        trigger=requested.trigger,
        policy=requested.policy,
        summariser=summary.summariser,
        model=summary.model,
        prompt_fingerprint=summary.prompt_fingerprint,
        tokens_before=requested.tokens_before,
        tokens_after=requested.tokens_before - plan.covered_tokens + summary.tokens,
        focus=requested.focus,
    )
    if active is None:
        return (performed,)
    return (performed, SummarySuperseded(summary_id=active, by=summary.summary_id))


def judge_summary(summary: Summary, plan: CompactionPlan) -> None:
    """Refuse a summary that is empty, cut off, too long, or no smaller than its source.

    Raises:
        SummaryRefused: with the reason (invariant 9).
    """
    if not summary.text.strip():
        raise SummaryRefused("empty", "the summary is empty")
    if not summary.complete:
        raise SummaryRefused("incomplete", "the summary was cut off before its end")
    if summary.tokens >= plan.covered_tokens:
        raise SummaryRefused(
            "not_smaller",
            f"the summary has {summary.tokens} tokens, what it stands for {plan.covered_tokens}",
        )
    if summary.text_tokens > plan.limit_tokens:
        raise SummaryRefused(
            "too_long",
            f"the summary has {summary.text_tokens} tokens, allowed are {plan.limit_tokens}",
        )


def fail_compaction(
    state: Conversation, attempt_id: str, reason: str, detail: str = ""
) -> tuple[CompactionFailed, ...]:
    """End a compaction without a summary; nothing happens if it has ended already."""
    if state.attempt is None or state.attempt.attempt_id != attempt_id:
        return ()
    return (
        CompactionFailed(
            attempt_id=attempt_id, reason=reason, detail=detail, live_tokens=state.tokens
        ),
    )


def may_compact(state: Conversation, window: int, policy: CompactionPolicy) -> bool:
    """Whether the conversation has grown enough since the last compaction, or the last failure.

    The guard against compacting again and again without gain (invariant 7): a fold of events, so it
    is the same for every route and after a restart.
    """
    step = policy.retry_growth * window
    if state.setbacks.count:
        growth = step * (5 if state.setbacks.count >= 3 else 1)
        return state.tokens >= state.setbacks.live_tokens + growth
    return state.summary is None or state.tokens >= state.summary.at_tokens + 5 * step

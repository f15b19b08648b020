"""Decisions of a compaction: request it, perform it with an accepted summary, fail it, or revert the newest one."""

from datetime import UTC, datetime, timedelta
from math import ceil

from refold.domain.conversation import Attempt, Conversation, LiveMessage
from refold.domain.cuts.planner import CompactionPlan
from refold.domain.errors import RefoldError
from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    CompactionReverted,
    Event,
    SummarySuperseded,
    Trigger,
)
from refold.domain.evolve import evolve
from refold.domain.value import build_in_order, replace

from .budget import may_archive
from .policy import CompactionPolicy
from .summary_rules import Summary, SummaryRefused, judge_length, judge_text

ABANDONED = "abandoned"


class CompactionInFlight(RefoldError):
    """Another compaction of this conversation has not ended yet."""


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
    owner: str | None = None,
    owner_gone: bool = False,
    rebuilds: bool = False,
) -> tuple[Event, ...]:
    """Start a compaction, after recording an older attempt that never ended as abandoned.

    ``owner`` is the process of this attempt. ``owner_gone`` says whether the process of the previous
    attempt has ended.

    Raises:
        CompactionInFlight: a running process requested another compaction, and its lease has not expired.
    """
    settled = _abandon_expired(state, at, policy, owner_gone=owner_gone)
    requested = build_in_order(
        CompactionRequested,
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
        split_at=plan.split_at,
        rebuilds=rebuilds,
        owner=owner,
    )
    return *settled, requested


def _abandon_expired(
    state: Conversation, at: datetime, policy: CompactionPolicy, *, owner_gone: bool
) -> tuple[CompactionFailed, ...]:
    if state.attempt is not None and holds_lease(state.attempt, at, policy) and not owner_gone:
        age = max(0.0, _age(state.attempt, at).total_seconds())
        raise CompactionInFlight(
            f"compaction {state.attempt.attempt_id} has been running for {age:.0f} s: wait until it ends, or "
            f"until it counts as abandoned after {policy.lease_seconds} s"
        )
    return abandon_compaction(state, "it never ended")


def perform_compaction(
    state: Conversation, requested: CompactionRequested, plan: CompactionPlan, summary: Summary
) -> tuple[Event, ...]:
    """Accept ``summary`` for the newest state. Messages may have been appended since the request.

    Raises:
        SummaryRefused: the summary is not acceptable, or the covered content changed in the meantime.
    """
    if state.attempt is None or state.attempt.attempt_id != requested.attempt_id:
        raise SummaryRefused("overtaken", "the compaction was ended or replaced in the meantime")
    active = state.summary.summary_id if state.summary else None
    if active != requested.supersedes:
        raise SummaryRefused("overtaken", "another summary became active in the meantime")
    pins = state.pinned_positions
    pinned = (m.position for m in state.live if m.position in pins)
    if any(map(requested.coverage.covers, pinned)):
        raise SummaryRefused("overtaken", "a covered message was pinned in the meantime")
    judge_summary(summary, plan)
    performed = _performed_event(state, requested, plan, summary)
    is_again = state.summary is not None and state.summary.coverage == requested.coverage
    if not is_again and evolve(state, performed).tokens >= state.tokens:
        raise SummaryRefused(
            "overtaken", "the covered messages were shortened and are no larger than the summary"
        )
    if active is None:
        return (performed,)
    return (
        performed,
        build_in_order(SummarySuperseded, summary_id=active, by=summary.summary_id),
    )


def _performed_event(
    state: Conversation, requested: CompactionRequested, plan: CompactionPlan, summary: Summary
) -> CompactionPerformed:
    generation, covered = _replaced_size(state, requested, plan)
    performed = build_in_order(
        CompactionPerformed,
        attempt_id=requested.attempt_id,
        summary_id=summary.summary_id,
        text=summary.text,
        tokens=summary.tokens,
        coverage=requested.coverage,
        source_digest=summary.source_digest or requested.source_digest,
        trigger=requested.trigger,
        policy=requested.policy,
        summariser=summary.summariser,
        model=summary.model,
        prompt_fingerprint=summary.prompt_fingerprint,
        tokens_before=requested.tokens_before,
        tokens_after=requested.tokens_before - covered + summary.tokens,
        focus=requested.focus,
        is_split_turn=summary.is_split_turn,
        split_turn_prefix=summary.split_turn_prefix,
        split_at=summary.split_at,
        text_tokens=summary.text_tokens,
        target_tokens=plan.goal_tokens or None,
        effective=_is_effective(plan, summary),
        generation=generation,
        message_count=state.length,
    )
    return _with_parts(performed, summary)


def _with_parts(performed: CompactionPerformed, summary: Summary) -> CompactionPerformed:
    """Return the event with everything that is rendered or kept with the summary's text."""
    return replace(
        performed,
        ledger=summary.ledger,
        ledger_shown=summary.ledger_shown,
        leaf=summary.leaf,
        omitted=summary.omitted,
        given_in_part=summary.given_in_part,
        block=summary.block,
        model_calls=summary.model_calls,
        topics=summary.topics,
        topics_shown=summary.topics_shown,
        topics_ask=summary.topics_ask,
        index=summary.index,
        index_shown=summary.index_shown,
        index_left_out=summary.index_left_out,
        earlier=summary.earlier,
    )


def _replaced_size(
    state: Conversation, requested: CompactionRequested, plan: CompactionPlan
) -> tuple[int, int]:
    """Return the generation of a new summary, and the number of tokens that it replaces."""
    before = state.summary
    if before is not None and before.coverage == requested.coverage:
        return (
            before.generation,
            before.tokens,
        )  # The same coverage was summarised again with another focus.
    generation = 0 if requested.rebuilds or before is None else before.generation + 1
    return generation, plan.covered_tokens


def judge_summary(summary: Summary, plan: CompactionPlan) -> None:
    """Refuse a summary that is not fit to replace the messages in the plan.

    Raises:
        SummaryRefused: with the reason.
    """
    judge_text(
        summary.text,
        complete=summary.complete,
        required=summary.required,
        by_code=summary.model_calls == 0,
    )
    longest = max(plan.limit_tokens, plan.accepted_tokens)
    judge_length(summary.text_tokens, longest, summary.tokens, plan.covered_tokens)


def _is_effective(plan: CompactionPlan, summary: Summary) -> bool:
    # Messages appended after the plan do not count against the summary.
    return not plan.goal_tokens or plan.kept_tokens + summary.tokens <= plan.goal_tokens


def fail_compaction(
    state: Conversation, attempt_id: str, reason: str, detail: str = "", *, model_calls: int = 0
) -> tuple[CompactionFailed, ...]:
    """End a compaction without a summary, unless it has already ended."""
    if state.attempt is None or state.attempt.attempt_id != attempt_id:
        return ()
    return (
        CompactionFailed(
            attempt_id=attempt_id,
            reason=reason,
            detail=detail,
            live_tokens=state.tokens,
            model_calls=model_calls,
        ),
    )


def holds_lease(attempt: Attempt, at: datetime, policy: CompactionPolicy) -> bool:
    """Return whether the lease of an unfinished attempt is still valid.

    The attempt may be of a later time, because the clock was set back or that of another machine is ahead.
    """
    return abs(_age(attempt, at)) < timedelta(seconds=policy.lease_seconds)


def _age(attempt: Attempt, at: datetime) -> timedelta:
    """Return the time since an attempt began. Earlier versions stored what a clock without a time zone said."""
    began = attempt.requested_at
    return at - (began if began.tzinfo else began.replace(tzinfo=UTC))


def abandon_compaction(state: Conversation, why: str) -> tuple[CompactionFailed, ...]:
    """End the running attempt, if any, because its process will not finish it."""
    if state.attempt is None:
        return ()
    return fail_compaction(state, state.attempt.attempt_id, ABANDONED, why)


def may_compact(state: Conversation, window: int, policy: CompactionPolicy) -> bool:
    """Return whether the conversation has grown enough since the last compaction or failure.

    This prevents repeated compactions without gain. It depends on events only, so the answer is the same
    for all callers and after a restart.
    """
    return state.tokens >= compacts_again_at(state, window, policy)


def is_breaker_open(state: Conversation, window: int, policy: CompactionPolicy) -> bool:
    """Return whether repeated failures block compaction until the conversation has grown."""
    return breaker_closes_at(state, window, policy) is not None


def breaker_closes_at(state: Conversation, window: int, policy: CompactionPolicy) -> int | None:
    """Return the size at which an open circuit breaker allows a compaction, or None if it is closed."""
    if state.setbacks.count < policy.breaker_after:
        return None
    if may_compact(state, window, policy) or may_archive(state, policy):
        return None
    return compacts_again_at(state, window, policy)


def compacts_again_at(state: Conversation, window: int, policy: CompactionPolicy) -> int:
    """Return the conversation size, in tokens, at which the next compaction is allowed.

    A step is ``retry_growth`` times the window. After a failure the conversation must grow by one step. It
    must grow by five steps while the circuit breaker is open, and after each successful compaction.
    """
    step = policy.retry_growth * window
    if state.setbacks.count:
        steps = 5 if state.setbacks.count >= policy.breaker_after else 1
        return ceil(state.setbacks.live_tokens + steps * step)
    return ceil(state.summary.at_tokens + 5 * step) if state.summary else 0


def revert_compaction(
    state: Conversation, before: Conversation, reason: str = ""
) -> tuple[CompactionReverted, ...]:
    """Revert the active summary, or do nothing if none exists.

    The covered messages return to the context. ``before`` is the conversation right before the summary was
    made. Messages and decisions since then stay, and the summary stays in the log for audit.
    """
    undone = state.summary
    if undone is None:
        return ()
    back = tuple(m for m in before.live if undone.coverage.covers(m.position))
    counted: tuple[LiveMessage, ...] = ()
    if state.older_live:
        # Newer messages are only counted by now, so these older ones can only be counted too.
        back, counted = (), back
    return (
        CompactionReverted(
            summary_id=undone.summary_id,
            restored=before.summary,
            messages=back,
            older_live=before.older_live + len(counted) + state.older_live,
            older_tokens=before.older_tokens
            + sum(m.tokens - m.thinking for m in counted)
            + state.older_tokens,
            live_from=min(before.live_from, state.live_from),
            reason=reason,
        ),
    )

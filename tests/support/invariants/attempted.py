"""Invariants of attempts: only good texts, one end, progress, and no attempt without a reason."""

from refold.domain.events import CompactionFailed
from refold.domain.frames import RequestFrameChanged
from refold.domain.quoted_text import remove_headings
from tests.support.retold import Attempt
from tests.support.witness import Witness, as_bytes

BAD = frozenset({"empty", "truncated", "raising", "crashing", "faulty", "error-text", "partless"})
"""Summarisers whose text may never be committed. One that is too long may, where it helps."""

NOTE = 100
"""Tokens that the shortest text may have which an erasure leaves of a summary."""


def every_attempt_ends_once(witness: Witness) -> None:
    """Invariant 22: one end for each, only the newest may still be running; each end is told once."""
    attempts = witness.story.attempts
    assert all(a.ended for a in attempts[:-1])
    ends = {a.requested.attempt_id: a.ended for a in attempts}
    told = [r for r in witness.follower.told if r.attempt_id in ends and r.outcome != "waiting"]
    assert len({r.attempt_id for r in told}) == len(told), "an end was told twice"
    for result in told:
        ended = ends[str(result.attempt_id)]
        assert ended is not None, f"told as {result.outcome}, and it has not ended"
        failed = isinstance(ended, CompactionFailed)
        assert failed == (result.outcome == "failed"), f"told as {result.outcome}"


def only_good_texts_are_committed(witness: Witness) -> None:
    """Invariant 9: complete, with all its parts, no error, within its limit, by no failing model."""
    performed = witness.story.performed
    for number in witness.news("good texts", len(performed)):
        event = performed[number].performed
        if witness.story.is_withdrawn(performed[number]):
            continue
        assert event.model not in BAD
        assert event.text.strip()
        attempted = witness.follower.of(event.attempt_id)
        calls = attempted.calls if attempted else []
        last = next((call for call in reversed(calls) if call.draft), None)
        if last is None or last.draft is None:
            continue
        assert last.draft.complete
        # What could pass for a heading of ours is broken up.
        assert remove_headings(last.draft.text) in event.text, (
            "what was committed is not what was answered"
        )
        assert all(part in event.text for part in last.draft.required)
        limit = last.request.limit_tokens
        if witness.counter.count_text(last.draft.text) > limit:
            # Longer than asked: it is taken where the request is under the trigger with it.
            trigger = witness.shown(performed[number].ended_at).budget.trigger
            assert event.tokens_after <= trigger
        if event.block is not None:
            assert event.block == last.draft.block


def a_summary_makes_the_request_smaller(witness: Witness) -> None:
    """Invariants 7 and 22: it is smaller and different; whether that is enough is told truly."""
    story = witness.story
    for number in witness.news("progress", len(story.performed)):
        attempt = story.performed[number]
        event, at = attempt.performed, attempt.ended_at
        if event.trigger == "erasure":
            assert attempt.replaced is not None
            # A note that says where all of it can be read back takes the place of fewer words, too.
            most = max(attempt.replaced.tokens, event.tokens - event.text_tokens + NOTE)
            assert event.tokens <= most, f"{event.text!r} of {event.tokens} tokens is larger"
            continue
        before, after = witness.shown(at - 1), witness.shown(at)
        if attempt.is_refocused:
            assert attempt.requested.focus, "made again, and with no focus"
            assert event.tokens_after <= after.budget.trigger
            continue
        assert witness.size_of(after) < witness.size_of(before), (
            f"version {at} made the request larger"
        )
        assert (after.system, after.messages) != (before.system, before.messages)
        assert event.tokens_after < event.tokens_before
        if attempt.version == at - 1 and event.target_tokens:
            # With what was appended since the plan was made nobody could reckon.
            assert event.effective == (story.states[at].tokens <= event.target_tokens)


def a_failure_changes_nothing(witness: Witness) -> None:
    """Invariant 8: the context after it is the one from before the attempt, byte for byte."""
    failed = [a for a in witness.story.attempts if isinstance(a.ended, CompactionFailed)]
    events = [recorded.event for recorded in witness.events()]
    asked = {event.asked_at for event in events if isinstance(event, RequestFrameChanged)}
    for number in witness.news("failures", len(failed)):
        attempt = failed[number]
        if attempt.ended_at in asked:
            continue  # The first request with another frame showed this version: that is what changed.
        after = as_bytes(witness.shown(attempt.ended_at))
        assert after == as_bytes(witness.shown(attempt.ended_at - 1)), "a failure changed something"
        if attempt.ended_at == attempt.version + 1:
            before = as_bytes(witness.shown(attempt.version - 1))
            assert after == before, "an attempt that failed changed something"


def nothing_is_attempted_without_growth(witness: Witness) -> None:
    """Invariant 7: the guard. After a compaction, a failure, an undoing, the conversation has grown
    before anything is attempted by itself; or the request would not fit otherwise.
    """
    attempts = witness.story.attempts
    for number in witness.news("guard", len(attempts)):
        attempt = attempts[number]
        if attempt.requested.trigger in ("manual", "erasure") or not attempt.since:
            continue
        if not _has_grown(witness, attempt):
            sizes = [witness.shown(v) for v in _looked_at(witness, attempt)]
            assert any(s.tokens > s.budget.limit for s in sizes), (
                f"version {attempt.version}: attempted by {attempt.requested.trigger} again, after"
                f" {attempt.since} at {attempt.since_version}, and the request fits"
            )


def _looked_at(witness: Witness, attempt: Attempt) -> range:
    """The versions at which it may have been found to be due: those since the newest append."""
    story = witness.story
    return range(story.said[attempt.version - 1], attempt.version)


def _has_grown(witness: Witness, attempt: Attempt) -> bool:
    states = witness.story.states
    step = witness.policy.retry_growth * witness.window
    steps = 1 if 0 < attempt.setbacks < witness.policy.breaker_after else 5
    then = states[attempt.since_version].tokens
    return any(
        states[v].tokens >= then + steps * step
        for v in range(witness.story.said[attempt.version - 1], attempt.version)
    )

"""Invariants of coverage: what summaries stand for, what they never may, and that nothing is lost."""

import json
from collections.abc import Sequence

from refold.domain.compaction.budget import kept_target
from refold.domain.events import CompactionPerformed, CompactionRequested
from refold.domain.turns import MOST_PROTECTED
from tests.support.brute_force import Everything, told
from tests.support.retold import Attempt
from tests.support.talk import (
    Spoken,
    last_assistant,
    preamble,
    running_requests,
    unanswered,
    waiting_calls,
)
from tests.support.witness import USED, Witness, as_message


def one_summary_is_active(witness: Witness) -> None:
    """Invariant 3: the newest that was not undone; each one took over from the one before it."""
    story = witness.story
    performed = [a.performed.summary_id for a in story.performed]
    rows = witness.conversation.summaries()
    assert [row.summary_id for row in rows] == performed
    active = [story.active.summary_id] if story.active else []
    assert [row.summary_id for row in rows if row.is_active] == active
    told = [
        (a.replaced.summary_id, a.performed.summary_id)
        for a in story.performed
        if a.replaced is not None
    ]
    assert story.superseded == told


def coverage_only_grows(witness: Witness) -> None:
    """Invariant 3: a new summary covers all that the old one covered, and counts it right."""
    performed = witness.story.performed
    for number in witness.news("coverage", len(performed)):
        attempt = performed[number]
        assert attempt.replaced == attempt.before, "another one took its place meanwhile"
        now, before = positions(attempt.performed), positions(attempt.before)
        assert before <= now, f"{sorted(before - now)} were covered and are not any more"
        is_new = attempt.performed.trigger != "erasure" and not attempt.is_refocused
        assert (before < now) == is_new
        assert attempt.performed.coverage == attempt.requested.coverage
        assert attempt.performed.coverage.count == len(now)
        assert attempt.performed.coverage.last_message_id


def positions(event: CompactionPerformed | CompactionRequested | None) -> set[int]:
    """The positions that a compaction covers."""
    if event is None:
        return set()
    coverage = event.coverage
    return {p for p in range(coverage.start, coverage.stop) if coverage.covers(p)}


def fresh(attempt: Attempt) -> set[int]:
    """The positions that a compaction covers and the summary before it did not."""
    return positions(attempt.requested) - positions(attempt.onto)


def open_business_is_not_covered(witness: Witness) -> None:
    """Invariant 4, at the version of each compaction: calls, unanswered words, requests, pins."""
    performed = witness.story.performed
    for number in witness.news("open business", len(performed)):
        attempt = performed[number]
        if attempt.performed.trigger == "erasure":
            continue  # It covers what the one before it covered.
        spoken = witness.spoken_at(attempt.version)
        covered = fresh(attempt)
        kept = {s.position for s in (*spoken[-1:], *unanswered(spoken))}
        kept |= {s.position for s in spoken if s.role == "system" and s.position < preamble(spoken)}
        if waiting_calls(spoken):
            kept |= {s.position for s in spoken if s.position == last_assistant(spoken)}
        requests = {s.position for s in _protected(witness, spoken, attempt)}
        pins = witness.story.states[attempt.version].pinned_positions
        pins |= witness.story.states[attempt.ended_at - 1].pinned_positions
        for what, those in (("open business", kept), ("requests", requests), ("pins", pins)):
            assert not covered & those, (
                f"version {attempt.ended_at} covers {sorted(covered & those)} of {len(spoken)},"
                f" {what}: {attempt.requested.trigger} by {attempt.performed.summariser}"
            )


def _protected(witness: Witness, spoken: Sequence[Spoken], attempt: Attempt) -> list[Spoken]:
    """The newest running request always; all of them where together they are small."""
    requests = running_requests(spoken)
    before = witness.story.states[attempt.version - 1]
    shown = witness.shown(attempt.version)
    extra = max(0, shown.tokens - shown.budget.fixed - before.tokens)
    budget = shown.budget.carrying(extra)
    goal = kept_target(budget, witness.policy)
    # Words beside a result keep the whole round that they came in.
    tried = Everything(told(e.event for e in witness.events()[: attempt.version]), before)
    positions = tried.with_bonds(s.position for s in requests)
    messages = (as_message(spoken[position].message) for position in positions)
    size = sum(witness.counter.count_message(message).total for message in messages)
    small = size <= goal * witness.policy.request_share and len(requests) < MOST_PROTECTED
    return requests if small else requests[-1:]


def calls_and_results_share_one_fate(witness: Witness) -> None:
    """Invariant 1 and requirement A6: a summary covers a call and its results, or none of them."""
    covered = positions(witness.story.active)
    asking: Spoken | None = None
    for spoken in witness.spoken:
        if spoken.role == "assistant":
            asking = spoken
        elif asking is not None and set(asking.calls) & set(spoken.results):
            at = (asking.position, spoken.position)
            assert (at[0] in covered) == (at[1] in covered), f"call and result at {at} are parted"


def every_message_is_readable(witness: Witness) -> None:
    """Invariants 10 and 15: each acknowledged message is in the log once, in order, byte-equal,
    or it was erased.
    """
    stored = witness.conversation.messages()
    assert [m.position for m in stored] == list(range(len(witness.spoken)))
    for found, said in zip(stored, witness.spoken, strict=True):
        given = {"role": said.message["role"], "content": said.message["content"]}
        read = {"role": found.message.role, "content": found.message.content}
        assert json.dumps(read) == json.dumps(given), f"message {said.position} was changed"
        assert found.erased == (said.position in witness.erased)
        is_used = said.position in witness.with_usage and not found.erased
        assert found.message.extra == ({"usage": USED} if is_used else None)
        # Its size stays what it was: sums over the history are made of these.
        whole = witness.erased.get(said.position, said)
        size = witness.counter.count_message(as_message(whole.message)).total
        assert found.tokens == size, f"invariant 16: message {said.position} has {size} tokens"
    assert len({m.message_id for m in stored}) == len(stored)

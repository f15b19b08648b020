"""Invariants of coverage: what summaries stand for, what they never may, and that nothing is lost."""

import json
from collections.abc import Sequence
from itertools import pairwise

from refold.application.loaded import LoadedConversation
from refold.application.ports import SummaryRequest
from refold.application.summarising.joining import history_text
from refold.domain.budget import kept_target
from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    SummarySuperseded,
)
from refold.domain.requests import MOST_PROTECTED
from tests.support.talk import (
    Spoken,
    last_assistant,
    preamble,
    running_requests,
    unanswered,
    waiting_calls,
)
from tests.support.witness import THREAD, Witness, as_message

BAD = frozenset({"empty", "truncated", "longer", "raising", "crashing"})
"""Summarisers whose text may never be committed."""
BY_CODE = frozenset({"extractive", "note"})


def one_summary_is_active(witness: Witness) -> None:
    """Invariant 3: the newest is active, the ones before it are superseded, each by the next."""
    performed = [event.summary_id for _, event in witness.performed()]
    rows = witness.chat.summaries()
    assert [row.summary_id for row in rows] == performed
    assert [row.summary_id for row in rows if row.is_active] == performed[-1:]
    events = [e.event for e in witness.events()]
    handed_over = [(e.summary_id, e.by) for e in events if isinstance(e, SummarySuperseded)]
    assert handed_over == list(pairwise(performed))


def coverage_only_grows(witness: Witness) -> None:
    """Invariant 3: a new summary covers all that the old one covered, and counts it right."""
    before: set[int] = set()
    for _, event in witness.performed():
        now = positions(event)
        assert before <= now, f"{sorted(before - now)} were covered and are not any more"
        assert event.coverage.count == len(now)
        assert event.coverage.last_message_id
        before = now


def coverage_is_what_the_summariser_got(witness: Witness) -> None:
    """Invariants 2 and 3: the new messages, whole, and the old summary; nothing else is covered."""
    previous: CompactionPerformed | None = None
    for _, event in witness.performed():
        fresh = positions(event) - (positions(previous) if previous else set())
        calls = [call.request for call in witness.summariser.calls if call.by == event.summariser]
        if event.summariser not in BY_CODE:
            sent = {m.position: m.message for request in calls for m in request.messages}
            for spoken in witness.spoken:
                if spoken.position in fresh:
                    assert sent.get(spoken.position) == as_message(spoken.message)
            assert _carries_on(event, previous, calls), (
                f"{event.summary_id} dropped what was before"
            )
        previous = event


def _carries_on(
    event: CompactionPerformed,
    previous: CompactionPerformed | None,
    calls: Sequence[SummaryRequest],
) -> bool:
    """Whether the text before was an input, stays word for word, or was rebuilt from leaves."""
    if previous is None or event.generation == 0:
        return True
    given = {call.previous for call in calls}
    history = history_text(previous)
    if previous.text in given:
        return True
    stays = not history or history in given or event.text.startswith(history)
    return stays and previous.split_turn_prefix in given


def positions(event: CompactionPerformed | CompactionRequested) -> set[int]:
    """The positions that a compaction covers."""
    coverage = event.coverage
    return {p for p in range(coverage.start, coverage.stop) if coverage.covers(p)}


def open_business_is_not_covered(witness: Witness) -> None:
    """Invariant 4, at the version of each compaction: calls, unanswered words, running requests."""
    performed = witness.performed()
    for number in range(witness.judged, len(performed)):
        version, event = performed[number]
        requested = _request_of(witness, event)
        spoken = witness.spoken[: _length_at(witness, requested)]
        covered = positions(event) - (positions(performed[number - 1][1]) if number else set())
        kept = {s.position for s in (*spoken[-1:], *unanswered(spoken))}
        kept |= {s.position for s in spoken if s.role == "system" and s.position < preamble(spoken)}
        if waiting_calls(spoken):
            kept |= {s.position for s in spoken if s.position == last_assistant(spoken)}
        kept |= {s.position for s in _pinned(witness, spoken, requested - 1)}
        asked = [s.position for s in running_requests(spoken)]
        assert not covered & kept, (
            f"version {version} covers {sorted(covered & kept)} of {len(spoken)}, asked at {asked}"
            f" {event.trigger} by {event.summariser}"
        )
    witness.judged = len(performed)


def _request_of(witness: Witness, event: CompactionPerformed) -> int:
    for logged in witness.events():
        found = logged.event
        if isinstance(found, CompactionRequested) and found.attempt_id == event.attempt_id:
            return logged.version
    raise AssertionError(f"{event.attempt_id} was performed and never requested")


def _length_at(witness: Witness, version: int) -> int:
    names = (type(e.event).__name__ for e in witness.events()[:version])
    return sum(1 for name in names if name == "MessageAppended")


def _pinned(witness: Witness, spoken: Sequence[Spoken], version: int) -> list[Spoken]:
    """The newest running request always; all of them where together they are small."""
    requests = running_requests(spoken)
    before = LoadedConversation(THREAD).after([e.event for e in witness.events()[:version]])
    shown = witness.chat.context(at=version)
    extra = max(0, shown.tokens - before.state.tokens)
    budget = shown.budget.carrying(extra)
    goal = kept_target(budget, witness.policy)
    size = sum(witness.counter.count_message(as_message(s.message)).total for s in requests)
    small = size <= goal * witness.policy.request_share and len(requests) < MOST_PROTECTED
    return requests if small else requests[-1:]


def calls_and_results_share_one_fate(witness: Witness) -> None:
    """Invariant 1 and requirement A6: a summary covers a call and its results, or none of them."""
    performed = witness.performed()
    covered = positions(performed[-1][1]) if performed else set[int]()
    asking: Spoken | None = None
    for spoken in witness.spoken:
        if spoken.role == "assistant":
            asking = spoken
        elif asking is not None and set(asking.calls) & set(spoken.results):
            at = (asking.position, spoken.position)
            assert (at[0] in covered) == (at[1] in covered), f"call and result at {at} are parted"


def only_good_texts_are_committed(witness: Witness) -> None:
    """Invariant 9: complete, not blank, smaller than what it replaces, by no failing summariser."""
    for _, event in witness.performed():
        assert event.summariser not in BAD
        assert event.text.strip()
        assert event.tokens_after < event.tokens_before


def every_message_is_readable(witness: Witness) -> None:
    """Invariants 10 and 15: each acknowledged message is in the log once, in order, byte-equal."""
    stored = witness.chat.messages()
    assert [m.position for m in stored] == list(range(len(witness.spoken)))
    for found, said in zip(stored, witness.spoken, strict=True):
        given = {"role": said.message["role"], "content": said.message["content"]}
        read = {"role": found.message.role, "content": found.message.content}
        assert json.dumps(read) == json.dumps(given), f"message {said.position} was changed"
    assert len({m.message_id for m in stored}) == len(stored)


def every_attempt_ends_once(witness: Witness) -> None:
    """Invariant 22: one end for each attempt; only the newest may still be running."""
    ends: dict[str, list[str]] = {}
    for logged in witness.events():
        match logged.event:
            case CompactionRequested(attempt_id=attempt_id):
                assert all(found for found in ends.values()), "two compactions at once"
                ends[attempt_id] = []
            case CompactionPerformed(attempt_id=attempt_id):
                ends[attempt_id].append("performed")
            case CompactionFailed(attempt_id=attempt_id):
                ends[attempt_id].append("failed")
            case _:
                pass
    assert all(len(found) <= 1 for found in ends.values())

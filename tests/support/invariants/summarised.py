"""Invariants of what a summariser gets: all that is covered, whole, within its window, with the focus."""

from collections.abc import Iterable, Sequence

from refold.application.conversation.addresses import address_of
from refold.application.ports.summariser import SourceMessage, SummaryRequest
from refold.application.summaries.leaves import add_heading, history_text, whole_text
from refold.domain.events import CompactionPerformed, LeafSummary
from refold.domain.messages import gist
from tests.support.followed import BoundedSwitchedSummariser, Call
from tests.support.retold import Attempt
from tests.support.witness import THREAD, Witness, as_message, in_words

from .covered import fresh

HEADED = 70
"""Characters that a leaf's heading takes, and what parts it from the next."""
BREAKING = frozenset({"faulty", "crashing"})
BY_CODE = frozenset({"extractive", "note"})


def every_call_is_in_order(witness: Witness) -> None:
    """Invariants 1, 12 and 21, for calls whose answers were refused as well."""
    attempts = witness.follower.attempts
    by_id = {a.requested.attempt_id: a for a in witness.story.attempts}
    for number in witness.news("calls", len(attempts)):
        attempted = attempts[number]
        ids = {r.attempt_id for r in attempted.results} & set(by_id)
        for attempt_id in ids:
            attempt = by_id[str(attempt_id)]
            for call in attempted.calls:
                assert call.request.focus == attempt.requested.focus, "invariant 21"
                _is_in_order(witness, call.request, fresh(attempt))
            if not attempted.calls and attempt.requested.summariser in BY_CODE:
                continue  # It was not asked through the one that is plugged in.
            told = sum(r.model_calls for r in attempted.results)
            if BREAKING & {call.by for call in attempted.calls[1:]}:
                continue  # How often one was asked that breaks when it is asked once more, nobody knows.
            assert told == len(attempted.calls), "calls were not counted right"
        if not ids:
            assert not attempted.calls or not attempted.results, "asked without an attempt"


def _is_in_order(witness: Witness, request: SummaryRequest, covered: set[int]) -> None:
    sent = [source.position for source in request.messages]
    assert sent == sorted(set(sent)), "messages are out of order, or sent twice"
    assert set(sent) <= covered, "something is sent that is not covered"
    assert request.target_tokens <= request.limit_tokens
    for parted in _parted(witness, request.messages, covered):
        raise AssertionError(f"call and result are parted: {parted}")
    if isinstance(witness.summariser, BoundedSwitchedSummariser):
        size = witness.summariser.measure(request)
        assert size <= witness.summariser.window, f"invariant 12: {size} tokens were sent"


def _parted(
    witness: Witness, messages: Sequence[SourceMessage], covered: set[int]
) -> Iterable[tuple[int, int]]:
    """Calls and results of the covered part of which one is in a request and one is not."""
    sent = {source.position for source in messages}
    asking = None
    for spoken in witness.spoken:
        if spoken.role == "assistant":
            asking = spoken
        elif asking is not None and set(asking.calls) & set(spoken.results):
            pair = (asking.position, spoken.position)
            if covered.issuperset(pair) and (pair[0] in sent) != (pair[1] in sent):
                yield pair


def coverage_is_what_the_summariser_got(witness: Witness) -> None:
    """Invariants 2 and 3: the new messages, whole or named, and what stands for those before."""
    performed = witness.story.performed
    for number in witness.news("sources", len(performed)):
        attempt = performed[number]
        event = attempt.performed
        if event.trigger == "erasure":
            _is_made_anew(witness, attempt)
            continue
        if witness.story.is_withdrawn(attempt):
            continue
        attempted = witness.follower.of(event.attempt_id)
        assert attempted is not None, "performed, and nobody was told"
        _leaf_is_of_the_new_messages(attempt)
        if attempted.calls:
            _all_was_sent(witness, attempt, attempted.calls)
            _goes_on_from_answers(attempt, attempted.calls)
        if attempt.onto is not None:
            if attempt.requested.rebuilds:
                _is_made_of_leaves(witness, attempt, attempted.calls)
            elif attempted.calls:
                assert _carries_on(event, attempt.onto, attempted.calls), (
                    f"{event.summary_id} dropped what was before"
                )


def _all_was_sent(witness: Witness, attempt: Attempt, calls: Sequence[Call]) -> None:
    named = {one.position for one in attempt.performed.omitted}
    sent = {m.position: m for call in calls for m in call.request.messages}
    spoken = witness.spoken_at(attempt.version)
    for position in fresh(attempt):
        said = as_message(spoken[position].message)
        source = sent.get(position)
        if position not in named:
            assert source is not None, f"message {position} is covered and was never sent"
            assert in_words(source.message) == said, f"message {position} was sent changed"
        elif source is not None and in_words(source.message) != said:
            # Only the pair is left of it: the same calls and results, without their content.
            assert gist(source.message)[:2] == gist(said)[:2]
            assert address_of(THREAD, position) in str(source.message.content)
    _omitted_are_named(attempt.performed)


def _omitted_are_named(event: CompactionPerformed) -> None:
    if not event.omitted:
        return
    ends = {f"{line} " for line in event.text.splitlines()}
    shown = [
        o for o in event.omitted if any(f"{address_of(THREAD, o.position)} " in e for e in ends)
    ]
    newest = max(event.omitted, key=lambda one: one.position)
    assert newest in shown, f"{newest} is not named"
    rest = len(event.omitted) - len(shown)
    assert not rest or f"{rest} earlier ones" in event.text, "the others are not counted"


def _goes_on_from_answers(attempt: Attempt, calls: Sequence[Call]) -> None:
    """Chunk after chunk: each call carries on what was answered before it, or asks once more."""
    for part in ("history", "turn_prefix"):
        own = [call for call in calls if call.request.part == part]
        answers: list[str | None] = [own[0].request.previous] if own else []
        done: set[int] = set()
        for call in own:
            assert call.request.previous in answers, "what was answered before is not carried on"
            new = {m.position for m in call.request.messages} - done
            if call.request.previous != answers[0]:
                assert new or call.request.repair or answers[-1] == call.request.previous
            if call.draft is not None:
                answers.append(call.draft.text)
                done |= {m.position for m in call.request.messages}
    assert all(call.request.ledger == calls[0].request.ledger for call in calls)
    assert attempt.performed.model_calls == len(calls)


def _carries_on(
    event: CompactionPerformed, previous: CompactionPerformed, calls: Sequence[Call]
) -> bool:
    """Whether the text before was an input, or stays word for word."""
    given = {call.request.previous for call in calls}
    whole, history = whole_text(previous), history_text(previous)
    if whole in given or event.text.startswith(whole):
        return True
    stays = not history or history in given or event.text.startswith(history)
    return stays and previous.split_turn_prefix in given


def _is_made_anew(witness: Witness, attempt: Attempt) -> None:
    """By code, for what the one before stood for; of what is erased nothing is in it."""
    event, before = attempt.performed, attempt.before
    assert before is not None
    assert event.coverage == before.coverage
    assert event.model_calls == 0
    assert event.block is None
    assert event.leaf is not None
    assert (event.leaf.start, event.leaf.stop) == (before.coverage.start, before.coverage.stop)
    gone = {p for p, version in witness.story.erased.items() if version < attempt.version}
    kept = {one.position for one in before.omitted} - gone
    assert witness.story.is_withdrawn(attempt) or {o.position for o in event.omitted} == kept
    assert not gone & {line.position for line in event.ledger}


def _leaf_is_of_the_new_messages(attempt: Attempt) -> None:
    leaf, new = attempt.performed.leaf, fresh(attempt)
    assert leaf is not None
    assert (leaf.start, leaf.stop) == (min(new), max(new) + 1)
    assert leaf.text.strip()


def _is_made_of_leaves(witness: Witness, attempt: Attempt, calls: Sequence[Call]) -> None:
    """A rebuilt summary comes from the leaves of all that was covered, never from the old text."""
    before, leaves = attempt.before, _leaves(witness, attempt)
    assert before is not None
    assert attempt.performed.generation == 0
    assert leaves, "rebuilt, and there are no leaves"
    own = {leaf.text for leaf in leaves}
    for part in ("history", "turn_prefix"):
        first = next((c.request for c in calls if c.request.part == part), None)
        if first is None or first.previous is None or attempt.performed.split_at is not None:
            continue
        assert first.previous != before.text or before.text in own, "made of the old summary"
        # A leaf that is whole has its heading; one of a few words may stay word for word without it.
        missing = [leaf for leaf in leaves if add_heading(leaf) not in first.previous]
        # Only older ones are shortened, together; and only where all are too much.
        assert missing == leaves[: len(missing)], f"without leaves {missing}"
        whole = sum(len(leaf.text) + HEADED for leaf in leaves) + _written(witness, attempt)
        assert not missing or len(first.previous) < whole, f"without leaves {missing}"


def _written(witness: Witness, attempt: Attempt) -> int:
    """Characters of what was written for all summaries before, with their headings."""
    found, summary = 0, attempt.before
    while summary is not None:
        found += len(summary.text) + 2 * (HEADED + len(summary.model))
        summary = witness.story.before[summary.summary_id]
    return found


def _leaves(witness: Witness, attempt: Attempt) -> list[LeafSummary]:
    story, found = witness.story, list[LeafSummary]()
    summary = attempt.before
    while summary is not None:
        leaf = summary.leaf
        ranges = {(one.start, one.stop) for one in found}
        # One that was made again with another focus is of the same messages as the one before it.
        if leaf is not None and (leaf.start, leaf.stop) not in ranges:
            found.insert(0, leaf)
        if summary.trigger == "erasure":
            break  # Its leaf is of all that was covered by then.
        summary = story.before[summary.summary_id]
    return found

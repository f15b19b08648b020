"""What can be done to a conversation, each deed with what must be true right after it."""

from datetime import timedelta

from refold.application.results import CompactionResult
from refold.application.settling import MOST_ROUNDS

from .fake_summarisers import GoodSummariser
from .histories import Message, marker
from .odd_summarisers import CrashingSummariser, Death
from .talk import clearly_coverable, preamble
from .witness import Answer, Witness, as_bytes, as_message

FOCUS = "the database password rotation"
SAVES = 200
"""Tokens that are worth a summary in any case: a good one of the tests is far smaller."""


def exchange(witness: Witness, share: float) -> list[Message]:
    """A question and an answer without tools, together about this share of the window."""
    first, size = len(witness.spoken), int(witness.window * share)
    sentence = "The build failed in step 7, please look at it once more. "
    words = sentence * max(1, size // witness.counter.count_text(sentence) // 2)
    return [
        {"role": "user", "content": f"{marker(first)} {words}"},
        {"role": "assistant", "content": f"{marker(first + 1)} Done. {words}"},
    ]


def compact(witness: Witness, focus: str | None = None) -> CompactionResult:
    """Compact on demand (invariants 5, 7, 8, 13, 21, 22)."""
    version, before = witness.chat.version, witness.shown()
    coverable = coverable_on_demand(witness)
    result, calls = witness.compact(focus)
    after = witness.shown()
    match result.outcome:
        case "performed":
            assert 1 <= calls <= most_calls(witness)
            asked = witness.summariser.calls[-calls:]
            assert all(call.request.focus == focus for call in asked), "invariant 21"
            assert result.tokens_after < result.tokens_before
            assert after.tokens < before.tokens, "invariant 7: a compaction made the request larger"
            assert_compacting_again_does_nothing(witness)
        case "nothing_to_do":
            assert calls == 0
            assert result.reason, "invariant 5: the rule is not named"
            assert result.detail
            assert witness.chat.version == version
            if result.reason != "breaker_open":
                assert coverable is None, f"invariant 5: {coverable} is coverable: {result}"
        case "failed":
            assert 1 <= calls <= most_calls(witness), "invariant 7: calls are bounded"
            assert result.reason
        case "in_flight":
            assert calls == 0
            assert witness.chat.version == version
        case "shortened" | "reverted":
            raise AssertionError(f"not an outcome of a compaction on demand: {result}")
    if result.outcome != "performed":
        assert as_bytes(after) == as_bytes(before), "invariant 8: a failure changed the context"
    return result


def most_calls(witness: Witness) -> int:
    """What one compaction may take of a summariser that gets everything at once: a call for each part
    of a divided text, and one for each repair; each of them tried again while trouble passes.
    """
    return (2 + witness.policy.repairs) * witness.policy.summary_tries


def coverable_on_demand(witness: Witness) -> range | None:
    """What a compaction on demand should find to cover, if something was said since the last."""
    performed = witness.performed()
    if performed and _is_newest(witness, performed[-1][0]):
        return None
    stop = performed[-1][1].coverage.stop if performed else 0
    return clearly_coverable(
        witness.spoken, stop, witness.policy.keep_last, preamble(witness.spoken)
    )


def _is_newest(witness: Witness, version: int) -> bool:
    later = (type(e.event).__name__ for e in witness.events()[version:])
    return "MessageAppended" not in later


def assert_compacting_again_does_nothing(witness: Witness) -> None:
    """Invariant 13: with nothing new a compaction calls no model and records nothing."""
    version = witness.chat.version
    result, calls = witness.compact()
    assert (result.outcome, calls) == ("nothing_to_do", 0), f"invariant 13: {result}"
    assert result.freed == 0
    assert witness.chat.version == version


def ask(witness: Witness) -> Answer:
    """Get the next request (invariants 5, 7, 12); asking again changes nothing and costs nothing."""
    answer = witness.ask()
    assert answer.model_calls <= MOST_ROUNDS * most_calls(witness)
    if answer.error is not None:
        assert answer.error.needed > answer.error.budget
        if isinstance(witness.summariser.current, GoodSummariser):
            left = tokens_left_to_cover(witness)
            assert left < SAVES, f"invariant 5: {left} tokens were not covered: {answer.error}"
    version = witness.chat.version
    again = witness.ask()
    assert again.model_calls == 0, "invariant 7: asked again, and a model was called again"
    assert witness.chat.version == version
    if answer.context is not None and again.context is not None:
        assert as_bytes(again.context) == as_bytes(answer.context)
        if any(c.outcome == "performed" for c in answer.context.compactions):
            assert_compacting_again_does_nothing(witness)
    return answer


def tokens_left_to_cover(witness: Witness, keep_last: int = 1) -> int:
    """The size of what a compaction could cover, found in the simplest way."""
    performed = witness.performed()
    stop = performed[-1][1].coverage.stop if performed else 0
    found = clearly_coverable(witness.spoken, stop, keep_last, preamble(witness.spoken))
    messages = (as_message(witness.spoken[p].message) for p in found or ())
    return sum(witness.counter.count_message(m).total for m in messages)


def deliver_twice(witness: Witness, words: str) -> None:
    """Invariant 13: the same key is stored once, also after another message, also elsewhere."""
    key = f"delivery-{len(witness.spoken)}"
    message: Message = {"role": "user", "content": f"{marker(len(witness.spoken))} {words}"}
    first = witness.append([message], key=key)
    again = witness.chat.append(message, key=key)
    other = witness.open()
    elsewhere = other.conversation(witness.chat.thread_id).append(message, key=key)
    other.close()
    witness.is_stale = True
    for later in (again, elsewhere):
        assert [m.new for m in later.messages] == [False]
        assert (later.positions, later.ids, later.version) == (
            first.positions,
            first.ids,
            first.version,
        )


def append_elsewhere(witness: Witness, words: str) -> None:
    """Another memory on the same file appends: the first one must see it (invariants 10, 11)."""
    other = witness.open()
    message: Message = {"role": "user", "content": f"{marker(len(witness.spoken))} {words}"}
    appended = other.conversation(witness.chat.thread_id).append(message)
    other.close()
    witness.note([message], appended)


def crash_while_compacting(witness: Witness, *, wait: bool) -> None:
    """The process dies while a summariser works; the next start settles it (invariants 8, 11)."""
    before, plugged = as_bytes(witness.shown()), witness.summariser.current
    witness.summariser.current = CrashingSummariser()
    try:
        result, _ = witness.compact()
        died = False
        assert result.outcome in ("nothing_to_do", "in_flight")
    except Death:
        died = True
    witness.summariser.current = plugged
    witness.restart()
    assert as_bytes(witness.shown()) == before
    if died and not wait:
        assert compact(witness).outcome == "in_flight"
    if wait:
        witness.clock.now += timedelta(seconds=witness.policy.lease_seconds)
        assert compact(witness).outcome != "in_flight"


def reject_then_accept(witness: Witness) -> None:
    """Invariant 9: a text that was refused does not stand in the way of a good one."""
    failed = compact(witness)
    plugged, witness.summariser.current = witness.summariser.current, GoodSummariser()
    left = tokens_left_to_cover(witness, witness.policy.keep_last)
    result = compact(witness)
    if failed.outcome == "failed" and left >= SAVES:
        assert result.outcome == "performed", f"invariant 9: {failed} blocks {result}"
    witness.summariser.current = plugged

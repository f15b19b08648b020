"""What can be done to a conversation, each deed with what must be true right after it."""

from refold.application.api.results import CompactionResult
from refold.application.compaction.fit_to_budget import MOST_ROUNDS
from refold.domain.compaction.budget import request_allowance
from refold.domain.errors import PinnedContentTooLarge
from refold.domain.turns import protected_requests
from refold.testing.history_layout import Message, marker

from .brute_force import Everything, told
from .fake_summarisers import GoodSummariser
from .talk import clearly_coverable, preamble
from .witness import Answer, Witness, as_bytes

FOCUS = "the database password rotation"
SAVES = 450
"""Tokens that are worth a summary in any case: a good one of the tests is far smaller, all beside it
included.
"""


def exchange(witness: Witness, share: float) -> list[Message]:
    """A question and an answer without tools, together about this share of the window."""
    first, size = len(witness.spoken), int(witness.window * share)
    sentence = "The build failed in step 7, please look at it once more. "
    words = sentence * max(1, size // witness.counter.count_text(sentence) // 2)
    return [
        {"role": "user", "content": f"{marker(first)} {words}"},
        {"role": "assistant", "content": f"{marker(first + 1)} Done. {words}"},
    ]


def compact(witness: Witness, focus: str | None = None, *, force: bool = False) -> CompactionResult:
    """Compact on demand (invariants 5, 7, 8, 13, 21, 22)."""
    version, before = witness.conversation.version, witness.shown()
    coverable, is_open = coverable_on_demand(witness), breaker_is_open(witness)
    result, calls = witness.compact(focus, force=force)
    after = witness.shown()
    if is_open and not force:
        others = ("nothing_to_do", "shortened", "in_flight")
        assert result.outcome in others, "invariant 7: the breaker is open"
    match result.outcome:
        case "performed":
            assert calls <= most_calls(witness)
            if witness.story.performed[-1].is_refocused:
                assert focus is not None
                assert result.tokens_after <= after.budget.trigger
            else:
                assert result.tokens_after < result.tokens_before
                assert witness.size_of(after) < witness.size_of(before), (
                    "invariant 7: a compaction made the request larger"
                )
            assert_compacting_again_does_nothing(witness)
        case "nothing_to_do":
            assert calls == 0
            assert result.reason, "invariant 5: the rule is not named"
            assert result.detail
            if result.reason == "breaker_open":
                assert is_open
                assert not force
            else:
                assert coverable is None, f"invariant 5: {coverable} is coverable: {result}"
                assert_the_blocker_is_named(witness, result)
        case "shortened":
            assert calls == 0
            assert before.tokens > before.budget.limit, "it did fit"
            assert witness.size_of(after) < witness.size_of(before)
        case "failed":
            assert calls <= most_calls(witness), "invariant 7: calls are bounded"
            assert result.reason
        case "in_flight":
            assert calls == 0
            assert witness.conversation.version == version
        case "reverted" | "waiting":
            raise AssertionError(f"not an outcome of a compaction on demand: {result}")
    if result.outcome not in ("performed", "shortened"):
        assert as_bytes(after) == as_bytes(before), "invariant 8: a failure changed it"
    return result


def breaker_is_open(witness: Witness) -> bool:
    """Whether so many attempts in a row came to nothing, and the conversation has hardly grown."""
    count, grown = setbacks(witness)
    step = witness.policy.retry_growth * witness.window
    return count >= witness.policy.breaker_after and grown < 5 * step


def setbacks(witness: Witness) -> tuple[int, int]:
    """How many attempts in a row came to nothing, and by how much the conversation grew since."""
    story = witness.story
    count, at = story.setbacks
    return count, story.states[-1].tokens - story.states[at].tokens


def most_calls(witness: Witness) -> int:
    """What one compaction may take of a summariser. One that gets everything at once has a call for
    each part of a divided text, some where it says that this was too large, and one for each repair;
    each of them is tried again while trouble passes.
    """
    policy = witness.policy
    plain = 2 + policy.repairs
    calls = policy.most_calls if witness.setting.summariser_window else plain
    return calls * policy.summary_tries


def everything_now(witness: Witness) -> Everything:
    """All that can be said about cuts of the conversation as it is, on demand."""
    story, budget = witness.story, witness.shown().budget
    state = story.states[-1]
    allowance = request_allowance(budget, witness.policy)
    return Everything(
        told(e.event for e in witness.events()),
        state,
        story.active.coverage if story.active else None,
        protected_requests(state, allowance),
    )


IDLE = frozenset({"keep_last", "nothing_new", "too_little"})


def assert_the_blocker_is_named(witness: Witness, result: CompactionResult) -> None:
    """Invariant 5: no cut is legal, and a message that nobody has covered is named."""
    tried = everything_now(witness)
    length = len(witness.spoken)
    if result.reason in IDLE:
        able = [c for c in tried.legal if length - c >= witness.policy.keep_last]
        if result.reason == "keep_last":
            is_short = length - tried.state.covered_to <= witness.policy.keep_last
            assert is_short or not able, f"{able} keep enough: {result}"
        return
    assert not tried.legal, f"{tried.legal} are legal: {result}"
    live = {m.position for m in tried.live}
    assert result.blocked_since in live or not live - set(range(tried.preamble))
    match result.reason:
        case "pending_calls":
            assert result.blocked_since == tried.pending
        case "unanswered_messages":
            assert result.blocked_since == tried.unanswered[0]
        case "pinned_messages":
            assert result.blocked_since in tried.with_bonds(tried.pinned)
        case "open_requests":
            assert result.blocked_since in tried.protected
        case _:
            pass
    assert (result.blocked_at is None) == (result.blocked_since is None)


def coverable_on_demand(witness: Witness) -> range | None:
    """What a compaction on demand should find to cover, if something was said since the last."""
    active = witness.story.active
    if active is not None and not _is_news(witness):
        return None
    stop = active.coverage.stop if active else 0
    found = clearly_coverable(
        witness.spoken, stop, witness.policy.keep_last, preamble(witness.spoken)
    )
    if found is None or everything_now(witness).kept_anyway.intersection(found):
        return None
    return found


def _is_news(witness: Witness) -> bool:
    made = witness.story.made
    return made is None or witness.story.said[-1] > made.ended_at


def assert_compacting_again_does_nothing(witness: Witness) -> None:
    """Invariant 13: with nothing new a compaction calls no model and records nothing.

    Unless the conversation is still too large, pinned texts say: then every chance is taken.
    """
    version, shown = witness.conversation.version, witness.shown()
    result, calls = witness.compact()
    state = witness.story.states[version]
    if state.tokens >= shown.budget.room:
        return
    assert (result.outcome, calls) == ("nothing_to_do", 0), f"invariant 13: {result}"
    assert result.freed == 0
    assert witness.conversation.version == version


def ask(witness: Witness, *, elsewhere: bool = False) -> Answer:
    """Get the next request (invariants 5, 7, 12); asking again changes nothing and costs nothing.

    ``elsewhere``: the second time of another memory on the same file, as after a restart.
    """
    answer = witness.ask()
    assert answer.model_calls <= MOST_ROUNDS * most_calls(witness), "invariant 7: calls are bounded"
    if answer.error is not None:
        assert answer.error.needed > answer.error.budget
        assert_the_error_is_the_right_one(witness, answer.error)
    version = witness.conversation.version
    if elsewhere:
        witness.change_places()
    again = witness.ask()
    assert again.model_calls == 0, "invariant 7: asked again, and a model was called again"
    assert witness.conversation.version == version, (
        "invariant 7: asked again, and something was decided"
    )
    if answer.context is not None and again.context is not None:
        assert as_bytes(again.context) == as_bytes(answer.context)
        if any(c.outcome == "performed" for c in answer.context.compactions):
            assert_compacting_again_does_nothing(witness)
    return answer


def assert_the_error_is_the_right_one(witness: Witness, error: Exception) -> None:
    """Invariants 5 and 12: all that could be covered is; where pins alone are too much it says so."""
    story, budget = witness.story, witness.shown().budget
    sizes = {m.position: m.tokens for m in story.states[-1].live}
    in_place = sum(sizes.get(position, 0) for position in story.pinned_in_place())
    pinned = in_place + sum(pin.tokens for pin in story.pins.values())
    is_pinned = bool(pinned) and budget.fixed + pinned > budget.limit
    assert isinstance(error, PinnedContentTooLarge) == is_pinned
    # What is pinned must be unpinned first: until then a summary would be made in vain.
    if isinstance(witness.summariser.current, GoodSummariser) and not is_pinned:
        left = tokens_left_to_cover(witness)
        assert left < SAVES, f"invariant 5: {left} tokens were not covered: {error}"


def tokens_left_to_cover(witness: Witness, keep_last: int = 1) -> int:
    """The size of the most that a compaction could cover, found by trying every cut."""
    tried = everything_now(witness)
    cuts = (c for c in tried.legal if len(witness.spoken) - c >= keep_last)
    found = (tried.newly_covered(cut) for cut in cuts)
    return max((sum(tried.tokens[p][0] for p in some) for some in found), default=0)


def deliver_twice(witness: Witness, words: str) -> None:
    """Invariant 13: the same key is stored once, also after another message, also elsewhere."""
    key = f"delivery-{len(witness.spoken)}"
    message: Message = {"role": "user", "content": f"{marker(len(witness.spoken))} {words}"}
    first = witness.append([message], key=key)
    again = witness.conversation.append(message, key=key)
    witness.change_places()
    elsewhere = witness.conversation.append(message, key=key)
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
    message: Message = {"role": "user", "content": f"{marker(len(witness.spoken))} {words}"}
    witness.change_places()
    witness.append([message])
    witness.change_places()


def reject_then_accept(witness: Witness) -> None:
    """Invariant 9: a text that was refused does not stand in the way of a good one."""
    failed = compact(witness)
    plugged, witness.summariser.current = witness.summariser.current, GoodSummariser()
    left = tokens_left_to_cover(witness, witness.policy.keep_last)
    result = compact(witness, force=True)
    too_small = result.reason in ("too_many_calls", "too_large")  # Its window, that is.
    if failed.outcome == "failed" and left >= SAVES and not too_small:
        assert result.outcome == "performed", f"invariant 9: {failed} blocks {result}"
    witness.summariser.current = plugged

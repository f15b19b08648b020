"""The state: what an event does to it, that none is refused, and that it stays small."""

import sys

import pytest

from refold.domain.conversation import Conversation
from refold.domain.events import (
    CompactionFailed,
    ConversationLabelled,
    Event,
    LinesRecalled,
    MessagePinned,
    ShortenedPart,
    SummarySuperseded,
    ToolContentOffloaded,
)
from refold.domain.evolve import REMEMBERED, evolve, fold
from tests.support.builders import (
    appended,
    assistant,
    calls,
    conversation,
    coverage,
    history,
    performed,
    requested,
    results,
    system,
    talk,
    user,
)


def offloaded(*positions: int, freed: int = 60) -> ToolContentOffloaded:
    parts = tuple(
        ShortenedPart(position=p, call_id=f"c{p}", side="result", tokens_freed=freed)
        for p in positions
    )
    return ToolContentOffloaded(parts=parts, head=40, tail=10)


def recalled(position: int, tokens: int = 30) -> LinesRecalled:
    return LinesRecalled(
        position=position, message_id=f"id{position}", lines=(), tokens=tokens, asked_at=1
    )


ANY_EVENT: list[Event] = [
    appended(0, user("again at 0")),
    appended(99, results("never called")),
    requested(50, "b"),
    performed(50, "never requested"),
    CompactionFailed(attempt_id="never requested", reason="x"),
    SummarySuperseded(summary_id="never made", by="nobody"),
    offloaded(0, 77),
    recalled(77),
    ConversationLabelled(label=""),
]


@pytest.mark.parametrize("event", ANY_EVENT, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("before", [[], history(*talk(3)), [*history(*talk(3)), performed(4)]])
def test_no_event_is_refused_and_each_counts_as_a_version(
    event: Event, before: list[Event]
) -> None:
    state = fold(before)
    assert evolve(state, event).version == state.version + 1


def test_folding_leaves_the_state_before_as_it_was() -> None:
    state = conversation(*talk(3))
    copy = state.model_copy(deep=True)
    for event in ANY_EVENT:
        evolve(state, event)
    assert state == copy


def test_a_fact_of_a_message_holds_what_decisions_need_and_no_text() -> None:
    state = fold([appended(0, calls("a", "b"), thinking_tokens=7, stop_reason="pause_turn")])
    [fact] = state.live
    assert (fact.role, fact.calls, fact.results, fact.tokens) == ("assistant", ("a", "b"), (), 100)
    assert (fact.thinking, fact.speaks, fact.paused) == (7, False, True)


def test_what_is_covered_is_no_longer_live() -> None:
    state = fold([*history(*talk(4)), requested(5), performed(5)])
    assert [m.position for m in state.live] == [5, 6, 7]
    assert state.tokens == 350
    assert state.covered_to == 5
    assert state.live_from == 6
    assert state.attempt is None


def test_exclusions_stay_live() -> None:
    kept = performed(5, coverage=coverage(5, exclusions=(0, 2)))
    state = fold([*history(*talk(4)), kept])
    assert [m.position for m in state.live] == [0, 2, 5, 6, 7]


def test_thinking_is_no_longer_counted_once_the_prefix_has_changed() -> None:
    thoughts = [appended(p, assistant("x"), thinking_tokens=30) for p in range(4)]
    assert fold(thoughts).tokens == 400
    assert fold([*thoughts, performed(2)]).live_tokens == 140
    assert fold([*thoughts, offloaded(0)]).live_tokens == 4 * 70 - 60
    # The next answer may have been asked for with the prefix from before; the one after it was not.
    answers = [appended(p, assistant("y"), thinking_tokens=30) for p in (4, 5)]
    assert fold([*thoughts, performed(2), *answers]).live_tokens == 140 + 70 + 100


def test_previews_make_the_conversation_smaller_each_time() -> None:
    state = fold([*history(*talk(2)), offloaded(1, 1, freed=20), offloaded(1, freed=10)])
    assert [m.tokens for m in state.live] == [100, 50, 100, 100]
    assert state.tokens == 350


def test_system_messages_at_the_beginning_are_the_preamble() -> None:
    state = conversation(system("a"), system("b"), user("c"), system("d"))
    assert state.preamble == 2
    assert state.first_message_id == "m2"


def test_a_label_is_remembered() -> None:
    assert fold([ConversationLabelled(label="x")]).label == "x"


@pytest.fixture(scope="module")
def long() -> tuple[Conversation, list[int]]:
    """20,000 messages folded one by one, and the number of live facts after each."""
    state, sizes = Conversation(), list[int]()
    for event in history(*talk(10_000)):
        state = evolve(state, event)
        sizes.append(len(state.live))
    return state, sizes


@pytest.mark.parametrize("position", [5, 4, 0])
def test_recalled_lines_count_with_the_message_that_they_stand_in(position: int) -> None:
    before = fold(history(*talk(3)))
    state = evolve(before, recalled(position))
    sizes = {m.position: m.tokens for m in before.live}
    sizes[position] += 30
    assert {m.position: m.tokens for m in state.live} == sizes
    assert [m.position for m in state.live if m.recalled_at] == [position]
    assert state.live_tokens == before.live_tokens + 30 == sum(sizes.values())


@pytest.mark.parametrize(("position", "thinking"), [(2, 30), (0, 0)])
def test_lines_before_an_answer_end_its_thinking(position: int, thinking: int) -> None:
    """The answer may have been asked for without them, and thinking is valid only after the same messages."""
    answer = appended(1, assistant("x"), thinking_tokens=30)
    state = fold([*history(user("q")), answer, appended(2, user("next"))])
    later = evolve(state, recalled(position))
    assert [m.thinking for m in later.live] == [0, thinking, 0]
    assert later.live_tokens == state.live_tokens + 30 - (30 - thinking)


@pytest.mark.parametrize("before", [[*history(*talk(3)), performed(4)], [*history(*talk(3))]])
def test_recalled_lines_of_a_message_that_is_not_live_change_no_size(before: list[Event]) -> None:
    state = fold(before)
    later = evolve(state, recalled(77 if len(state.live) == state.length else 0))
    assert (later.live, later.live_tokens) == (state.live, state.live_tokens)


def test_the_state_is_bounded_whatever_the_length(long: tuple[Conversation, list[int]]) -> None:
    state, sizes = long
    assert max(sizes) == REMEMBERED
    assert state.length == 20_000
    assert state.older_live == 20_000 - len(state.live)


def test_what_is_only_counted_keeps_its_size(long: tuple[Conversation, list[int]]) -> None:
    state, _ = long
    assert state.older_tokens == 100 * state.older_live
    assert state.tokens == 2_000_000


def test_folding_one_more_does_the_same_work_at_any_length(
    long: tuple[Conversation, list[int]],
) -> None:
    """Counted in calls of Python functions, which no slow machine changes."""
    state, _ = long
    calls_made = [calls_of(c, history(*talk(50), start=c.length)) for c in (Conversation(), state)]
    assert calls_made[1] <= calls_made[0] * 1.2


def calls_of(state: Conversation, events: list[Event]) -> int:
    made = 0

    def count(frame: object, kind: str, argument: object) -> None:
        nonlocal made
        del frame, argument
        made += kind == "call"

    sys.setprofile(count)
    try:
        fold(events, state)
    finally:
        sys.setprofile(None)
    return made


def test_the_preamble_is_remembered_when_old_messages_fade() -> None:
    state = conversation(system("rules"), *talk(REMEMBERED // 2))
    assert state.live[0].role == "system"
    assert state.older_live == REMEMBERED // 4
    assert state.live[1].position == 1 + REMEMBERED // 4


def test_what_is_pinned_is_remembered_with_its_round_when_old_messages_fade() -> None:
    pin = MessagePinned(pin_id="p", position=2, text="", tokens=0)
    first = [*history(user("go"), calls("a"), results("a"), assistant("done")), pin]
    more = history(*talk(REMEMBERED), start=4)
    state = fold([*first, *more])
    assert [m.position for m in state.live[:2]] == [1, 2]
    assert state.older_live + len(state.live) == state.length
    one_by_one = fold(first)
    for event in more:
        one_by_one = evolve(one_by_one, event)
    assert one_by_one == state


def test_what_the_running_turn_was_asked_is_remembered_when_old_messages_fade() -> None:
    rounds = [m for n in range(REMEMBERED) for m in (calls(f"c{n}"), results(f"c{n}"))]
    said = [user("migrate it"), *rounds[:2], user("not the billing tables"), *rounds[2:]]
    events = history(*said)
    state = fold(events)
    assert [m.position for m in state.live[:2]] == [0, 3]
    assert state.older_live + len(state.live) == state.length
    one_by_one = Conversation()
    for event in events:
        one_by_one = evolve(one_by_one, event)
    assert one_by_one == state


def test_a_compaction_covers_what_was_only_counted() -> None:
    before = conversation(*[user("x")] * (REMEMBERED + 1))
    state = evolve(before, performed(REMEMBERED))
    assert (state.older_live, state.older_tokens) == (0, 0)
    assert state.tokens == 150

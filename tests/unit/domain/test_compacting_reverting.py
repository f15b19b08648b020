"""An undone compaction leaves the conversation as if it had not been made, but for thinking."""

from refold.domain.compaction.compacting import revert_compaction
from refold.domain.conversation import Conversation
from refold.domain.cuts.rules import all_cuts
from refold.domain.events import CompactionReverted, Event, ShortenedPart, SummarySuperseded
from refold.domain.events import ToolContentOffloaded as Offloaded
from refold.domain.evolve import REMEMBERED, fold
from refold.testing.given_when_then import given
from tests.support.builders import (
    appended,
    assistant,
    calls,
    history,
    performed,
    results,
    talk,
    user,
)

TALK = history(*talk(6))
FIRST = performed(4)
LATER = history(user("go on"), calls("c1"), results("c1"), start=12)
SECOND = performed(10, "a2", summary_id="s2")


def undo(events: list[Event], summary_version: int) -> list[Event]:
    before = fold(events[: summary_version - 1])

    def decide(state: Conversation) -> tuple[Event, ...]:
        return revert_compaction(state, before, "it lost the point")

    return given(events).when(decide).events


def test_what_was_covered_is_in_the_context_again() -> None:
    events = [*TALK, FIRST, *LATER]
    [event] = undo(events, 13)
    assert isinstance(event, CompactionReverted)
    assert (event.summary_id, event.restored, event.reason) == ("s1", None, "it lost the point")
    state, never = fold([*events, event]), fold([*TALK, *LATER])
    assert [m.position for m in state.live] == [m.position for m in never.live]
    assert state.tokens == never.tokens
    assert state.summary is None
    assert state.live_from == 1


def test_the_summary_before_is_active_again() -> None:
    superseded = SummarySuperseded(summary_id="s1", by="s2")
    events = [*TALK, FIRST, *LATER, SECOND, superseded]
    [event] = undo(events, 17)
    state = fold([*events, event])
    assert state.summary == fold([*TALK, FIRST]).summary
    assert [m.position for m in state.live] == list(range(4, 15))
    assert state.tokens == fold([*TALK, FIRST, *LATER]).tokens


def test_two_are_undone_one_after_the_other() -> None:
    events: list[Event] = [*TALK, FIRST, *LATER, SECOND]
    events += undo(events, 17)
    events += undo(events, 13)
    state = fold(events)
    assert state.summary is None
    assert [m.position for m in state.live] == list(range(15))


def test_a_preview_that_was_decided_before_still_counts() -> None:
    part = ShortenedPart(position=14, call_id="c1", side="result", tokens_freed=60)
    offloaded = Offloaded(parts=(part,), head=10, tail=0)
    events: list[Event] = [*TALK, *LATER, offloaded, *history(*talk(2), start=15), performed(16)]
    [event] = undo(events, 21)
    state = fold([*events, event])
    assert state.tokens == fold(events[:-1]).tokens
    assert [m.offloads for m in state.live if m.position == 14] == [(16,)]


def test_without_a_summary_there_is_nothing_to_undo() -> None:
    assert undo([*TALK], 1) == []


def test_the_same_summary_is_not_made_again_at_once() -> None:
    events = [*TALK, FIRST]
    state = fold([*events, *undo(events, 13)])
    assert (state.setbacks.count, state.setbacks.live_tokens) == (1, state.tokens)


def test_messages_that_are_only_counted_by_then_stay_counted() -> None:
    early = history(*talk(REMEMBERED // 2))
    later = history(*talk(REMEMBERED // 2 + 1), start=REMEMBERED)
    events: list[Event] = [*early, performed(REMEMBERED), *later]
    [event] = undo(events, REMEMBERED + 1)
    state = fold([*events, event])
    assert state.older_live + len(state.live) == state.length
    assert state.tokens == fold([*early, *later]).tokens
    assert min(all_cuts(state)) == state.older_live


def test_thinking_of_messages_that_are_only_counted_is_gone() -> None:
    early = [appended(0, assistant("hm"), 100, thinking_tokens=30)]
    later = history(*[user("x")] * (REMEMBERED + 1), start=1)
    events: list[Event] = [*early, performed(1), *later]
    [event] = undo(events, 2)
    assert fold([*events, event]).tokens == 70 + 100 * len(later)

"""Searching the stream of a conversation finds what reading all of it would find, and reads little."""

from collections.abc import Sequence
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from refold.application.conversation.stream_places import StreamPlaces, places_in
from refold.application.history.explain import explain
from refold.application.ports.conversation_log import LoggedEvent
from refold.domain.events import (
    ConversationLabelled,
    Event,
    EventLost,
    MessageAppended,
    MessagePinned,
)
from tests.support.builders import appended, performed, requested, user
from tests.support.fake_ports import MemoryLog, core_of

SAID = user("a message like any other")
MORE_THAN_NEAR = 700
kinds = st.sampled_from(("said", "said", "labelled", "pinned", "lost", "lost somewhere"))
runs = st.lists(st.tuples(kinds, st.integers(1, 90)), max_size=8)


class CountingLog(MemoryLog):
    """Counts the events that were read."""

    def __init__(self, events: Sequence[Event]) -> None:
        super().__init__()
        self.streams["t"] = list(events)
        self.seen = 0

    def read(self, thread_id: str, first: int, last: int) -> Sequence[LoggedEvent]:
        events = self.streams[thread_id][first - 1 : last]
        self.seen += len(events)
        return [LoggedEvent(0, thread_id, v, "", e) for v, e in enumerate(events, first)]


def message(position: int) -> MessageAppended:
    return appended(position, SAID)


def drawn(moves: Sequence[tuple[str, int]]) -> list[Event]:
    """A history of runs: messages, decisions, and events that were lost."""
    events: list[Event] = []
    length = 0
    for kind, count in moves:
        for _ in range(count):
            match kind:
                case "said":
                    events.append(message(length))
                case "labelled":
                    events.append(ConversationLabelled(label=str(length)))
                case "pinned":
                    events.append(MessagePinned(pin_id=str(length), position=0, text="", tokens=0))
                case "lost":
                    events.append(EventLost(position=length))
                case _:  # A message was lost whose place is told by the next one only.
                    events.append(EventLost())
            length += kind in ("said", "lost", "lost somewhere")
    return events


def places(log: CountingLog) -> StreamPlaces:
    state = log.load("t").state
    return StreamPlaces(partial(log.read, "t"), state.version, state.length)


def places_by_kind(log: CountingLog) -> StreamPlaces:
    state = log.load("t").state
    return places_in(core_of(log), "t", state.version, state.length)


def is_decision(event: Event) -> bool:
    return not isinstance(event, MessageAppended | EventLost)


@given(runs)
def test_each_message_is_found_where_it_is(moves: Sequence[tuple[str, int]]) -> None:
    log = CountingLog(drawn(moves))
    searched = places(log)
    for version, event in enumerate(log.streams["t"], 1):
        if isinstance(event, MessageAppended):
            assert searched.version_of(event.position) == version


@given(runs, st.integers(0, 200))
def test_each_decision_after_a_version_is_found(
    moves: Sequence[tuple[str, int]], after: int
) -> None:
    log = CountingLog(drawn(moves))
    after = min(after, len(log.streams["t"]))
    expected = [v for v, e in enumerate(log.streams["t"], 1) if v > after and is_decision(e)]
    for searched in (places(log), places_by_kind(log)):
        found = [e.version for e in searched.decisions_after(after) if is_decision(e.event)]
        assert found == expected


@given(st.lists(st.integers(0, MORE_THAN_NEAR), max_size=5), st.integers(0, MORE_THAN_NEAR))
def test_decisions_that_lie_far_apart_are_found(ends: list[int], after: int) -> None:
    events: list[Event] = []
    for position in range(MORE_THAN_NEAR):
        events += [ConversationLabelled(label="x")] * ends.count(position) + [message(position)]
    log = CountingLog(events)
    for searched in (places(log), places_by_kind(log)):
        found = [e.version for e in searched.decisions_after(after)]
        assert found == [v for v, e in enumerate(events, 1) if v > after and is_decision(e)]


def test_decisions_are_searched_for_where_their_kinds_are_not_those_expected() -> None:
    events: list[Event] = [message(position) for position in range(MORE_THAN_NEAR)]
    events.insert(MORE_THAN_NEAR // 2, ConversationLabelled(label="x"))
    log = CountingLog(events)
    log.versions_of = lambda *_: []  # type: ignore[method-assign]
    found = [e.version for e in places_by_kind(log).decisions_after(0)]
    assert found == [MORE_THAN_NEAR // 2 + 1]


def test_explaining_the_first_messages_reads_as_little_of_a_long_conversation() -> None:
    def events_read(length: int) -> int:
        said: list[Event] = [message(position) for position in range(length)]
        log = CountingLog([*said, requested(length - 10), performed(length - 10)])
        fates = explain(core_of(log), "t", 0, 10)
        assert {fate.fate for fate in fates} == {"summarised"}
        return log.seen

    short, long = events_read(500), events_read(8_000)
    assert long <= short + 2 * 64  # One more step of a search for each doubling of the length.

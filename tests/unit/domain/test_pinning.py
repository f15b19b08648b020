"""What is pinned is kept: in its place while it is there, in the ledger once it is covered."""

import pytest

from refold.domain.conversation import Conversation
from refold.domain.errors import InvalidMessage, UnknownMessage
from refold.domain.events import (
    Event,
    MessagePinned,
    MessageUnpinned,
    ShortenedPart,
    ToolContentOffloaded,
)
from refold.domain.evolve import fold
from refold.domain.pinning import MOST_PINS, pin, unpin
from refold.domain.value import replace
from refold.testing.given_when_then import given
from tests.support.builders import (
    appended,
    assistant,
    calls,
    history,
    performed,
    results,
    talk,
    thinking,
    user,
)

TALK = history(*talk(6))
COMPACTED = [*TALK, performed(8)]


def pinned(pin_id: str = "p1", **more: object) -> MessagePinned:
    fields = {"pin_id": pin_id, "position": None, "text": "never on Fridays", "tokens": 7}
    return MessagePinned.model_validate({**fields, **more})


def pin_text(state: Conversation) -> tuple[MessagePinned, ...]:
    return pin(state, "p1", position=None, text="never on Fridays", tokens=7)


def test_a_text_of_its_own_stands_in_the_ledger() -> None:
    given(TALK).when(pin_text).then(pinned())


def test_a_message_in_the_context_stays_where_it_is() -> None:
    def decide(state: Conversation) -> tuple[Event, ...]:
        return pin(state, "p1", position=3, text="answer 1", tokens=7)

    given(TALK).when(decide).then(pinned(position=3, text="", tokens=0))
    state = fold([*TALK, pinned(position=3, text="", tokens=0)])
    assert state.pinned_positions == {3}
    assert state.tokens == fold(TALK).tokens


def test_of_a_covered_message_the_words_stand_in_the_ledger() -> None:
    def decide(state: Conversation) -> tuple[Event, ...]:
        return pin(state, "p1", position=3, text="answer 1", tokens=7)

    event = pinned(position=3, text="answer 1")
    given(COMPACTED).when(decide).then(event)
    assert fold([*COMPACTED, event]).pinned_positions == frozenset()
    assert fold([*COMPACTED, event]).tokens == fold(COMPACTED).tokens + 7


def test_of_a_shortened_message_the_words_stand_in_the_ledger() -> None:
    rounds = history(*talk(1), calls("c1"), results("c1"))
    part = ShortenedPart(position=3, call_id="c1", side="result", tokens_freed=60)
    shortened = ToolContentOffloaded(parts=(part,), head=10, tail=0)

    def decide(state: Conversation) -> tuple[Event, ...]:
        return pin(state, "p1", position=3, text="ok", tokens=7)

    given([*rounds, shortened]).when(decide).then(pinned(position=3, text="ok"))


def test_a_message_is_pinned_once() -> None:
    def decide(state: Conversation) -> tuple[Event, ...]:
        return pin(state, "p2", position=3, text="answer 1", tokens=7)

    given([*TALK, pinned(position=3, text="", tokens=0)]).when(decide).then()


@pytest.mark.parametrize("position", [-1, 12])
def test_a_position_without_a_message_is_refused(position: int) -> None:
    def decide(state: Conversation) -> tuple[Event, ...]:
        return pin(state, "p1", position=position, text="x", tokens=1)

    error = given(TALK).when(decide).then_raises(UnknownMessage)
    assert "positions 0 to 11" in str(error)


def test_words_that_are_none_are_refused() -> None:
    def blank(state: Conversation) -> tuple[Event, ...]:
        return pin(state, "p1", position=None, text=" \n", tokens=1)

    def silent(state: Conversation) -> tuple[Event, ...]:
        return pin(state, "p1", position=3, text="", tokens=1)

    assert given(TALK).when(blank).then_raises(InvalidMessage).field == "text"
    assert given(COMPACTED).when(silent).then_raises(InvalidMessage).field == "position"


def test_there_is_an_end_to_pinning() -> None:
    many = [pinned(f"p{n}", text=f"rule {n}") for n in range(MOST_PINS)]

    def decide(state: Conversation) -> tuple[Event, ...]:
        return pin(state, "one more", position=None, text="x", tokens=1)

    assert "unpin one first" in str(given([*TALK, *many]).when(decide).then_raises(InvalidMessage))


def test_a_pin_is_taken_back_once() -> None:
    def decide(state: Conversation) -> tuple[Event, ...]:
        return unpin(state, "p1")

    given([*TALK, pinned()]).when(decide).then(MessageUnpinned(pin_id="p1"))
    given([*TALK, pinned(), MessageUnpinned(pin_id="p1")]).when(decide).then()


def test_a_line_more_or_less_in_the_ledger_costs_the_thinking_behind_it() -> None:
    answer = replace(appended(1, assistant(thinking("hm"), "so")), thinking_tokens=40)
    thoughtful = [*history(user("why?")), answer]
    assert fold(thoughtful).live[1].thinking == 40
    assert fold([*thoughtful, pinned()]).live[1].thinking == 0
    assert fold([*thoughtful, pinned(position=0, text="", tokens=0)]).live[1].thinking == 40

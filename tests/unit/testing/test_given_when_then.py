"""``given(…).when(…).then(…)`` says what a decider does wrong."""

from collections.abc import Callable
from typing import Any

import pytest

from refold import InvalidSetting, KeyReused
from refold.domain.conversation import Conversation
from refold.domain.events import ConversationLabelled
from refold.domain.pinning import label_conversation
from refold.testing.given_when_then import given

TUESDAY, MONDAY = ConversationLabelled(label="Tuesday"), ConversationLabelled(label="Monday")
COUNT = [0]


def right(state: Conversation) -> Any:
    return label_conversation(state, "Tuesday")


def nothing(state: Conversation) -> Any:
    return []


def another(state: Conversation) -> Any:
    return [MONDAY]


def twice(state: Conversation) -> Any:
    return [TUESDAY, TUESDAY]


def too_many(state: Conversation) -> Any:
    return [TUESDAY, MONDAY]


def turned(state: Conversation) -> Any:
    return [MONDAY, TUESDAY]


def alone(state: Conversation) -> Any:
    return TUESDAY


def lazy(state: Conversation) -> Any:
    return (event for event in [TUESDAY])


def names(state: Conversation) -> Any:
    return ["Tuesday"]


def changing(state: Conversation) -> Any:
    COUNT[0] += 1
    return [ConversationLabelled(label=f"Tuesday {COUNT[0]}")]


def first_time_alone(state: Conversation) -> Any:
    COUNT[0] += 1
    return [TUESDAY] * (COUNT[0] % 2)


@pytest.mark.parametrize(
    "decide",
    [nothing, another, twice, too_many, turned, alone, lazy, names, changing, first_time_alone],
)
def test_a_decider_that_is_wrong_is_found(decide: Callable[[Conversation], Any]) -> None:
    COUNT[0] = 0
    with pytest.raises(AssertionError, match=r"expected|decided"):
        given().when(decide).then(TUESDAY)


def test_a_decider_that_is_right_passes() -> None:
    given().when(right).then(TUESDAY)
    given([TUESDAY]).when(right).then_nothing()
    error = given().when(lambda c: label_conversation(c, " ")).then_raises(InvalidSetting)
    assert error.setting == "label"


def test_what_should_be_refused_and_is_not_is_found() -> None:
    with pytest.raises(AssertionError, match="expected InvalidSetting"):
        given().when(right).then_raises(InvalidSetting)
    with pytest.raises(InvalidSetting):
        given().when(lambda c: label_conversation(c, " ")).then_raises(KeyReused)
    with pytest.raises(InvalidSetting):
        given().when(lambda c: label_conversation(c, " ")).then_nothing()
    with pytest.raises(AssertionError):
        given().when(right).then_nothing()


def test_a_difference_is_told_event_by_event() -> None:
    with pytest.raises(AssertionError) as told:
        given().when(another).then(TUESDAY)
    assert "- ConversationLabelled(label='Tuesday')" in str(told.value)
    assert "+ ConversationLabelled(label='Monday')" in str(told.value)

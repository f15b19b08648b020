"""Which requests of the running turn stay word for word."""

from refold.domain.messages import Message
from refold.domain.requests import open_requests, protected_requests
from tests.support.builders import (
    assistant,
    calls,
    conversation,
    results,
    talk,
    text,
    tool_result,
    tool_use,
    user,
)


def positions(*messages: Message) -> list[int]:
    state = conversation(*messages)
    return [m.position for m in open_requests(state)]


def test_what_the_user_said_since_the_model_ended_its_turn_is_open() -> None:
    assert positions(*talk(2), user("a"), calls("x"), results("x"), user("b")) == [4, 7]


def test_words_beside_a_tool_call_end_no_turn() -> None:
    working = assistant(text("on it"), tool_use("x"))
    assert positions(user("a"), working, results("x")) == [0]


def test_an_answer_in_words_ends_the_turn() -> None:
    assert positions(*talk(1)) == []


def test_results_are_no_requests_even_with_words_beside_them() -> None:
    mixed = user(tool_result("x"), text("here you are"))
    assert positions(user("a"), calls("x"), mixed) == [0]


def test_white_space_is_no_request() -> None:
    assert positions(user("a"), user("  ")) == [0]


def test_only_requests_before_the_cut_are_named() -> None:
    state = conversation(user("a"), calls("x"), results("x"), user("b"))
    assert protected_requests(state, 2, 1_000) == {0}
    assert protected_requests(state, 4, 1_000) == {0, 3}
    assert protected_requests(state, 0, 1_000) == frozenset()


def test_the_newest_request_stays_whatever_its_size() -> None:
    state = conversation(user("a"), user("b"), tokens=5_000)
    assert protected_requests(state, 2, 100) == {1}


def test_then_the_first_and_then_the_newer_ones_stay_within_the_allowance() -> None:
    state = conversation(*[user(str(i)) for i in range(6)])
    assert protected_requests(state, 6, 200) == {0, 5}
    assert protected_requests(state, 6, 300) == {0, 4, 5}
    assert protected_requests(state, 6, 600) == {0, 1, 2, 3, 4, 5}

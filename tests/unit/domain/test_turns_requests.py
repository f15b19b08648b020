"""Which requests of the running turn stay word for word."""

from refold.domain.events import MessagePinned
from refold.domain.evolve import fold
from refold.domain.messages import Message
from refold.domain.turns import open_requests, protected_requests
from tests.support.builders import (
    appended,
    assistant,
    calls,
    conversation,
    history,
    results,
    talk,
    text,
    tool_result,
    tool_use,
    user,
)


def positions(*messages: Message) -> list[int]:
    state = conversation(*messages)
    return [m.position for request in open_requests(state) for m in request]


def test_what_the_user_said_since_the_model_ended_its_turn_is_open() -> None:
    assert positions(*talk(2), user("a"), calls("x"), results("x"), user("b")) == [4, 7]


def test_words_beside_a_tool_call_end_no_turn() -> None:
    working = assistant(text("on it"), tool_use("x"))
    assert positions(user("a"), working, results("x")) == [0]


def test_an_answer_in_words_ends_the_turn() -> None:
    assert positions(*talk(1)) == []


def test_results_are_no_requests() -> None:
    assert positions(user("a"), calls("x"), results("x")) == [0]


def test_words_beside_results_are_a_request_and_keep_their_whole_round() -> None:
    stop = user(tool_result("x"), text("stop, not the database"))
    round_ = (calls("x", "y"), stop, results("y"))
    assert positions(user("a"), calls("w"), results("w"), *round_, calls("z"), results("z")) == [
        0,
        3,
        4,
        5,
    ]


def test_words_alone_are_kept_before_words_that_keep_a_round() -> None:
    mixed = (calls("x"), user(tool_result("x"), text("b")))
    state = conversation(user("a"), user("c"), *mixed, user("d"), calls("y"), results("y"))
    assert protected_requests(state, 300) == {0, 1, 4}
    assert protected_requests(state, 500) == {0, 1, 2, 3, 4}


def test_white_space_is_no_request() -> None:
    assert positions(user("a"), user("  ")) == [0]


def test_the_newest_request_stays_whatever_its_size() -> None:
    state = conversation(user("a"), user("b"), tokens=5_000)
    assert protected_requests(state, 100) == {1}


def test_then_the_first_and_then_the_newer_ones_stay_within_the_allowance() -> None:
    state = conversation(*[user(str(i)) for i in range(6)])
    assert protected_requests(state, 200) == {0, 5}
    assert protected_requests(state, 300) == {0, 4, 5}
    assert protected_requests(state, 600) == {0, 1, 2, 3, 4, 5}


def test_a_round_that_stays_has_all_parts_of_its_response() -> None:
    stop = user(tool_result("x"), text("stop"))
    paused = appended(1, assistant("searching"), stop_reason="pause_turn")
    rest = [calls("x"), stop, calls("y"), results("y")]
    state = fold([appended(0, user("a")), paused, *history(*rest, start=2)])
    assert [[m.position for m in request] for request in open_requests(state)] == [[0], [1, 2, 3]]


def test_pinned_requests_take_nothing_from_the_others() -> None:
    pin = MessagePinned(pin_id="p", position=0, text="", tokens=0)
    state = fold([*history(*[user(str(i)) for i in range(4)]), pin])
    assert protected_requests(state, 200) == {1, 3}

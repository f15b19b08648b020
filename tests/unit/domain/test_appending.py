"""What a live agent may append, and what a recording may hold."""

import pytest

from refold.domain.appending import append_messages
from refold.domain.errors import UnknownToolCall
from refold.domain.messages import Message
from refold.testing.given_when_then import given
from tests.support.builders import (
    appended,
    assistant,
    calls,
    history,
    incoming,
    results,
    system,
    text,
    thinking,
    tool_result,
    user,
)


def test_messages_get_the_next_positions_in_order() -> None:
    new = [incoming(user("a"), "m2"), incoming(assistant("b"), "m3")]
    given(history(user("hello"), assistant("hi"))).when(lambda c: append_messages(c, new)).then(
        appended(2, user("a")), appended(3, assistant("b"))
    )


def test_appending_nothing_is_no_event() -> None:
    given().when(lambda c: append_messages(c, [])).then()


def test_what_is_known_of_a_message_is_in_its_event() -> None:
    item = incoming(user("a"), "m0")._replace(
        key="k",
        model="claude",
        stop_reason="end_turn",
        thinking_tokens=3,
    )
    given().when(lambda c: append_messages(c, [item])).then(
        appended(0, user("a"), key="k", model="claude", stop_reason="end_turn", thinking_tokens=3)
    )


def test_a_result_answers_an_open_call() -> None:
    given(history(user("go"), calls("a"))).when(
        lambda c: append_messages(c, [incoming(results("a"), "m2")])
    ).then(appended(2, results("a")))


def test_parallel_calls_are_answered_in_several_messages() -> None:
    split = [incoming(results("b"), "m2"), incoming(results("a"), "m3")]
    given(history(user("go"), calls("a", "b"))).when(lambda c: append_messages(c, split)).then(
        appended(2, results("b")), appended(3, results("a"))
    )


def test_call_and_result_may_come_in_one_append() -> None:
    both = [incoming(calls("a"), "m0"), incoming(results("a"), "m1")]
    given().when(lambda c: append_messages(c, both)).then(
        appended(0, calls("a")), appended(1, results("a"))
    )


def test_a_result_without_a_call_is_refused_and_the_open_calls_are_named() -> None:
    error = (
        given(history(user("go"), calls("a")))
        .when(lambda c: append_messages(c, [incoming(results("b"))]))
        .then_raises(UnknownToolCall)
    )
    assert error.call_id == "b"
    assert error.field == "messages[0].content"
    assert "['a']" in str(error)


def test_a_call_is_answered_once() -> None:
    given(history(calls("a"), results("a"))).when(
        lambda c: append_messages(c, [incoming(results("a"))])
    ).then_raises(UnknownToolCall)


def test_two_results_for_one_call_in_one_message_are_refused() -> None:
    given(history(calls("a"))).when(
        lambda c: append_messages(c, [incoming(results("a", "a"))])
    ).then_raises(UnknownToolCall)


def test_a_result_is_too_late_when_the_model_has_spoken_again() -> None:
    error = (
        given(history(calls("a"), assistant("never mind")))
        .when(lambda c: append_messages(c, [incoming(results("a"))]))
        .then_raises(UnknownToolCall)
    )
    assert "a call is open until the assistant's next message" in str(error)
    assert "append a late result as text" in str(error)


def test_words_of_the_user_do_not_close_a_call() -> None:
    given(history(calls("a"), user("wait"))).when(
        lambda c: append_messages(c, [incoming(results("a"), "m2")])
    ).then(appended(2, results("a")))


def test_nothing_is_appended_when_a_later_message_is_refused() -> None:
    items = [incoming(user("fine"), "m0"), incoming(results("b"), "m1")]
    error = given().when(lambda c: append_messages(c, items)).then_raises(UnknownToolCall)
    assert error.field == "messages[1].content"


@pytest.mark.parametrize("odd", [results("b"), results("a", "a")])
def test_recorded_history_is_kept_as_it_came(odd: Message) -> None:
    given(history(user("go"), calls("a"))).when(
        lambda c: append_messages(c, [incoming(odd, "m2")], recorded=True)
    ).then(appended(2, odd))


def test_thinking_and_system_text_leave_a_call_open() -> None:
    started = history(assistant(thinking(), text("let me see"), *calls("a").blocks()), system("s"))
    given(started).when(
        lambda c: append_messages(c, [incoming(user(tool_result("a")), "m2")])
    ).then(appended(2, user(tool_result("a"))))


def test_the_first_message_with_an_owner_says_whose_the_conversation_is() -> None:
    new = [incoming(user("a"), "m0"), incoming(assistant("b"), "m1")]
    given().when(lambda c: append_messages(c, new, owner="user-7")).then(
        appended(0, user("a"), conversation_owner="user-7"), appended(1, assistant("b"))
    )


def test_it_is_said_once() -> None:
    begun = [appended(0, user("a"), conversation_owner="user-7")]
    given(begun).when(
        lambda c: append_messages(c, [incoming(user("b"), "m1")], owner="user-7")
    ).then(appended(1, user("b")))


def test_a_message_of_somebody_else_names_its_owner() -> None:
    new = [
        incoming(user("a"), "m0")._replace(owner="user-7"),
        incoming(user("b"), "m1")._replace(owner="user-8"),
    ]
    given().when(lambda c: append_messages(c, new, owner="user-7")).then(
        appended(0, user("a"), conversation_owner="user-7"), appended(1, user("b"), owner="user-8")
    )


def test_without_an_owner_nothing_is_said_of_one() -> None:
    given(history(user("a"))).when(lambda c: append_messages(c, [incoming(user("b"), "m1")])).then(
        appended(1, user("b"))
    )

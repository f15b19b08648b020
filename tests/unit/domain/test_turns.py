"""Where turns begin and end."""

from refold.domain.evolve import REMEMBERED, fold
from refold.domain.messages import Message
from refold.domain.turns import (
    open_requests,
    running_turn,
    turn_beginnings,
)
from tests.support.builders import (
    appended,
    assistant,
    calls,
    conversation,
    coverage,
    history,
    performed,
    results,
    system,
    talk,
    text,
    tool_result,
    tool_use,
    user,
)


def beginnings(*messages: Message) -> tuple[int, ...]:
    return turn_beginnings(conversation(*messages))


def test_a_turn_begins_where_the_user_speaks_after_an_answer() -> None:
    assert beginnings(*talk(3)) == (0, 2, 4)


def test_words_in_a_running_turn_begin_none() -> None:
    stop = user(tool_result("a"), text("not the database"))
    assert beginnings(user("go"), calls("a"), stop, user("and"), assistant("so"), user("x")) == (
        0,
        5,
    )


def test_what_is_said_while_tools_run_begins_its_turn_with_their_call() -> None:
    """A summary of the turn's beginning gets the call with its results (invariant 1)."""
    both = [calls("a", "b"), results("a"), user("hurry"), results("b")]
    assert beginnings(*talk(1), *both) == (0, 2)
    assert beginnings(*talk(1), calls("a"), results("a"), user("well?")) == (0, 4)


def test_words_beside_a_call_end_no_turn() -> None:
    assert beginnings(user("go"), assistant(text("on it"), tool_use("a")), user("hm")) == (0,)


def test_what_the_system_or_the_model_says_after_an_answer_begins_no_turn() -> None:
    assert beginnings(*talk(1), system("note"), assistant("and"), user(" "), user("x")) == (0, 5)


def test_a_paused_response_ends_no_turn() -> None:
    paused = appended(1, assistant("searching"), stop_reason="pause_turn")
    state = fold([appended(0, user("go")), paused, appended(2, user("well?"))])
    assert turn_beginnings(state) == (0,)
    assert [m.position for m in running_turn(state)] == [0, 1, 2]
    assert [m.position for request in open_requests(state) for m in request] == [0, 2]


def test_the_preamble_is_no_turn() -> None:
    assert beginnings(system("rules"), *talk(2)) == (1, 3)


def test_of_a_turn_that_is_covered_in_part_the_rest_begins_where_the_coverage_ends() -> None:
    turn = [user("go"), calls("a"), results("a"), calls("b"), results("b"), assistant("done")]
    covered = performed(3, coverage=coverage(3, exclusions=(0,)))
    state = fold([*history(*turn), covered, *history(*talk(2), start=6)])
    assert turn_beginnings(state) == (3, 6, 8)


def test_where_old_messages_are_only_counted_a_turn_begins_with_the_first_remembered() -> None:
    state = conversation(*[calls("a"), results("a")] * (REMEMBERED // 2 + 1))
    assert turn_beginnings(state) == (state.live[0].position,)


def test_there_are_no_turns_in_an_empty_conversation() -> None:
    assert beginnings() == ()
    assert running_turn(conversation()) == ()

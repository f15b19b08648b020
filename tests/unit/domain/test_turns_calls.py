"""Which tool calls may still be answered."""

from refold.domain.evolve import fold
from refold.domain.turns import open_calls, pending_position
from tests.support.builders import (
    assistant,
    calls,
    conversation,
    coverage,
    history,
    performed,
    results,
    user,
)


def test_calls_of_the_last_response_without_a_result_are_open() -> None:
    state = conversation(user("go"), calls("a", "b"), results("b"), user("hm"))
    assert open_calls(state) == ("a",)
    assert pending_position(state) == 1


def test_a_call_is_given_up_when_the_model_speaks_again() -> None:
    state = conversation(user("go"), calls("a"), user("stop"), assistant("yes"))
    assert open_calls(state) == ()
    assert pending_position(state) is None


def test_what_stands_before_the_end_of_the_summary_waits_no_more() -> None:
    """The call stayed in its place; the later words of the model are covered."""
    said = [user("go"), calls("a"), user("stop"), assistant("yes"), user("well?")]
    covered = performed(4, coverage=coverage(4, exclusions=(1,)))
    state = fold([*history(*said), covered])
    assert open_calls(state) == ()
    assert pending_position(state) is None

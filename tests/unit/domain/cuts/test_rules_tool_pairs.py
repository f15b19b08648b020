"""A call and its results stay together."""

from refold.domain.cuts.rules import TOOL_PAIRS
from refold.domain.evolve import REMEMBERED
from tests.support.builders import assistant, calls, conversation, results, user


def test_the_cut_between_call_and_result_is_forbidden() -> None:
    assert TOOL_PAIRS.legal(conversation(user("go"), calls("a"), results("a"))) == {0, 1, 3}


def test_parallel_calls_hold_all_their_results() -> None:
    state = conversation(user("go"), calls("a", "b"), results("b"), user("hm"), results("a"))
    assert TOOL_PAIRS.legal(state) == {0, 1, 5}


def test_a_call_that_was_never_answered_blocks_nothing() -> None:
    state = conversation(user("go"), calls("a"), user("stop"), assistant("yes"))
    assert TOOL_PAIRS.legal(state) == {0, 1, 2, 3, 4}


def test_a_result_after_the_next_words_of_the_model_is_no_pair() -> None:
    state = conversation(calls("a"), assistant("on"), results("a"))
    assert TOOL_PAIRS.legal(state) == {0, 1, 2, 3}


def test_equal_ids_in_two_rounds_pair_within_their_round() -> None:
    state = conversation(calls("a"), results("a"), calls("a"), results("a"))
    assert TOOL_PAIRS.legal(state) == {0, 2, 4}


def test_results_of_a_call_that_is_only_counted_stay_together() -> None:
    faded = REMEMBERED // 4
    said = [*[user("x")] * (faded - 1), calls("a", "b"), results("a"), results("b")]
    state = conversation(*said, *[assistant("on")] * (REMEMBERED - faded - 1))
    assert state.live[0].results == ("a",)
    assert not {faded, faded + 1} & TOOL_PAIRS.legal(state)
    assert faded + 2 in TOOL_PAIRS.legal(state)

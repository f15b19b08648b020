"""A call that waits is never covered."""

from refold.domain.cuts.rules import PENDING_CALLS
from tests.support.builders import assistant, calls, conversation, results, user


def test_no_cut_beyond_a_call_that_waits() -> None:
    assert PENDING_CALLS.legal(conversation(user("go"), calls("a"))) == {0, 1}


def test_one_result_of_two_is_still_waiting() -> None:
    assert PENDING_CALLS.legal(conversation(user("go"), calls("a", "b"), results("a"))) == {0, 1}


def test_answered_calls_block_nothing() -> None:
    assert PENDING_CALLS.legal(conversation(user("go"), calls("a"), results("a"))) == {0, 1, 2, 3}


def test_a_call_that_can_never_be_answered_blocks_nothing() -> None:
    state = conversation(user("go"), calls("a"), user("stop"), assistant("yes"))
    assert PENDING_CALLS.legal(state) == {0, 1, 2, 3, 4}

"""What the model has not answered is never covered."""

from refold.domain.cuts.rules import UNANSWERED_MESSAGES
from tests.support.builders import assistant, calls, conversation, results, user


def test_no_cut_beyond_the_first_unanswered_message() -> None:
    state = conversation(user("a"), assistant("b"), user("c"), user("d"))
    assert UNANSWERED_MESSAGES.legal(state) == {0, 1, 2}


def test_unanswered_results_count_as_well() -> None:
    assert UNANSWERED_MESSAGES.legal(conversation(user("a"), calls("x"), results("x"))) == {0, 1, 2}


def test_nothing_is_unanswered_when_the_model_spoke_last() -> None:
    assert UNANSWERED_MESSAGES.legal(conversation(user("a"), assistant("b"))) == {0, 1, 2}


def test_a_conversation_without_the_model_has_no_cut_but_its_beginning() -> None:
    assert UNANSWERED_MESSAGES.legal(conversation(user("a"), user("b"))) == {0}

"""One response of the model shares one fate."""

from refold.domain.cuts.rules import MODEL_RESPONSE
from refold.domain.evolve import fold
from tests.support.builders import appended, assistant, conversation, user


def test_a_paused_response_is_not_divided_from_its_continuation() -> None:
    state = fold(
        [
            appended(0, user("search")),
            appended(1, assistant("one"), stop_reason="pause_turn"),
            appended(2, assistant("two"), stop_reason="pause_turn"),
            appended(3, assistant("three")),
        ]
    )
    assert MODEL_RESPONSE.legal(state) == {0, 1, 4}


def test_two_responses_may_be_divided() -> None:
    assert MODEL_RESPONSE.legal(conversation(assistant("one"), assistant("two"))) == {0, 1, 2}


def test_words_of_the_user_end_a_pause() -> None:
    paused = appended(0, assistant("one"), stop_reason="pause_turn")
    assert MODEL_RESPONSE.legal(fold([paused, appended(1, user("so?"))])) == {0, 1, 2}

"""What belongs together: a response of the model and the results of its calls."""

from refold.domain.evolve import fold
from refold.domain.turns import add_companions, companions, rounds
from tests.support.builders import appended, assistant, calls, conversation, results, user


def test_messages_are_parted_before_each_response() -> None:
    state = conversation(user("a"), assistant("b"), user("c"), user("d"), calls("x"), results("x"))
    found = [
        ([m.position for m in r.response], [m.position for m in r.replies])
        for r in rounds(state.live)
    ]
    assert found == [([], [0]), ([1], [2, 3]), ([4], [5])]


def test_a_paused_response_is_one_with_what_comes_after_it() -> None:
    parts = [assistant("one"), assistant("two"), calls("x"), results("x")]
    paused = [appended(i, m, stop_reason="pause_turn") for i, m in enumerate(parts[:2])]
    state = fold([*paused, *(appended(i + 2, m) for i, m in enumerate(parts[2:]))])
    assert [len(r.response) for r in rounds(state.live)] == [3]
    together = companions(state.live)
    assert all([m.position for m in together[p]] == [0, 1, 2, 3] for p in range(4))


def test_words_of_the_user_end_a_pause() -> None:
    paused = appended(0, assistant("one"), stop_reason="pause_turn")
    state = fold([paused, appended(1, user("so?")), appended(2, assistant("two"))])
    assert companions(state.live) == {}


def test_only_results_of_the_calls_just_before_belong_to_a_round() -> None:
    messages = [calls("a"), results("z"), assistant("on"), results("a")]
    assert companions(conversation(*messages).live) == {}


def test_a_message_brings_its_round_along() -> None:
    state = conversation(user("go"), calls("a"), results("a"), assistant("done"))
    assert add_companions(state.live, frozenset({0, 2})) == {0, 1, 2}
    assert add_companions(state.live, frozenset({3, 9})) == {3}

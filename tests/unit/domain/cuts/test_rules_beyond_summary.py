"""Coverage only grows."""

from refold.domain.cuts.rules import BEYOND_SUMMARY
from refold.domain.events import MessagePinned, MessageUnpinned
from refold.domain.evolve import REMEMBERED, fold
from tests.support.builders import conversation, coverage, history, performed, system, talk


def test_something_must_lie_before_the_cut() -> None:
    assert BEYOND_SUMMARY.legal(conversation(*talk(2))) == {1, 2, 3, 4}


def test_an_empty_conversation_has_no_cut() -> None:
    assert BEYOND_SUMMARY.legal(conversation()) == frozenset()


def test_the_preamble_alone_is_nothing_to_cover() -> None:
    assert BEYOND_SUMMARY.legal(conversation(system("s"), *talk(1))) == {2, 3}


def test_nothing_before_the_end_of_the_summary_is_a_cut() -> None:
    state = fold([*history(*talk(3)), performed(4)])
    assert BEYOND_SUMMARY.legal(state) == {5, 6}


def test_a_kept_request_inside_the_covered_part_makes_its_end_a_cut_again() -> None:
    kept = performed(4, coverage=coverage(4, exclusions=(0,)))
    assert BEYOND_SUMMARY.legal(fold([*history(*talk(3)), kept])) == {4, 5, 6}


def test_messages_that_are_only_counted_are_covered_with_one_that_is_remembered() -> None:
    state = fold(history(*talk(REMEMBERED // 2 + 1)))
    assert state.older_live > 0
    assert min(BEYOND_SUMMARY.legal(state)) == state.live[1].position


def test_between_two_messages_kept_inside_the_covered_part_is_no_cut() -> None:
    kept = performed(4, coverage=coverage(4, exclusions=(0, 2)))
    assert BEYOND_SUMMARY.legal(fold([*history(*talk(3)), kept])) == {4, 5, 6}


def test_before_messages_that_are_only_counted_is_no_cut() -> None:
    pins = [MessagePinned(pin_id=f"p{n}", position=n, text="", tokens=0) for n in (1, 4)]
    unpins = [MessageUnpinned(pin_id=pin.pin_id) for pin in pins]
    said = talk(REMEMBERED // 2 + 2)
    state = fold([*history(*said[:5]), *pins, *history(*said[5:], start=5), *unpins])
    assert [m.position for m in state.live[:2]] == [1, 4]
    assert min(BEYOND_SUMMARY.legal(state)) == state.live[2].position

"""The newest message stays."""

from refold.domain.cuts.rules import NEWEST_MESSAGE
from tests.support.builders import conversation, talk


def test_the_end_is_no_cut() -> None:
    assert NEWEST_MESSAGE.legal(conversation(*talk(2))) == {0, 1, 2, 3}


def test_an_empty_conversation_has_no_cut() -> None:
    assert NEWEST_MESSAGE.legal(conversation()) == frozenset()

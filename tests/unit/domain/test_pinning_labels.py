"""A conversation gets a name for people."""

import pytest

from refold.domain.errors import InvalidSetting
from refold.domain.events import ConversationLabelled
from refold.domain.pinning import LONGEST_LABEL, label_conversation, label_from_recording
from refold.testing.given_when_then import given


def test_a_label_is_one_line_without_space_around_it() -> None:
    given().when(lambda c: label_conversation(c, "  the \n parser ")).then(
        ConversationLabelled(label="the parser")
    )


def test_a_long_label_is_cut() -> None:
    [event] = given().when(lambda c: label_conversation(c, "x" * 999)).events
    assert event == ConversationLabelled(label="x" * LONGEST_LABEL)


def test_the_same_label_again_is_nothing() -> None:
    before = [ConversationLabelled(label="the parser")]
    given(before).when(lambda c: label_conversation(c, "the parser")).then()


@pytest.mark.parametrize("blank", ["", " \n "])
def test_a_blank_label_is_refused_unless_a_recording_has_it(blank: str) -> None:
    refused = given().when(lambda c: label_conversation(c, blank)).then_raises(InvalidSetting)
    assert "at least one visible character" in str(refused)
    assert (refused.setting, refused.value) == ("label", blank)
    given().when(lambda c: label_from_recording(c, blank)).then()

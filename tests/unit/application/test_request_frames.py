"""The newest requests of conversations, and when a frame without content is worth an event."""

from collections.abc import Sequence

from refold.application.frames.request_frames import Frame, NewestRequests
from refold.domain.conversation import Conversation, LiveMessage
from refold.domain.value import replace


def spoken(*positions: int, thinking: Sequence[int] = ()) -> Conversation:
    """A conversation with these live messages, some with thinking."""
    live = tuple(
        LiveMessage(
            position=position,
            version=position + 1,
            message_id=f"m{position}",
            role="assistant",
            tokens=10,
            thinking=5 if position in thinking else 0,
        )
        for position in positions
    )
    return Conversation(live=live, first_message_id="m0", length=positions[-1] + 1)


def asked(state: Conversation) -> NewestRequests:
    requests = NewestRequests()
    requests.expect("t", Frame(), state)
    return requests


def test_a_frame_without_content_is_recorded_once_a_message_thinks() -> None:
    state = spoken(0, 1, 2)
    requests = asked(state)
    assert requests.change("t", state) is None
    assert requests.change("t", spoken(0, 1, 2, 3)) is None
    assert requests.change("t", spoken(0, 1, 2, 3, 4, thinking=[4])) is not None


def test_messages_that_an_undo_brings_back_are_looked_at() -> None:
    state = spoken(5, 6, 7)
    requests = asked(state)
    assert requests.change("t", state) is None
    assert requests.change("t", spoken(2, 5, 6, 7, thinking=[2])) is not None


def test_messages_of_a_conversation_that_began_again_are_looked_at() -> None:
    state = spoken(0, 1, 2, 3)
    requests = asked(state)
    assert requests.change("t", state) is None
    again = replace(spoken(0, 1, 2, 3, thinking=[1]), first_message_id="other")
    assert requests.change("t", again) is not None


def test_a_message_is_looked_at_once() -> None:
    looked: list[int] = []

    class Watched(LiveMessage):
        @property
        def thinking(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
            looked.append(self.position)
            return 0

    state = spoken(0, 1, 2)
    requests = asked(state)
    for length in (3, 4, 5):
        live = [Watched._make(one) for one in spoken(*range(length)).live]
        requests.change("t", replace(state, live=tuple(live)))
    assert looked == [0, 1, 2, 3, 4]

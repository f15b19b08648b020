"""Tool calls of the live part: which are open, which can never be answered any more."""

from .conversation import Conversation
from .facts import LiveMessage


def open_calls(state: Conversation) -> tuple[str, ...]:
    """The calls that a result may still answer: those of the last assistant message without one.

    A call is given up when the model speaks again: a result must follow the turn with its call.
    """
    last, after = _last_round(state)
    if last is None:
        return ()
    answered = {call_id for message in after for call_id in message.results}
    return tuple(call_id for call_id in last.calls if call_id not in answered)


def pending_position(state: Conversation) -> int | None:
    """The position of the assistant message that waits for tool results, if any does."""
    last, _ = _last_round(state)
    return last.position if last is not None and open_calls(state) else None


def _last_round(state: Conversation) -> tuple[LiveMessage | None, tuple[LiveMessage, ...]]:
    # What was said before the end of the summary is there on purpose; the model spoke after it, for
    # no summary covers, or reaches beyond, a call that waits.
    for index in range(len(state.live) - 1, -1, -1):
        if state.live[index].position < state.covered_to:
            break
        if state.live[index].role == "assistant":
            return state.live[index], state.live[index + 1 :]
    return None, ()

"""Turns: from what the user asks until the model has answered in words and calls no tool."""

from collections.abc import Mapping

from .conversation import Conversation
from .facts import LiveMessage
from .rounds import rounds


def running_turn(state: Conversation) -> tuple[LiveMessage, ...]:
    """The live messages since the model last ended a turn."""
    for index in range(len(state.live) - 1, -1, -1):
        if state.live[index].ends_turn:
            return state.live[index + 1 :]
    return state.live


def turn_beginnings(state: Conversation) -> tuple[int, ...]:
    """The positions at which turns begin, among what no summary covers yet.

    A turn begins with a user message that speaks after the model has ended the turn before. The first
    position is that of the first uncovered message that is remembered: a turn whose beginning is
    covered, or only counted, begins there as far as anybody can tell. What is said while tools run
    begins its turn with their call: a call and its results are never parted.
    """
    start, calls = max(state.covered_to, state.preamble), _running_calls(state)
    found: list[int] = []
    ended = False
    for message in state.live:
        if message.position < start:
            continue
        speaks = message.role == "user" and message.speaks
        if not found or (ended and speaks):
            found.append(calls.get(message.position, message.position))
            ended = False
        ended = ended or message.ends_turn
    return tuple(found)


def _running_calls(state: Conversation) -> Mapping[int, int]:
    """For what is said before the last result of a response's calls came: where the response begins."""
    return {
        message.position: done.response[0].position
        for done in rounds(state.live)
        if done.results
        for message in done.replies
        if message.position <= done.results[-1].position
    }

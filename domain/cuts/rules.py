"""The rules of cuts: which cuts are legal, and which messages stay wherever the cut is.

A cut at position p means that messages before p may be covered, and that p and later messages stay. The
planner intersects the legal cuts of ``RULES``. ``KEPT`` has the rules for messages that stay even if they
are before the cut.
"""

from collections.abc import Callable
from typing import NamedTuple

from refold.domain.conversation import Conversation, LiveMessage
from refold.domain.turns import (
    Round,
    add_companions,
    pending_position,
    protected_requests,
    rounds,
)

Cuts = frozenset[int]
Since = Callable[[Conversation], int | None]


def no_message(state: Conversation) -> int | None:
    """Return None, because no single message blocks the cut."""
    del state
    return None


class CutRule(NamedTuple):
    """A reason why some cuts are not legal."""

    name: str
    because: str
    legal: Callable[[Conversation], Cuts]
    since: Since = no_message
    """Function that returns the position of the blocking message if the rule leaves no cut."""


class StayRule(NamedTuple):
    """A reason why messages stay word for word, before or after the cut."""

    name: str
    because: str
    kept: Callable[[Conversation, int], frozenset[int]]
    """Function that returns the positions to keep. Optional ones must fit the given number of tokens."""


def all_cuts(state: Conversation) -> Cuts:
    """Return all positions of live messages, and the end of the conversation.

    Positions before messages that are only counted are left out, because the remaining size is unknown
    there.
    """
    if not state.older_live:
        return frozenset([state.length, *[message.position for message in state.live]])
    cuts = {state.length}
    for message in reversed(state.live):
        if message.position + 1 not in cuts:
            break
        cuts.add(message.position)
    return frozenset(cuts)


def uncovered(state: Conversation) -> tuple[LiveMessage, ...]:
    """Return the remembered messages after the coverage and the preamble."""
    start = max(state.covered_to, state.preamble)
    return tuple(m for m in state.live if m.position >= start)


def _beyond_summary(state: Conversation) -> Cuts:
    positions = (m.position for m in state.live if m.position >= state.preamble)
    first = next(positions, state.length)
    return frozenset(p for p in all_cuts(state) if p >= state.covered_to and p > first)


BEYOND_SUMMARY = CutRule(
    "beyond_summary", "a summary already covers all messages that may be covered", _beyond_summary
)
"""Coverage only grows, and a cut has a remembered message before it."""


def _before_newest(state: Conversation) -> Cuts:
    return frozenset(p for p in all_cuts(state) if p < state.length)


def _newest(state: Conversation) -> int | None:
    return state.length - 1 if state.length else None


NEWEST_MESSAGE = CutRule(
    "newest_message", "the newest message must stay in the context", _before_newest, _newest
)
"""A context with only a summary leaves nothing to answer."""


def _between_rounds(state: Conversation) -> Cuts:
    forbidden: set[int] = set()
    for index, found in enumerate(rounds(state.live)):
        results = found.results
        if index == 0 and not found.response and state.older_live:
            # The call may be among the messages that are only counted.
            results = tuple(m for m in found.replies if m.results)
        if results:
            begin = found.response[-1].position if found.response else -1
            forbidden.update(range(begin + 1, results[-1].position + 1))
    return all_cuts(state) - forbidden


def _newest_answered_call(state: Conversation) -> int | None:
    answered = (r for r in reversed(rounds(state.live)) if r.results)
    return next((_calls_of(r) for r in answered), None)


def _calls_of(found: Round) -> int:
    return found.response[-1].position


TOOL_PAIRS = CutRule(
    "tool_pairs",
    "a tool call may not be separated from its results",
    _between_rounds,
    _newest_answered_call,
)
"""Providers refuse a result without its call, and a call without its result."""


def _up_to_pending(state: Conversation) -> Cuts:
    pending = pending_position(state)
    if pending is None:
        return all_cuts(state)
    return frozenset(p for p in all_cuts(state) if p <= pending)


PENDING_CALLS = CutRule(
    "pending_calls", "tool calls are waiting for their results", _up_to_pending, pending_position
)
"""A call that can no longer be answered blocks nothing: it stops waiting once the model speaks again."""


def _up_to_unanswered(state: Conversation) -> Cuts:
    first = _first_unanswered(state)
    return frozenset(p for p in all_cuts(state) if first is None or p <= first)


def _first_unanswered(state: Conversation) -> int | None:
    first = None
    for message in reversed(uncovered(state)):
        if message.role == "assistant":
            break
        first = message.position
    return first


UNANSWERED_MESSAGES = CutRule(
    "unanswered_messages",
    "the model has not answered these messages yet",
    _up_to_unanswered,
    _first_unanswered,
)
"""Messages since the model's last response stay."""


def _between_responses(state: Conversation) -> Cuts:
    inside = {m.position for r in rounds(state.live) for m in r.response[1:]}
    return all_cuts(state) - inside


def _newest_in_parts(state: Conversation) -> int | None:
    begun = (r.response[0].position for r in reversed(rounds(state.live)) if len(r.response) > 1)
    return next(begun, None)


MODEL_RESPONSE = CutRule(
    "model_response",
    "a response of the model may not be divided",
    _between_responses,
    _newest_in_parts,
)
"""A paused response and its continuation are several messages and stay together."""

RULES: tuple[CutRule, ...] = (
    BEYOND_SUMMARY,
    NEWEST_MESSAGE,
    TOOL_PAIRS,
    PENDING_CALLS,
    UNANSWERED_MESSAGES,
    MODEL_RESPONSE,
)
"""When several rules leave no cut, the first of them is named to the user."""


def _pinned_rounds(state: Conversation, allowance: int) -> frozenset[int]:
    # Pinned messages stay at any size.
    del allowance
    return add_companions(state.live, state.pinned_positions)


PINNED_MESSAGES = StayRule(
    "pinned_messages", "all messages that could be covered are pinned", _pinned_rounds
)
"""A pinned message stays in its position with its response and tool round: a result needs its call."""

OPEN_REQUESTS = StayRule(
    "open_requests",
    "all messages that could be covered are requests still in progress",
    protected_requests,
)
"""The requests of the running turn stay word for word, even before the cut."""

KEPT: tuple[StayRule, ...] = (PINNED_MESSAGES, OPEN_REQUESTS)

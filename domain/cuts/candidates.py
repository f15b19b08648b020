"""What each legal cut would cover and keep, measured in one pass over the live messages."""

from typing import NamedTuple

from refold.domain.conversation import Conversation, LiveMessage
from refold.domain.shortening import shown_after_a_decision
from refold.domain.thinking import stays_from

from .rule import Cuts


class Candidate(NamedTuple):
    """A legal cut that covers something. All sizes are tokens."""

    cut: int
    covered: int
    """Of the messages that no summary covers yet and this one would."""
    messages: int
    """How many these are."""
    newest: int
    """Of the messages at the cut and behind it, as they will be."""
    kept: int
    """Of everything that stays, as it will be: those, what is kept before the cut, pinned and quoted
    texts."""
    last: LiveMessage
    """The last message that it would cover."""


def candidates(state: Conversation, cuts: Cuts, kept: frozenset[int]) -> list[Candidate]:
    """The cuts that cover something while the positions ``kept`` stay, earliest first.

    A later cut never keeps more. What stays is measured without the thinking that no decision leaves.
    """
    found: list[Candidate] = []
    first = stays_from(state)
    newest = sum(shown_after_a_decision(m, first) for m in state.live)
    stays = newest + sum(pin.tokens for pin in state.pins) + state.memories_tokens
    covered, count = state.older_tokens, state.older_live
    last: LiveMessage | None = None
    for message in state.live:
        if last is not None and message.position in cuts:
            found.append(Candidate(message.position, covered, count, newest, stays, last))
        shown = shown_after_a_decision(message, first)
        newest -= shown
        if message.position >= state.preamble and message.position not in kept:
            covered, count, last = covered + message.tokens, count + 1, message
            stays -= shown
    if last is not None and state.length in cuts:
        found.append(Candidate(state.length, covered, count, newest, stays, last))
    return found

"""How long the next summary will be: expected by the last ones of the same summariser."""

from typing import NamedTuple

from .conversation import Conversation
from .events import CompactionPerformed
from .facts import SummaryLength

REMEMBERED = 6
"""Lengths that a conversation remembers."""
LAST = 3
"""So many of the newest of one model are looked at."""


class Expected(NamedTuple):
    """The size of a summary that is still to be written, in tokens."""

    text: int
    beside: int
    """Of all that is rendered with the text."""


def with_length(
    lengths: tuple[SummaryLength, ...], event: CompactionPerformed
) -> tuple[SummaryLength, ...]:
    """Return the lengths with that of a summary that was just made."""
    if not event.text_tokens:  # Of an older refold, which did not measure the text apart.
        return lengths
    beside = max(0, event.tokens - event.text_tokens)
    made = SummaryLength(event.summariser, event.model, event.text_tokens, beside)
    return (*lengths, made)[-REMEMBERED:]


def expected(state: Conversation, summariser: str) -> Expected | None:
    """Return the length of the longest of the last summaries of this summariser's model, if there is one."""
    own = [length for length in state.lengths if length.summariser == summariser]
    last = [length for length in own if length.model == own[-1].model][-LAST:]
    if not last:
        return None
    return Expected(max(one.text for one in last), max(one.beside for one in last))

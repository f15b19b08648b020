"""How long the next summary is expected to be, and when it is rebuilt instead of carried on."""

from typing import NamedTuple

from refold.domain.conversation import ActiveSummary, Conversation, SummaryLength
from refold.domain.events import CompactionPerformed

from .policy import CompactionPolicy

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


def must_rebuild(
    summary: ActiveSummary | None, policy: CompactionPolicy, target_tokens: int
) -> bool:
    """Whether the next summary, of about ``target_tokens``, is made anew and not from the one before.

    After ``rebuild_after`` generations, or once the prose is far longer than what is asked for; only
    where leaves stand for all that is covered, for what no leaf holds would be lost.
    """
    if summary is None or not summary.leaves:
        return False
    is_worn = summary.generation + 1 >= policy.rebuild_after
    return is_worn or summary.text_tokens > _longest(policy, target_tokens)


def _longest(policy: CompactionPolicy, target_tokens: int) -> float:
    if policy.rebuild_over_tokens is not None:
        return policy.rebuild_over_tokens
    return policy.rebuild_over_share * target_tokens

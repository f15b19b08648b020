"""Folds what happens to summaries: compactions that are begun, performed, failed or undone."""

from collections.abc import Iterable

from .conversation import Conversation
from .erasing import ERASED
from .events import CompactionFailed, CompactionPerformed, CompactionRequested, CompactionReverted
from .expecting import with_length
from .facts import ActiveSummary, Attempt, LiveMessage, Setbacks
from .fading import REMEMBERED, fading
from .thinking import behind_new_prefix


def requested(state: Conversation, event: CompactionRequested, version: int) -> Conversation:
    """An attempt is under way."""
    attempt = Attempt(
        attempt_id=event.attempt_id,
        requested_at=event.requested_at,
        coverage=event.coverage,
        supersedes=event.supersedes,
        owner=event.owner,
    )
    return state.replaced(version=version, attempt=attempt)


def compacted(state: Conversation, event: CompactionPerformed, version: int) -> Conversation:
    """A summary stands for what it covers."""
    left = [m for m in state.live if not event.coverage.covers(m.position)]
    state = behind_new_prefix(state, left, older_live=0, older_tokens=0)
    live_tokens = state.live_tokens
    after = [m.version for m in left if m.position >= event.coverage.stop]
    return state.replaced(
        version=version,
        live_from=after[0] if after else version,
        summary=ActiveSummary(
            summary_id=event.summary_id,
            version=version,
            coverage=event.coverage,
            tokens=event.tokens,
            at_length=state.length,
            at_tokens=live_tokens
            + event.tokens
            + sum(pin.tokens for pin in state.pins)
            + state.memories_tokens,
            generation=event.generation,
            text_tokens=event.text_tokens,
            leaves=_leaves(state, event, version),
            effective=event.effective,
        ),
        attempt=None,
        setbacks=Setbacks(),
        lengths=with_length(state.lengths, event),
        compactions=state.compactions + 1,
    )


def remade(state: Conversation, event: CompactionPerformed, version: int) -> Conversation:
    """A summary was made anew in the place of the one before."""
    # In the place of the summary before: what is live stays so, and the guard counts as before.
    before, tokens = state.summary, state.tokens
    state = behind_new_prefix(state, state.live)
    return state.replaced(
        version=version,
        summary=ActiveSummary(
            summary_id=event.summary_id,
            version=version,
            coverage=event.coverage,
            tokens=event.tokens,
            at_length=before.at_length if before else state.length,
            at_tokens=before.at_tokens if before else tokens,
            generation=event.generation,
            text_tokens=event.text_tokens,
            leaves=(version,) if event.leaf else (),
            effective=event.effective,
        ),
        attempt=None,
    )


def failed(state: Conversation, event: CompactionFailed, version: int) -> Conversation:
    """An attempt ended without a summary."""
    if event.reason == ERASED:  # It was stopped for another reason than its own.
        return state.replaced(version=version, attempt=None)
    setbacks = Setbacks(
        count=state.setbacks.count + 1, live_tokens=event.live_tokens, length=state.length
    )
    return state.replaced(version=version, attempt=None, setbacks=setbacks)


def _leaves(state: Conversation, event: CompactionPerformed, version: int) -> tuple[int, ...]:
    # A summary of an older refold has no leaf: what it covers is known from its own text alone.
    before = state.summary.leaves if state.summary else ()
    if event.leaf is None or (state.summary is not None and not before):
        return ()
    if state.summary is not None and state.summary.coverage == event.coverage:
        return (*before[:-1], version)  # The same messages, summarised once more.
    return (*before, version)


def reverted(state: Conversation, event: CompactionReverted, version: int) -> Conversation:
    """What the newest summary covered is live again."""
    back = (*event.messages, *state.live)
    state = behind_new_prefix(
        state,
        sorted(back, key=lambda m: m.position),
        version=version,
        older_live=event.older_live,
        older_tokens=event.older_tokens,
        live_from=event.live_from,
        summary=event.restored,
    )
    # The next compaction by size must not come at once and make the same summary again.
    setbacks = Setbacks(
        count=state.setbacks.count + 1, live_tokens=state.tokens, length=state.length
    )
    state = state.replaced(setbacks=setbacks)
    return _bounded(state) if len(state.live) > REMEMBERED else state


def _bounded(state: Conversation) -> Conversation:
    gone = fading(state.live, state.preamble, state.pinned_positions)
    return state.replaced(
        live=tuple(m for m in state.live if m.position not in gone),
        older_live=state.older_live + len(gone),
        older_tokens=state.older_tokens + size(state.live, gone),
    )


def size(live: Iterable[LiveMessage], positions: frozenset[int]) -> int:
    """The tokens of some of these messages."""
    return sum(message.tokens for message in live if message.position in positions)

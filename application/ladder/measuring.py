"""How large the next request of a conversation would be."""

from typing import NamedTuple

from refold.application.core import Core
from refold.application.loaded import LoadedConversation
from refold.application.projections.entries import LongEntries
from refold.application.rendering.render import render
from refold.domain.budget import Budget


class Measured(NamedTuple):
    """A conversation with the size of its request."""

    loaded: LoadedConversation
    size: int
    """Of the whole request, system text and tools included."""
    budget: Budget
    """For decisions, which know the size of the conversation alone."""
    plain: Budget
    """As it was given."""
    bytes: int = 0
    """Of the whole request as JSON; 0 where it is not rendered, for it does not fit."""


def measured(core: Core, thread_id: str, budget: Budget) -> Measured:
    """Measure the newest version, with the frame of the newest request."""
    return measured_as(core, core.asked.framed(core.log.load(thread_id)), budget)


def is_out_of_sight(loaded: LoadedConversation, budget: Budget) -> bool:
    """Whether a conversation that is not held in memory does not fit: then nobody renders it."""
    is_long = isinstance(loaded.window.entries, LongEntries)
    return is_long and loaded.state.tokens + budget.fixed > budget.limit


def measured_as(core: Core, loaded: LoadedConversation, budget: Budget) -> Measured:
    """Measure the request that this version gives."""
    if is_out_of_sight(loaded, budget):
        return Measured(loaded, loaded.state.tokens + budget.fixed, budget, budget)
    # Rendering adds a little that is in no message: a note for each call without a result, say.
    rendered = render(
        loaded.thread_id,
        loaded.window,
        None,
        core.counter.count_text,
        place=core.settings.summary_place,
    )
    extra = max(0, rendered.tokens - loaded.state.tokens)
    size, weight = rendered.tokens + budget.fixed, rendered.bytes + budget.fixed_bytes
    return Measured(loaded, size, budget.carrying(extra), budget, weight)

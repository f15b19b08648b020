"""Everything but a summary: for whoever asked for a compaction of a request that does not fit."""

from refold.application.core import Core
from refold.domain.budget import Budget

from .last_rung import clear_texts, shorten_texts
from .measuring import measured
from .rungs import Shortened, climb, make_fit


def take_all_rungs(core: Core, thread_id: str, budget: Budget) -> Shortened:
    """Show shorter what no summary covers, one rung after the other, as far as the request does not fit."""
    if measured(core, thread_id, budget).size <= budget.limit:
        return Shortened()
    done = clear_texts(core, thread_id, budget)
    if measured(core, thread_id, budget).size > budget.limit:
        done = done.plus(climb(core, thread_id, budget, all_of_it=True))
    done = done.plus(make_fit(core, thread_id, budget))
    return done.plus(shorten_texts(core, thread_id, budget, to_target=False))

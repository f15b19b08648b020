"""Waiting for a compaction that somebody else is making: what it makes may be enough."""

import asyncio
from time import monotonic

from refold.domain.budget import Budget
from refold.domain.compacting import holds_lease

from .abandoning import load_settled
from .core import Core
from .ladder.measuring import Measured, measured

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
"""Seconds between two looks."""


async def measured_in_turn(core: Core, thread_id: str, budget: Budget) -> Measured:
    """Measure the newest version; where that does not fit, after what others are making has ended."""
    now = await asyncio.to_thread(measured, core, thread_id, budget)
    if now.size <= budget.limit or now.loaded.state.attempt is None:
        return now
    await others_ended(core, thread_id)
    return await asyncio.to_thread(measured, core, thread_id, budget)


async def others_ended(core: Core, thread_id: str) -> bool:
    """Wait until no living process works on a compaction of this conversation; whether that came in time.

    At most so long as the settings say: a request waits for it.
    """
    until, pause = monotonic() + core.settings.compaction_wait, FIRST_PAUSE
    while await asyncio.to_thread(_is_under_way, core, thread_id):
        left = until - monotonic()
        if left <= 0:
            return False
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE)
    return True


def _is_under_way(core: Core, thread_id: str) -> bool:
    attempt = load_settled(core, thread_id).state.attempt
    return attempt is not None and holds_lease(attempt, core.clock(), core.settings.policy)

"""Waiting for a compaction that somebody else is making: what it makes may be enough."""

import asyncio
from time import monotonic

from refold.domain.budget import Budget
from refold.domain.compacting import holds_lease
from refold.domain.conversation import Conversation
from refold.domain.cuts.planner import NothingToCompact

from .abandoning import is_left_behind, load_settled
from .blocking import to_the_end
from .core import Core
from .ladder.measuring import Measured, measured

OVERTAKEN = "overtaken"
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
"""Seconds between two looks."""


class Turn:
    """Where one request stands that needs a smaller context: behind whoever is making it smaller already.

    In all it waits for others at most so long as the settings say.
    """

    def __init__(self, core: Core, thread_id: str) -> None:
        self._core = core
        self._thread_id = thread_id
        self._until: float | None = None

    async def measured(self, budget: Budget) -> Measured:
        """The newest version; where that does not fit, after what others are making has ended."""
        now = await to_the_end(measured, self._core, self._thread_id, budget)
        if now.size <= budget.limit or now.loaded.state.attempt is None:
            return now
        await self.comes()
        return await to_the_end(measured, self._core, self._thread_id, budget)

    async def comes(self) -> bool:
        """Wait until no living process works on a compaction; whether that came in time."""
        self._until = self._until or monotonic() + self._core.settings.compaction_wait
        pause = FIRST_PAUSE
        while await asyncio.to_thread(self._is_anothers):
            left = self._until - monotonic()
            if left <= 0:
                return False
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 1.5, LONGEST_PAUSE)
        return True

    def _is_anothers(self) -> bool:
        core = self._core
        state = load_settled(core, self._thread_id).state
        if state.attempt is None or is_left_behind(core.owner, state):
            return False
        return holds_lease(state.attempt, core.clock(), core.settings.policy)


def overtaken(before: Measured, now: Conversation) -> NothingToCompact | None:
    """Say why nothing is to be done, where somebody else made the summary that was due after ``before``."""
    state, beside = before.loaded.state, before.size - before.loaded.state.tokens
    if now.summary == state.summary or now.tokens + beside >= before.budget.trigger:
        return None
    return NothingToCompact(rule=OVERTAKEN, because="somebody else compacted in this very moment")

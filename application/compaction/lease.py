"""Who may compact now: attempts of this process, of others that live, and of those that ended without a word."""

import asyncio
from contextlib import suppress
from time import monotonic

from refold.application.api.blocking import to_the_end
from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogError
from refold.application.ports.summariser import Owner
from refold.application.runtime.core import Core
from refold.application.runtime.opening_process import BRIEFLY, waiting_at_most
from refold.domain.compaction.budget import Budget
from refold.domain.compaction.compacting import abandon_compaction, holds_lease
from refold.domain.conversation import Conversation
from refold.domain.cuts.planner import NothingToCompact
from refold.domain.events import CompactionFailed

from .ladder import Measured, measured
from .unwritten import is_live


def is_left_behind(owner: Owner, state: Conversation) -> bool:
    """Whether the compaction that is under way will never end: nobody works on it any more.

    Its process certainly runs no more, or is this one, which has ended it and could not say so.
    """
    if state.attempt is None:
        return False
    name = state.attempt.owner or ""
    is_ours = bool(name) and name == owner.name
    return owner.is_gone(name) or (is_ours and not is_live(state.attempt.attempt_id))


def settle_left_behind(core: Core, loaded: LoadedConversation) -> tuple[CompactionFailed, ...]:
    """What happens to a compaction that was left behind; nothing to one that somebody works on."""
    if not is_left_behind(core.owner, loaded.state):
        return ()
    return abandon_compaction(loaded.state, "the process that worked on it ended before it did")


def load_settled(core: Core, thread_id: str) -> LoadedConversation:
    """The conversation now, after a compaction that was left behind is settled."""
    loaded = core.log.load(thread_id)
    if not is_left_behind(core.owner, loaded.state):
        return loaded
    with suppress(LogError), waiting_at_most(BRIEFLY):  # It can be read as it is.
        loaded, _ = core.log.transact(
            thread_id, lambda now: settle_left_behind(core, now), at=core.clock()
        )
    return loaded


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

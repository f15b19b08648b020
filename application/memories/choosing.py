"""Use case: choose, after a decision, which earlier messages the system text quotes (requirement C4)."""

from collections.abc import Sequence

from refold.application.core import Core
from refold.application.errors import LogError
from refold.application.ladder.measuring import Measured, measured
from refold.application.loaded import LoadedConversation
from refold.application.plain_lines import conversation, plain_logger, raised
from refold.application.rendering.memories import memories_size
from refold.domain.budget import Budget
from refold.domain.choosing_memories import (
    choose_memories,
    forget_memories,
    is_before_first_request,
    memories_room,
)
from refold.domain.conversation import Conversation
from refold.domain.events import Event

from .looking_up import LookedUp, look_up

TRIES = 3
"""What else happens while they are looked up makes them out of date; after so many times others decide."""

logger = plain_logger(__name__)


def choose_anew(core: Core, thread_id: str, budget: Budget, *, below: int | None = None) -> int:
    """Quote those that matter to what the user said last; by how many tokens the request grows with that.

    To be called where a decision has just changed what stands before the messages, and nowhere else: until
    the next one not a byte of it changes (invariant 18). ``below``: the request stays smaller than this.
    What recall cannot do is left undone: a turn never fails for it.
    """
    if not core.settings.memories.most and not core.log.load(thread_id).state.memories_tokens:
        return 0
    return _choose(core, thread_id, budget, below)


def choose_at_first(core: Core, thread_id: str, budget: Budget) -> None:
    """Quote what matters of other conversations of the same owner in the first request of this one.

    Later requests show the same, so that the prefix holds, and those made at the same time show what the
    quickest recorded. A log that cannot be written leaves the request as it is.
    """
    try:
        _choose(core, thread_id, budget, None, first=True)
    except LogError as error:
        logger.warning("%s: nothing is quoted in it: %s", conversation(thread_id), error)
    core.asked.chose(thread_id)


def wants_first_choice(core: Core, state: Conversation) -> bool:
    """Whether the next request is the first, and something of other conversations may be quoted in it."""
    settings = core.settings.memories
    is_on = bool(settings.most) and settings.of_owner != "off" and state.owner is not None
    return is_on and is_before_first_request(state)


def _choose(
    core: Core, thread_id: str, budget: Budget, below: int | None, *, first: bool = False
) -> int:
    for _ in range(TRIES):
        before = measured(core, thread_id, budget)
        # As it is stored: what is measured is as if the frame of this request were recorded.
        if first and not wants_first_choice(core, core.log.load(thread_id).state):
            return 0
        room = _room(core, before, below)
        try:
            found = look_up(core, before.loaded, room, own=not first)
        except Exception as error:  # Whatever it is, the request can be sent without.
            logger.warning(
                "%s: no memories could be looked up: %s", conversation(thread_id), raised(error)
            )
            found = None
        choice = _Choice(core, before, found, room, first=first)
        now, events = core.log.transact(thread_id, choice.decide, at=core.clock())
        if not choice.overtaken:
            grown = now.state.memories_tokens - before.loaded.state.memories_tokens
            return grown if events else 0
    return 0


def give_up(core: Core, thread_id: str) -> int:
    """Quote nothing any more, since the request is too large; how many decisions that took."""
    if not core.log.load(thread_id).state.memories_tokens:
        return 0
    _, events = core.log.transact(
        thread_id, lambda now: forget_memories(now.state), at=core.clock()
    )
    return len(events)


def _room(core: Core, before: Measured, below: int | None) -> int:
    most, state = core.settings.memories.tokens, before.loaded.state
    if below is not None:
        most = min(most, below - 1 - (before.size - state.memories_tokens))
    return memories_room(state, before.size, before.plain, most)


class _Choice:
    """What was found, and the decision on it against the newest state."""

    def __init__(
        self, core: Core, before: Measured, found: LookedUp | None, room: int, *, first: bool
    ) -> None:
        self._core = core
        self._before = before
        self._found = found
        self._room = room
        self._first = first
        self.overtaken = False

    def decide(self, now: LoadedConversation) -> Sequence[Event]:
        before = self._before.loaded.state
        # A first choice is for the request as it was measured: an answer may have come since.
        is_other = self._first and now.state.version != before.version
        self.overtaken = is_other or not _only_grew(before, now.state) or self._has_lost_sources()
        if self.overtaken:  # What was found may be erased by now.
            return ()
        if self._found is None:
            return () if before.memories_tokens <= self._room else forget_memories(now.state)
        size = memories_size(now.thread_id, self._found.memories, self._core.counter.count_text)
        if size > self._room - (now.state.live_tokens - before.live_tokens):
            return ()
        return choose_memories(
            now.state,
            now.window.memories,
            self._found.memories,
            query_position=self._found.position,
            tokens=size,
        )

    def _has_lost_sources(self) -> bool:
        """Whether something that is to be quoted of another conversation was erased since: nobody erases
        while this is decided.
        """
        for thread_id, version in self._found.sources if self._found else ():
            logged = self._core.log.read_at(thread_id, [version])
            if not logged or logged[0].erased or self._core.log.load(thread_id).state.erased:
                return True
        return False


def _only_grew(before: Conversation, now: Conversation) -> bool:
    """Whether nothing but messages was added."""
    if before.first_message_id not in ("", now.first_message_id):
        return False  # It was erased, and another one begun.
    return now.version - before.version == now.length - before.length

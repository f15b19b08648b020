"""Use case: settle a compaction that a process left unfinished when it ended."""

from contextlib import suppress

from refold.domain.compacting import abandon_compaction
from refold.domain.conversation import Conversation
from refold.domain.events import CompactionFailed

from .core import Core
from .errors import CANNOT_APPEND
from .loaded import LoadedConversation
from .ports import Owner


def is_left_behind(owner: Owner, state: Conversation) -> bool:
    """Whether the compaction that is under way will never end: its process certainly runs no more."""
    return state.attempt is not None and owner.is_gone(state.attempt.owner or "")


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
    with suppress(*CANNOT_APPEND):  # It can be read as it is.
        loaded, _ = core.log.transact(
            thread_id, lambda now: settle_left_behind(core, now), at=core.clock()
        )
    return loaded

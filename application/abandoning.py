"""Use case: settle a compaction that a process left unfinished when it ended."""

from contextlib import suppress

from refold.domain.compacting import abandon_compaction
from refold.domain.conversation import Conversation
from refold.domain.events import CompactionFailed

from .core import Core
from .errors import LogError
from .live_attempts import is_live
from .loaded import LoadedConversation
from .patience import BRIEFLY, waiting_at_most
from .ports import Owner


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

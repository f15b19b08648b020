"""Which messages are an owner's, in all conversations, with their copies."""

from collections.abc import Mapping

from refold.application.core import Core
from refold.application.event_log import Loading
from refold.application.loaded import LoadedConversation

from .lineage import copies


def messages_of_owner(core: Core, load: Loading, owner: str) -> Mapping[str, frozenset[int]]:
    """The positions of the messages of an owner, by conversation.

    Those that name the owner as their own, and in the owner's conversations those that name nobody else;
    and what was copied from such a conversation before the log said whose it is.
    """
    named = core.views.messages_of(owner)
    found: dict[str, frozenset[int]] = {}
    for row in core.views.conversations():
        state = load(row.thread_id).state if row.owner == owner else None
        if state is not None:
            # Every row is read: what is somebody else's must not go by mistake.
            rows = core.views.messages(row.thread_id, 0, state.length)
            found[row.thread_id] = frozenset(
                message.position for message in rows if message.owner in (None, owner)
            )
        elif row.thread_id in named:
            found[row.thread_id] = named[row.thread_id]
    related = {thread for fork in core.log.forks() for thread in (fork.source, fork.thread_id)}
    for thread_id in sorted(found.keys() & related):
        loaded = load(thread_id)
        for other, positions in copies(
            core, thread_id, _versions(core, loaded, found[thread_id])
        ).items():
            if not load(other).state.erased:
                found[other] = found.get(other, frozenset()) | positions
    return {thread_id: positions for thread_id, positions in found.items() if positions}


def is_known(core: Core, owner: str) -> bool:
    """Whether a conversation or a message is of an owner, erased messages as well."""
    has_own = any(row.owner == owner for row in core.views.conversations())
    return has_own or bool(core.views.messages_of(owner))


def _versions(
    core: Core, loaded: LoadedConversation, positions: frozenset[int]
) -> Mapping[int, int]:
    """The versions of messages, by position; those that were lost are left out."""
    rows = core.views.messages(loaded.thread_id, min(positions, default=0), loaded.state.length)
    return {row.position: row.version for row in rows if row.position in positions}

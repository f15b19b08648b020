"""Use case: begin a new conversation as a copy of another, as it is or as it was."""

from refold.domain.compacting import abandon_compaction
from refold.domain.conversation import Conversation
from refold.domain.errors import InvalidSetting
from refold.domain.events import ConversationForked, Event

from .core import Core
from .intake import read_thread_id
from .moments import At, loaded_at


def fork(core: Core, thread_id: str, at: At | None, into: str | None) -> str:
    """Copy the conversation as it was at ``at`` (None: as it is); the id of the copy.

    Raises:
        ThreadExists: ``into`` is taken.
        InvalidThreadId: ``into`` is no usable id.
        InvalidSetting: there is no such version, or nothing had been said by then.
        ConversationGone: the conversation was erased.
    """
    target = f"fork-{core.new_id()}" if into is None else read_thread_id(into)
    then = core.log.load(thread_id).present() if at is None else loaded_at(core, thread_id, at)
    version = then.state.version
    if version == 0:
        when = "" if at is None else f" at {at}"
        raise InvalidSetting(
            f"conversation {thread_id!r} has no events{when}: there is nothing to fork",
            setting="at",
            value=at,
        )
    core.log.fork(thread_id, version, target, _beginning(then.state, thread_id), at=core.clock())
    return target


def _beginning(state: Conversation, source: str) -> tuple[Event, ...]:
    # Whoever works on an attempt works for the other conversation: nobody will end the copied one.
    forked = ConversationForked(source=source, version=state.version)
    return forked, *abandon_compaction(state, "it was under way where the conversation was forked")

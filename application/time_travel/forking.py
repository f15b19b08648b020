"""Use case: begin a new conversation as a copy of another, as it is or as it was."""

from collections.abc import Iterator
from contextlib import suppress

from refold.application.core import Core
from refold.application.erasure.vouching import erased_since
from refold.application.errors import LogDamaged
from refold.application.intake import read_thread_id
from refold.application.loaded import LoadedConversation
from refold.application.rendering.memories import memories_size, memories_text
from refold.domain.compacting import abandon_compaction
from refold.domain.errors import InvalidSetting
from refold.domain.events import ConversationForked, Event
from refold.domain.folding import fold

from .moments import At, loaded_at


def fork(core: Core, thread_id: str, at: At | None, into: str | None) -> str:
    """Copy the conversation as it was at ``at`` (None: as it is); the id of the copy.

    What was erased since is erased in the copy: it is marked as that, and a summary that was made of it
    is made anew. Blocks, and may run a loop of its own: call it from a thread without one.

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

    def decide(copied: LoadedConversation) -> tuple[Event, ...]:
        return tuple(_beginning(core, copied, target))

    core.log.fork(thread_id, version, target, decide, at=core.clock())
    return target


def _beginning(core: Core, copied: LoadedConversation, into: str) -> Iterator[Event]:
    state = copied.state
    forked = ConversationForked(source=copied.thread_id, version=state.version)
    # Whoever works on an attempt works for the other conversation: nobody will end the copied one.
    ended = abandon_compaction(state, "it was under way where the conversation was forked")
    yield forked
    yield from ended
    with suppress(LogDamaged):  # What lies before the damage can still be copied.
        yield from erased_since(core, copied, fold((forked, *ended), state), into)
    yield from _quoted_anew(core, copied, into)


def _quoted_anew(core: Core, copied: LoadedConversation, into: str) -> Iterator[Event]:
    """The memories that are quoted, measured as they are rendered in the copy: addresses name it."""
    present = copied.window.memories
    if present is not None:
        source = memories_text(copied.thread_id, present.memories)
        if memories_text(into, present.memories) != source:
            # Thinking in the copy was signed for the old text: recording the new one drops it.
            tokens = memories_size(into, present.memories, core.counter.count_text)
            yield present.replaced(tokens=tokens)

"""Record a request frame before the erasure of a message that it quotes."""

from refold.application.conversation.loaded import LoadedConversation
from refold.application.runtime.core import Core
from refold.domain.quoted_text import IsQuoted, is_quoting


def record_quoting_frame(core: Core, loaded: LoadedConversation, is_quoted: IsQuoted) -> bool:
    """Record the frame of the newest request if it quotes messages that are about to be erased.

    The erasure then finds it in the log. Return whether there was one to record.
    """
    thread_id = loaded.thread_id
    frame = core.asked.change(thread_id, loaded.state)
    if frame is None or not is_quoting(frame, frozenset(), is_quoted):
        return False
    _, stored = core.log.transact(thread_id, core.asked.record_frame, at=core.clock())
    core.asked.mark_recorded(thread_id, stored)
    return True

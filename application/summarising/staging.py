"""Who writes a summary, and who is asked next where that failed and something must fit (C8)."""

from refold.application.core import Core
from refold.application.loaded import LoadedConversation
from refold.application.ports import Summariser
from refold.domain.compacting import is_breaker_open

from .last_resort import NoteSummariser, SummariesOff


def chosen_stage(core: Core, thread_id: str) -> Summariser:
    """Return the summariser that was chosen, for one conversation."""
    chosen = core.summariser
    return chosen.of(thread_id) if isinstance(chosen, SummariesOff) else chosen


def first_stage(core: Core, loaded: LoadedConversation, window: int) -> Summariser:
    """The summariser that was chosen; code alone while the circuit breaker is open."""
    is_open = is_breaker_open(loaded.state, window, core.settings.policy)
    chosen = chosen_stage(core, loaded.thread_id)
    return core.fallback if is_open and not isinstance(chosen, NoteSummariser) else chosen


def next_stage(core: Core, thread_id: str, failed: Summariser) -> Summariser | None:
    """Who is asked after ``failed``: the embedded summariser, then the note, then nobody."""
    if isinstance(failed, NoteSummariser):
        return None
    if failed is core.fallback or core.summariser is core.fallback:
        return NoteSummariser(thread_id, core.counter.count_text)
    return core.fallback

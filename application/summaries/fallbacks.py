"""Who writes a summary where a model fails: code, then a note that says what is covered."""

import hashlib
import re
from collections.abc import Callable

from refold.application.conversation.addresses import address_of
from refold.application.conversation.loaded import LoadedConversation
from refold.application.ports.summariser import Summariser, SummaryDraft, SummaryRequest
from refold.application.runtime.core import Core
from refold.domain.compaction.compacting import is_breaker_open
from refold.domain.text_cuts import ends_within

GAP = "\n[… cut here …]\n"


NOTE = "note"
"""The name of the summariser of last resort."""
OFF = "off"
"""The name of what stands in for one where summaries are switched off."""
ALGORITHM = "refold-note-1"
_FINGERPRINT = hashlib.sha256(ALGORITHM.encode()).hexdigest()
_NOTE = (
    "[Messages {first} to {last} could not be summarised. They are kept: each can be read back by its "
    "address, {start} to {end}.]"
)
_DROPPED = (
    "[Messages {first} to {last} are no longer shown: there is no summary of them. They are kept: each can "
    "be read back by its address, {start} to {end}.]"
)
_DROPPED_BEFORE = re.compile(
    r"\[Messages (\d{1,9}) to \d{1,9} are (?:no longer shown: |kept at )[^\n]*\]\Z"
)
_SHORT = "[Messages {first} to {last} are kept at {start} and after.]"


class NoteSummariser:
    """Writes no summary: the previous one stays, cut where it must be, and a note follows it.

    Needs no model and never fails; the ledger stands beside it as beside every summary.
    """

    def __init__(self, thread_id: str, count: Callable[[str], int]) -> None:
        self._thread_id = thread_id
        self._count = count

    @property
    def name(self) -> str:
        """``note``."""
        return NOTE

    @property
    def by_code(self) -> bool:
        """True: no model is asked."""
        return True

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        """Answers at once."""
        return SummaryDraft(
            text=self._text(request),
            complete=True,
            model=ALGORITHM,
            prompt_fingerprint=_FINGERPRINT,
            stop_reason="end_turn",
        )

    def _text(self, request: SummaryRequest) -> str:
        note = self._note(request)
        if not request.previous:
            return note
        room = request.limit_tokens - self._count(f"\n\n{note}") - 1
        kept = ends_within(request.previous, room, self._count, GAP)
        return "\n\n".join(filter(None, (kept, note)))

    def _note(self, request: SummaryRequest) -> str:
        positions = [m.position for m in request.messages]
        positions += [one.position for one in request.omitted]
        if not positions:
            return ""
        return self._filled(_NOTE, _SHORT, min(positions), max(positions), request)

    def _filled(
        self, whole: str, short: str, first: int, last: int, request: SummaryRequest
    ) -> str:
        values = {
            "first": first,
            "last": last,
            "start": address_of(self._thread_id, first),
            "end": address_of(self._thread_id, last),
        }
        note = whole.format(**values)
        return note if self._count(note) <= request.limit_tokens else short.format(**values)


class SummariesOff:
    """Stands where a summariser would, where summaries are switched off; nothing is asked of it."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count

    @property
    def name(self) -> str:
        """``off``."""
        return OFF

    @property
    def by_code(self) -> bool:
        """True: no model is asked."""
        return True

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        """Say that there is no summary, of a conversation that is not named."""
        return await self.of("").summarise(request)

    def of(self, thread_id: str) -> "DropNotes":
        """Return what writes the notes of one conversation."""
        return DropNotes(thread_id, self._count)


class DropNotes(NoteSummariser):
    """Writes one note of all that is no longer shown, behind a summary that was made before."""

    @property
    def name(self) -> str:
        """``off``."""
        return OFF

    def _text(self, request: SummaryRequest) -> str:
        before = request.previous or ""
        found = _DROPPED_BEFORE.search(before)
        positions = [m.position for m in request.messages]
        positions += [one.position for one in request.omitted]
        positions += [int(found[1])] if found else []
        if not positions:
            return before
        note = self._filled(_DROPPED, _SHORT, min(positions), max(positions), request)
        kept = before[: found.start()].rstrip() if found else before
        room = request.limit_tokens - self._count(f"\n\n{note}") - 1
        return "\n\n".join(
            filter(None, (ends_within(kept, room, self._count, GAP) if kept else "", note))
        )


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

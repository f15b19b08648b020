"""The last resort (requirement C8): a note that says what was folded away and how to read it back."""

import hashlib
from collections.abc import Callable

from refold.application.addresses import address_of
from refold.application.ports import SummaryDraft, SummaryRequest

from .cutting import cut

NOTE = "note"
"""The name of the summariser of last resort."""
ALGORITHM = "refold-note-1"
_FINGERPRINT = hashlib.sha256(ALGORITHM.encode()).hexdigest()
_NOTE = (
    "[Messages {first} to {last} could not be summarised. They are kept: each can be read back by its "
    "address, {start} to {end}.]"
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
        kept = cut(request.previous, room, self._count)
        return "\n\n".join(filter(None, (kept, note)))

    def _note(self, request: SummaryRequest) -> str:
        positions = [m.position for m in request.messages]
        positions += [one.position for one in request.omitted]
        if not positions:
            return ""
        first, last = min(positions), max(positions)
        values = {
            "first": first,
            "last": last,
            "start": address_of(self._thread_id, first),
            "end": address_of(self._thread_id, last),
        }
        note = _NOTE.format(**values)
        return note if self._count(note) <= request.limit_tokens else _SHORT.format(**values)

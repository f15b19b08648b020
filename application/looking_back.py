"""One conversation, as agents look back at it: what was said, what became of it, what was folded away."""

from collections.abc import Iterator, Sequence
from typing import Any

from .core import Core
from .erasure.erasing import Where, shared_with
from .explaining import MessageFate, explain
from .exporting import ExportFormat, export
from .read_models import CompactionRow, SummaryRow
from .reading import read_back, stored_messages
from .results import StoredMessage
from .time_travel.diffing import ContextDiff, diff
from .time_travel.moments import At


class LookingBack:
    """Everything that can be asked of a conversation without changing it."""

    def __init__(self, core: Core, thread_id: str) -> None:
        self._core = core
        self.thread_id = thread_id

    def diff(self, before: At, after: At, *, model: str | None = None) -> ContextDiff:
        """What became of the request between two versions or times, in whichever order.

        Raises:
            InvalidSetting: there is no such version, or a time has no time zone.
        """
        return diff(self._core, self.thread_id, before, after, model)

    def export(
        self, format: ExportFormat = "jsonl", *, at: At | None = None
    ) -> Iterator[dict[str, Any]]:
        """The original messages, or everything that happened, as JSON objects.

        ``jsonl``: one for each message, with position, time and id. ``anthropic``: a single one with
        ``messages`` and, where one leads them, ``system``. ``events``: one for each event of the log.
        ``at``: as it was at this version or time. `refold import` reads the first two.

        Raises:
            ConversationGone: it was erased; only its ``events`` can be exported.
            InvalidSetting: there is no such version, or the time has no time zone.
        """
        return export(self._core, self.thread_id, format, at)

    def shared_with(self, where: Where | None = None) -> tuple[str, ...]:
        """The other conversations that erasing these messages reaches, by fork; None: all of this one.

        Raises:
            UnknownMessage, InvalidAddress, ForeignAddress: there is no such message.
            ConversationGone: the conversation was erased as a whole.
        """
        return shared_with(self._core, self.thread_id, where)

    def messages(self, start: int = 0, stop: int | None = None) -> list[StoredMessage]:
        """The original messages at positions ``start`` up to but not including ``stop``.

        What was lost with a damaged log is left out: the positions tell.
        """
        return stored_messages(self._core, self.thread_id, start, stop)

    def read(self, where: str | int) -> StoredMessage:
        """The message at an address that a context shows, or at a position, word for word.

        Raises:
            ForeignAddress: the address is one of another conversation, which it names.
            InvalidAddress: it is no address at all.
            UnknownMessage: there is no such message.
        """
        return read_back(self._core, self.thread_id, where)

    def explain(self, start: int = 0, stop: int | None = None) -> tuple[MessageFate, ...]:
        """Why the model sees each message as it does, for positions ``start`` up to but not
        including ``stop``: full, condensed, offloaded, summarised, pinned …
        """
        return explain(self._core, self.thread_id, start, stop)

    def summaries(self) -> Sequence[SummaryRow]:
        """All summaries ever made, oldest first; at most one is active."""
        return self._core.views.summaries(self.thread_id)

    def compactions(self) -> Sequence[CompactionRow]:
        """All compaction attempts and how they ended, oldest first."""
        return self._core.views.compactions(self.thread_id)

    @property
    def version(self) -> int:
        """How many events the conversation has; 0 before the first."""
        return self._core.log.load(self.thread_id).state.version

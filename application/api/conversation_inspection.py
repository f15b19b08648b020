"""Methods of a conversation for an inspector: pictures, lines with their sources, and what a cache keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold.application.runtime.core import Core

from .argument_checks import checked

if TYPE_CHECKING:
    from refold.application.history.moments import At
    from refold.application.inspection.cache_report import CacheReport
    from refold.application.inspection.ledger_view import LedgerView
    from refold.application.inspection.message_strip import MessageStrip
    from refold.application.inspection.size_history import SizeHistory
    from refold.application.inspection.summary_sources import SummarySources


@checked
class ConversationInspection:
    """Methods that describe a conversation without changing it."""

    thread_id: str

    @property
    def _core(self) -> Core:
        raise NotImplementedError

    def summary_sources(
        self,
        summary_id: str,
        start: int | None = None,
        stop: int | None = None,
        *,
        at: At | None = None,
    ) -> SummarySources:
        """Return each line of a summary with its sources, and the facts that the summary did not take over.

        A line that code wrote has the message that was recorded for it. A line of a model has the messages that
        share exact values with it: paths, commands, numbers, ids, names. ``start``, ``stop``: positions of the
        covered messages to examine, of which the newest 400 are read; ``earlier`` of the result is the ``stop``
        for the next page. ``at``: version or time, by default now.

        Raises:
            UnknownSummary: there is no such summary; the error names the newest ones.
            InvalidSetting: there is no such version, or the time has no time zone.
            ConversationGone: the whole conversation was erased.
        """
        from refold.application.inspection.summary_sources import summary_sources

        return summary_sources(self._core, self.thread_id, summary_id, start, stop, at)

    def ledger(self, *, at: At | None = None) -> LedgerView:
        """Return the pins, and the ledger and the index of the active summary, with sources, ages and states.

        Entries that are kept without being shown are included. Without a summary there are only pins.
        ``at``: version or time, by default now.

        Raises:
            InvalidSetting: there is no such version, or the time has no time zone.
            ConversationGone: the whole conversation was erased.
        """
        from refold.application.inspection.ledger_view import ledger

        return ledger(self._core, self.thread_id, at)

    def cache_report(self, at: At | None = None) -> CacheReport:
        """Return how much of each request a prompt cache can keep, and the decisions that broke it.

        The report is an estimate from the events; no request is rendered. It also sums up the tokens that
        replies stated (``usage``). ``at``: report up to this version, or up to this time (with a time zone).

        Raises:
            InvalidSetting: there is no such version, or the time has no time zone.
            ConversationGone: the conversation was erased.
        """
        from refold.application.inspection.cache_report import cache_report

        return cache_report(self._core, self.thread_id, at)

    def size_history(self, *, at: At | None = None, most: int = 600) -> SizeHistory:
        """Return the size of the request over time, with a mark for each decision that changed it.

        Sizes are added up from read models and no request is rendered, so a chart opens at once at any
        length. What rendering adds, such as headings, is known at each compaction and taken to stay the same
        until the next. ``at``: up to this version or time. ``most``: maximum number of points, at least 4; the
        highest peaks stay.

        Raises:
            InvalidSetting: there is no such version, the time has no time zone, or ``most`` is too small.
        """
        from refold.application.history.moments import version_at
        from refold.application.inspection.size_history import size_history

        core = self._core
        version = None if at is None else version_at(core, self.thread_id, at)
        return size_history(core, self.thread_id, at=version, most=most)

    def message_strip(self, *, at: At | None = None, most: int = 400) -> MessageStrip:
        """Return all messages in at most ``most`` cells, each with its tokens and the fates of its messages.

        Fates are those of ``explain``. If there are more messages than cells, each cell has a run of the same
        length. ``at``: show the state at this version or time.

        Raises:
            InvalidSetting: there is no such version, the time has no time zone, or ``most`` is too small.
        """
        from refold.application.history.moments import version_at
        from refold.application.inspection.message_strip import message_strip

        core = self._core
        version = None if at is None else version_at(core, self.thread_id, at)
        return message_strip(core, self.thread_id, at=version, most=most)

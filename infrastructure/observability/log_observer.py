"""Notices of stored decisions, of damage, and of summaries by another summariser than the configured one."""

from collections.abc import Callable, Sequence

from refold.application.api.results import CompactionResult
from refold.application.errors import LogBehindAnchor, LogDamaged
from refold.application.runtime.foreign_code import Contained
from refold.application.runtime.plain_lines import plain_logger, raised
from refold.domain.conversation import Conversation
from refold.domain.events import Event

from .notices import Notice, of_damage, of_decisions, of_fallback

logger = plain_logger(__name__)

Watcher = Callable[[Notice], None]


def tell(watchers: Sequence[Watcher], notice: Notice) -> None:
    """Tell every watcher."""
    for watcher in watchers:
        try:
            with Contained():
                watcher(notice)
        except Exception as error:  # What looks on must not disturb what was stored.
            logger.warning("a watcher failed: %s", raised(error))


class FallbackObserver:
    """Tells when a compaction was made by another summariser than ``configured``."""

    def __init__(self, configured: str, watchers: Sequence[Watcher]) -> None:
        self._configured = configured
        self._watchers = watchers

    def compaction_ended(self, result: CompactionResult) -> None:
        """Tell, if somebody stepped in."""
        notice = of_fallback(result, self._configured)
        if notice is not None:
            for watcher in self._watchers:
                watcher(notice)

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        """Nothing that it tells."""


class StoredDecisions:
    """Tells watchers of decisions that were stored, and of damage."""

    def __init__(self, watchers: Sequence[Watcher], *, breaker_after: int) -> None:
        self._watchers = watchers
        self._breaker_after = breaker_after

    def stored(
        self, thread_id: str, before: Conversation, after: Conversation, events: Sequence[Event]
    ) -> None:
        """Tell what was decided."""
        for notice in of_decisions(
            thread_id, before, after, events, breaker_after=self._breaker_after
        ):
            tell(self._watchers, notice)

    def damaged(self, error: LogDamaged | LogBehindAnchor) -> None:
        """Tell that the log is damaged."""
        tell(self._watchers, of_damage(error))
